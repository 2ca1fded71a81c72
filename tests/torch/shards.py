#!/usr/bin/env python3
"""Sharded steps against torch 2.13, every case of every test: fully_shard, FullyShardedDataParallel
and ZeroRedundancyOptimizer, and what CPU ranks compute with them. ctest runs a part of them.

    build/torch/bin/python tests/torch/shards.py [--build build/release]

wants the package installed for that Python (ctest's `wheel: is packed and installed`). Prints how
many cases of each rule O1 to O10 and O12 (tests/README.md) are equal, and exits with 1 unless all
that could run are. O11 is of time: tests/experiments/shards_on_hosts.py.
"""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ['test_fully_shard', 'test_fully_shard_random', 'test_fsdp1', 'test_zero']
PROGRAMS = [
    ('O9: gradients and updates of CPU ranks are those of flat', 'test_backend', '[fsdp],[zero]'),
    ('O12: steps counted by hand, to the tick', 'test_sim', '[fsdp]'),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build/release',
                        help='a build folder (build/release)')
    build = parser.parse_args().build
    wrong = subprocess.run(
        [sys.executable, '-B', '-m', 'pytest', '-p', 'no:cacheprovider', '-q', '--every',
         *(ROOT / f'tests/python/{name}.py' for name in PYTHON)]).returncode
    for what, program, tests in PROGRAMS:
        done = subprocess.run([build / 'tests' / program, tests, '--warn', 'NoTests'], text=True,
                              stdout=subprocess.PIPE)
        said = done.stdout.strip().splitlines() or ['it said nothing']
        if done.returncode:
            print(*said, sep='\n')
        print(f'{what}: {said[-1]}')
        wrong = wrong or done.returncode
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
