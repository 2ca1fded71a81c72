#!/usr/bin/env python3
"""How many what-ifs Python asks in a second, through the installed package.

    tests/benchmark/what_ifs.py                # on an idle machine, of one core; prints a table
    tests/benchmark/what_ifs.py --json -       # prints JSON, which tests/experiments/speed.py keeps

A figure is the median of --runs, each of 1000 questions of which no two are alike; the first
question, which prepares the rest, is counted by itself.
"""
import argparse
import json
import os
import pathlib
import statistics
import time

import ddpsim

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = {'cs336-xl on two H100': 'scenarios/seeds/cs336-xl-2xh100.yaml',
             'GPT-2 on eight A100': 'scenarios/examples/first.yaml'}
QUESTIONS = {
    'bucket_cap': lambda i: {'bucket_cap': 1_000_000 + 100_003 * i},
    'latency': lambda i: {'latency': 1e-8 * i},
    'bandwidth and bucket_cap': lambda i: {'bandwidth': 1e9 * (1 + i),
                                           'bucket_cap': 1_000_000 + 100_003 * i},
}
SHARDED = pathlib.Path(__file__).with_name('llama3-8b-64xh100.yaml')
QUESTIONS_OF_SHARDED = {'latency': QUESTIONS['latency'],
                        'bandwidth': lambda i: {'bandwidth': 1e9 * (1 + i)}}
NUMBER = 1000


def measure(study, differences, runs):
    """Seconds of NUMBER questions, in the median."""
    taken = []
    for run in range(runs):
        begin = time.perf_counter()
        for i in range(run * NUMBER, (run + 1) * NUMBER):
            study.step_ms(**differences(i))
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def measured(name, file, questions, runs):
    begin = time.perf_counter()
    study = ddpsim.Study(file)
    study.step_ms()
    first = time.perf_counter() - begin
    rows = [{'what': f'{name}: read, priced and asked once', 'value': 1e3 * first, 'unit': 'ms'}]
    for question, differences in questions.items():
        seconds = measure(study, differences, runs)
        rows.append({'what': f'{name}: step with another {question}',
                     'value': 1e6 * seconds / NUMBER, 'unit': 'us'})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--json', choices=('-',), help='print JSON in place of a table')
    arguments = parser.parse_args()
    if hasattr(os, 'sched_setaffinity'):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = []
    for name, file in SCENARIOS.items():
        rows += measured(name, ROOT / file, QUESTIONS, arguments.runs)
    rows += measured('Llama 3 8B under fsdp on 64 H100', str(SHARDED), QUESTIONS_OF_SHARDED,
                     arguments.runs)
    if arguments.json:
        print(json.dumps(rows))
        return
    width = max(len(row['what']) for row in rows)
    for row in rows:
        print(f'{row["what"]:{width}}  {row["value"]:10.1f} {row["unit"]}')


if __name__ == '__main__':
    main()
