#!/usr/bin/env python3
"""What torch's Gloo takes to all-reduce, as a table of bytes and microseconds: run as each rank.

    tests/links/hosts 2 1gbit tests/experiments/gloo_all_reduce.py --mebibytes 1 4 16 64

Rank 0 prints, for each size, the least and the median of --times all-reduces, each begun together.
On a busy machine the least is what the links and hosts can do. `algorithm ring` is what torch runs.
"""
import argparse
import os
import statistics
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--mebibytes', type=float, nargs='+', default=[1, 4, 16, 64])
    parser.add_argument('--times', type=int, default=7)
    arguments = parser.parse_args()
    try:
        import torch
        import torch.distributed as distributed
    except ImportError as missing:
        sys.exit(f'gloo_all_reduce: {missing}')
    distributed.init_process_group('gloo')
    torch.set_num_threads(1)
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    if rank == 0:
        print(f'torch {torch.__version__}, {ranks} ranks; bytes, least us, median us')
    for mebibytes in arguments.mebibytes:
        values = torch.ones(int(mebibytes * 2**20) // 4)
        taken = []
        for turn in range(arguments.times + 1):
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(values)
            if turn > 0:  # the first call also sets up
                taken.append(time.perf_counter() - start)
            values.fill_(1)
        if rank == 0:
            least, middle = 1e6 * min(taken), 1e6 * statistics.median(taken)
            print(f'{values.numel() * 4},{least:.0f},{middle:.0f}', flush=True)
    distributed.destroy_process_group()


if __name__ == '__main__':
    main()
