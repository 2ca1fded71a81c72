"""Measures what the laws of kernels and of hosts take from elsewhere.

    python -m ddpsim.measure operations -o my-gpu.yaml     single operations of your own GPU
    python -m ddpsim.measure host -o my-host.yaml          five small operations of your processor

`device: {base: h200, operations: my-gpu.yaml}` and `host: my-host.yaml` take them in a scenario.
"""
