"""A user's training under torchrun: profiled in its loop, then by one call, then trained with
DistributedDataParallel. Ranks speak in order."""
import os

import torch
import torch.distributed as dist
from torch import nn

import ddpsim.profile

dist.init_process_group('gloo')
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(16, 64)


def loss(model, batch):
    return model(batch).square().mean()


profiler = ddpsim.profile.Profiler(model, optimizer, output='loop.yaml', warmup=1, steps=4)
for _ in range(6):
    with profiler.step():
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()

path = ddpsim.profile(model, batch, loss, optimizer, steps=4, warmup=1, largest=64 << 10, seconds=2)

ddp = nn.parallel.DistributedDataParallel(model)
for _ in range(3):
    optimizer.zero_grad()
    loss(ddp, batch).backward()
    optimizer.step()
for rank in range(dist.get_world_size()):
    dist.barrier()
    if rank == dist.get_rank():
        print(f'rank {rank}: trained, {path}', flush=True)
dist.barrier()
dist.destroy_process_group()
# Python's end waits for no thread of torch's, and one that still needs Python aborts the process.
os._exit(0)
