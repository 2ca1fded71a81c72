#!/usr/bin/env python3
"""How fast ddpsim itself is: its benchmark, three commands from start to end, and what-ifs asked
from Python. Two minutes.

On an idle machine:

    tests/experiments/speed.py --json tests/experiments/results/speed.json

The benchmark (tests/benchmark, needs Google Benchmark) runs on one core; each figure is the median
of its repetitions. A command counts from its start as a process to its end, with the cores it takes
by itself; each figure is the median of --runs.

Exit code: 0; 1 if something fails.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import experiment  # beside this file

KEY = ('what',)
XL = 'scenarios/seeds/cs336-xl-2xh100.yaml'
# What is kept of the benchmark: its name there, the counter (none: the time), what it is, the unit.
BENCHMARKS = (
    ('engine_events', 'events/s', 'engine: events', 'per second'),
    ('simulate_64_ranks', 'events/s', 'engine with 64 different ranks: events', 'per second'),
    ('plan_and_simulate_xl', None,
     'one cs336-xl `bucketed` step (4009 tasks), built and simulated', 'us'),
    ('build_xl', None, 'of which its schedule is built', 'us'),
    ('plan_and_simulate_sharded', None,
     'one `fsdp` step of Llama 3 8B on 64 GPUs, built and simulated', 'ms'),
    ('read_and_price_xl', None, 'its scenario is read and priced', 'ms'),
    ('tuner_steps_xl/gradients per bucket:50', 'steps/s',
     'tuner: full steps of cs336-xl with 9 buckets', 'per second'),
    ('tuner_steps_xl/gradients per bucket:5', 'steps/s',
     'tuner: full steps of cs336-xl with 87 buckets', 'per second'),
    ('tuner_steps_xl/gradients per bucket:1', 'steps/s',
     'tuner: full steps of cs336-xl with 435 buckets', 'per second'),
    ('tune_xl', None, 'tuner: all of cs336-xl on one core', 'ms'),
)
COMMANDS = (('--version',), ('run', XL), ('tune', XL))


def benchmarks(program, repetitions):
    done = subprocess.run(
        ['taskset', '-c', str(min(os.sched_getaffinity(0))), program, '--benchmark_format=json',
         f'--benchmark_repetitions={repetitions}'], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{program}: exit {done.returncode}: {done.stderr.strip()}')
    found = {each['run_name']: each for each in json.loads(done.stdout)['benchmarks']
             if repetitions == 1 or each.get('aggregate_name') == 'median'}
    return [{'what': what, 'value': found[name][counter or 'real_time'], 'unit': unit}
            for name, counter, what, unit in BENCHMARKS]


def commands(ddpsim, runs):
    for command in COMMANDS:
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            subprocess.run([ddpsim, *command], cwd=experiment.ROOT, check=True,
                           stdout=subprocess.DEVNULL)
            times.append(1e3 * (time.perf_counter() - start))
        yield {'what': f'`ddpsim {" ".join(command)}`', 'value': statistics.median(times),
               'unit': 'ms'}


def what_ifs(python):
    """Questions that Python asks of a study, through the installed package."""
    done = subprocess.run([python, experiment.ROOT / 'tests/benchmark/what_ifs.py', '--json', '-'],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'what_ifs.py: exit {done.returncode}: {done.stderr.strip()}')
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=experiment.ROOT / 'build/release/tools/ddpsim',
                        help='the program')
    parser.add_argument('--benchmark',
                        default=experiment.ROOT / 'build/release/tests/ddpsim_benchmark',
                        help='its benchmark')
    parser.add_argument('--python', default=experiment.ROOT / 'build/torch/bin/python',
                        help='a Python with the package ddpsim; without one that part is left out')
    parser.add_argument('--repetitions', type=int, default=5, help='of the benchmark')
    parser.add_argument('--runs', type=int, default=20, help='of each command')
    parser.add_argument('--json', help='add this run to the results in this file')
    arguments = parser.parse_args()
    for program in (arguments.ddpsim, arguments.benchmark):
        if not os.access(program, os.X_OK):
            sys.exit(f'{program}: no such program; build it')
    made = {**experiment.provenance(arguments.ddpsim),
            'conditions': [experiment.pace.measure()[0]]}
    cases = [*benchmarks(arguments.benchmark, arguments.repetitions),
             *commands(pathlib.Path(arguments.ddpsim).resolve(), arguments.runs)]
    if os.access(arguments.python, os.X_OK):
        cases += what_ifs(arguments.python)
    print('\n'.join([*(f'* {line}' for line in experiment.provenance_lines(made)), '',
                     *(f'{case["what"]}: {case["value"]:.4g} {case["unit"]}' for case in cases)]))
    if arguments.json:
        settings = {'repetitions': arguments.repetitions, 'runs': arguments.runs}
        experiment.add_run(arguments.json, __file__,
                           {**made, 'settings': settings, 'summary': {}, 'cases': cases}, KEY)


if __name__ == '__main__':
    sys.exit(main())
