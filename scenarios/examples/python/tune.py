#!/usr/bin/env python3
"""Which bucket sizes should DistributedDataParallel have? `pip install .` first."""
# %% Of a workload on a ready cluster; ddpsim.list_clusters() has their names.
import ddpsim

workload = {'workload': {'model': 'resnet50', 'batch': 128, 'dtype': 'fp32', 'optimizer': 'sgd'}}
cluster = {'device': 'rtx4090', 'nodes': 4, 'ranks_per_node': 1,
           'inter_node': {'latency': '40 us', 'bandwidth': '25 Gbit/s'}}
plan = ddpsim.tune({**workload, 'cluster': cluster})
print(plan)

# %% What to write into the training script:
#        model = DistributedDataParallel(model, **plan.ddp_kwargs)
print('\nDistributedDataParallel arguments:', plan.ddp_kwargs)
print(f'{plan.default_step_ms:.2f} ms -> {plan.step_ms:.2f} ms; no buckets are better than '
      f'{plan.bound_ms:.2f} ms')

# %% The step against the cap.
study = ddpsim.Study({**workload, 'cluster': cluster})
for mib in (1, 2, 5, 10, 25, 50, 100):
    print(f'{mib:4} MiB {study.step_ms(bucket_cap=mib * 2**20):8.2f} ms')
