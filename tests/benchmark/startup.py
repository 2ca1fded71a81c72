#!/usr/bin/python3
"""How long the program takes from its start to its end: for --version, and for a whole prediction.

    tests/benchmark/startup.py      # prints the least and the median of 30 runs each
    tests/benchmark/startup.py --version-limit 10 --run-limit 30
                                    # exit code 1 if one takes longer (milliseconds)

A limit holds for the least of the runs: what the machine does beside makes a run longer, and none
shorter. The time of an empty program (`true`) is printed as well: it is what the measurement itself
costs. Libraries are in the page cache.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def milliseconds(command, runs):
    """Of each run, after one that does not count."""
    taken = []
    for _ in range(runs + 1):
        begin = time.perf_counter()
        code = subprocess.run(command, stdout=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL).returncode
        taken.append(1000 * (time.perf_counter() - begin))
        if code != 0:
            sys.exit(f'startup.py: {" ".join(map(str, command))}: exit code {code}')
    return taken[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--ddpsim', type=pathlib.Path, default=ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--runs', type=int, default=30)
    parser.add_argument('--version-limit', type=float, metavar='MS')
    parser.add_argument('--run-limit', type=float, metavar='MS')
    arguments = parser.parse_args()
    if not os.access(arguments.ddpsim, os.X_OK):
        sys.exit(f'startup.py: no program {arguments.ddpsim}: build it, or name it with --ddpsim')
    scenario = ROOT / 'scenarios/seeds/cs336-xl-2xh100.yaml'
    cases = [('true', ['true'], None),
             ('ddpsim --version', [arguments.ddpsim, '--version'], arguments.version_limit),
             ('ddpsim run scenarios/seeds/cs336-xl-2xh100.yaml',
              [arguments.ddpsim, 'run', scenario], arguments.run_limit)]
    good = True
    for name, command, limit in cases:
        taken = milliseconds(command, arguments.runs)
        beyond = limit is not None and min(taken) > limit
        good = good and not beyond
        print(f'{name:<50} least {min(taken):6.1f} ms, median {statistics.median(taken):6.1f} ms'
              + (f'  beyond {limit:g} ms' if beyond else ''))
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
