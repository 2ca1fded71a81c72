#!/usr/bin/env python3
"""A model of your own as it runs here: profiled in one process, then tuned for machines like this.

`pip install .[torch]` first. Under torchrun the same call measures the link between the ranks too.
"""
# %% A training step.
import tempfile

import torch
from torch import nn

import ddpsim

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                      nn.Linear(1024, 10))
batch = torch.randn(64, 512), torch.randint(10, (64,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def loss(model, batch):
    inputs, targets = batch
    return nn.functional.cross_entropy(model(inputs), targets)


# %% Twenty of them, measured; the answer is the path of a workload profile.
folder = tempfile.mkdtemp(prefix='ddpsim-')
profile = ddpsim.profile(model, batch, loss, optimizer, output=folder)
print(profile)

# %% Four such machines, joined by Ethernet: how long is a step, and which buckets are best?
cluster = {'device': 'generic-cpu', 'launch': 'sync', 'nodes': 4, 'inter_node': 'ethernet-10g'}
result = ddpsim.run({'workload': {'model': profile}, 'cluster': cluster})
print(result)
plan = ddpsim.tune(profile, cluster=cluster)
print(f'DistributedDataParallel(model, **{plan.ddp_kwargs})')
