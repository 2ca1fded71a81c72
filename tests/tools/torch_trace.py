#!/usr/bin/python3
"""One rank of a real DistributedDataParallel training over Gloo, traced by PyTorch's profiler.

    RANK=0 WORLD_SIZE=2 tests/tools/torch_trace.py FOLDER MARKED

Rank 0 writes to FOLDER

    plain.json   what the profiler exports, without shapes
    shapes.json  the same events with their shapes, as a PyTorch with Kineto writes them under
                 record_shapes=True
    said.json    the bytes of each bucket, as DistributedDataParallel itself says

Three steps are traced; MARKED is "marked" if the profiler is told where they end. Ranks meet in a
file in FOLDER.
"""
import os

# Before torch loads its BLAS.
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'

import json
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WIDTHS = [256] * 6
CAP_MIB = 0.5


def with_shapes(events):
    """The profiler's events as Kineto spells them."""
    marked = ('ProfilerStep', 'Optimizer')
    return {'schemaVersion': 1, 'traceEvents': [
        {'ph': 'X', 'cat': 'user_annotation' if event.name.startswith(marked) else 'cpu_op',
         'name': event.name, 'pid': os.getpid(), 'tid': event.thread,
         'ts': event.time_range.start, 'dur': event.time_range.end - event.time_range.start,
         'args': {'External id': event.id, 'Input Dims': event.input_shapes or [],
                  'Input type': ['float'] * len(event.input_shapes or [])}}
        for event in events]}


def without_shapes(file):
    trace = json.loads(file.read_text())
    events = trace['traceEvents'] if isinstance(trace, dict) else trace
    for event in events:
        said = event.get('args', {})
        for name in [name for name in said if name.startswith(('Input', 'Concrete'))]:
            del said[name]
    file.write_text(json.dumps(trace))


def main():
    folder, marked = pathlib.Path(sys.argv[1]), sys.argv[2] == 'marked'
    rank, ranks = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group('gloo', init_method=f'file://{folder}/rendezvous', rank=rank,
                            world_size=ranks)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    dist._DEFAULT_FIRST_BUCKET_BYTES = int(CAP_MIB * (1 << 20))  # older releases ask for it
    model = DistributedDataParallel(network, bucket_cap_mb=CAP_MIB)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.9)
    data, target = torch.randn(64, WIDTHS[0]), torch.randn(64, WIDTHS[-1])

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(data), target).backward()
        optimizer.step()

    for _ in range(3):
        step()
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=3) if marked else None
    done = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                record_shapes=True, schedule=schedule,
                                on_trace_ready=done.append) as profile:
        for _ in range(5 if marked else 3):
            step()
            if marked:
                profile.step()
        if marked and rank == 0:
            profile.export_chrome_trace(str(folder / 'plain.json'))
    if rank == 0:
        if not marked:
            profile.export_chrome_trace(str(folder / 'plain.json'))
        without_shapes(folder / 'plain.json')
        (folder / 'shapes.json').write_text(json.dumps(with_shapes(profile.events())))
        said = model._get_ddp_logging_data()['rebuilt_bucket_sizes']
        (folder / 'said.json').write_text(json.dumps([int(size) for size in said.split(',')]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
