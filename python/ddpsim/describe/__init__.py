"""Describes a training step of any PyTorch model, on no device.

    import ddpsim.describe
    workload = ddpsim.describe.describe(model, batch, loss, optimizer)
    workload.save('my_model.yaml')          # ddpsim run my_model.yaml --vary cluster.device=...

or, from a file with a function that makes the model, `python -m ddpsim.describe my_model.py:make`.
torch is imported when something is described, not before.
"""
from .errors import DescribeError
from .workload import Buffers, Parameter, Workload

__all__ = ['Buffers', 'DescribeError', 'Parameter', 'Workload', 'describe']


def describe(model, batch, loss=None, optimizer=None, **settings):
    from .step import describe as describe_step
    return describe_step(model, batch, loss, optimizer, **settings)
