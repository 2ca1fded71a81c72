#!/usr/bin/env python3
"""A thousand what-ifs in a second: at which link does a setting begin to pay? `pip install .`
first."""
# %% A study reads and prices a scenario once. Each question then takes some microseconds.
import time

import ddpsim

study = ddpsim.Study({'workload': {'model': 'bert-large', 'batch': 8, 'sequence': 128},
                      'cluster': {'device': 'v100', 'nodes': 4,
                                  'inter_node': {'latency': '30 us', 'bandwidth': '10 GB/s'}}})
rates = [0.5e9 * 1.4 ** i for i in range(20)]           # bytes per second
caps = [2 ** 20 * mib for mib in (1, 5, 10, 15, 25, 35, 50, 75, 100, 200)]
begin = time.perf_counter()
steps = {rate: {cap: study.step_ms(bandwidth=rate, bucket_cap=cap) for cap in caps}
         for rate in rates}
taken = time.perf_counter() - begin

# %%
print('  link GB/s  best cap MiB   step ms')
for rate, by_cap in steps.items():
    best = min(by_cap, key=by_cap.get)
    print(f'{rate / 1e9:11.2f} {best / 2**20:13.0f} {by_cap[best]:9.2f}')
print(f'{len(rates) * len(caps)} steps in {1000 * taken:.0f} ms')
