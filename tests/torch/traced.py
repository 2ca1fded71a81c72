"""One rank of a DistributedDataParallel training over Gloo, traced by torch's profiler.

    traced.py SCRIPT:FUNCTION FOLDER STEPS        with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT

Each rank writes FOLDER/rankN.json, the profiler's own Kineto JSON of STEPS steps, and waitedN.json:
for how many nanoseconds of each step its threads waited for a processor, all together. Rank 0 also
writes said.json: the bytes of each bucket, as DistributedDataParallel says them.
"""
import os

# Before torch loads its BLAS.
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'

import json
import pathlib
import sys

import torch
import torch.distributed as dist

sys.dont_write_bytecode = True
import collect

CAP_MIB = 2


def waited():
    """Nanoseconds that threads of this process were ready to run and did not. Source: the second
    number of /proc/PID/task/TID/schedstat (sched-stats of the kernel's documentation)."""
    return sum(int(file.read_text().split()[1])
               for file in pathlib.Path('/proc/self/task').glob('*/schedstat'))


def main():
    script, folder, steps = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group('gloo')
    model, batch, loss, optimizer = collect.made_by(script)
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=CAP_MIB)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(ddp, batch).backward()
        optimizer.step()
    for _ in range(4):
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                record_shapes=True,
                                schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps),
                                on_trace_ready=lambda found: found.export_chrome_trace(
                                    str(folder / f'rank{dist.get_rank()}.json'))) as profile:
        waits = []
        for _ in range(1 + steps):
            before = waited()
            step()
            waits.append(waited() - before)
            profile.step()
        (folder / f'waited{dist.get_rank()}.json').write_text(json.dumps(waits[1:]))
    if dist.get_rank() == 0:
        said = ddp._get_ddp_logging_data()['rebuilt_bucket_sizes']
        (folder / 'said.json').write_text(json.dumps([int(size) for size in said.split(',')]))
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == '__main__':
    main()
