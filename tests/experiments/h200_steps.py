#!/usr/bin/env python3
"""Holds steps of models that nobody measured before, described and priced by the laws and the
tables of a kind of device, against what one H200 took (tests/data/h200).

    tests/experiments/h200_steps.py [--ddpsim PROGRAM] [--tests FOLDER] [--case NAME ...]
                                    [--json FILE]

Each case of steps.json is described from networks.py (`ddpsim describe --release 2.11`) and
predicted on an H200, one rank, without communication. A case has the milliseconds of the step and
of its optimizer, predicted and measured; of forward and of backward the time the device is busy and
the number of kernels, by the profiler's list where there is one (kernels.csv.gz); and the peak of
allocated memory, less what an earlier case had left.

Nothing is fitted here. What of the laws' constants comes from these networks is said where the
constant stands (model/kernel, python/ddpsim/describe/host.py), and in docs/accuracy.md.

Needs Python with torch, transformers and the package ddpsim.
"""
import argparse
import csv
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from experiment import ROOT, add_run, computed_now, rounded

DATA = ROOT / 'tests/data/h200'
FLAGS = {'amp': ['--autocast', 'bf16'], 'last': ['--autocast', 'bf16'], 'tf32': ['--tf32', 'all'],
         'fp32': [], 'bf16': []}
COMPUTE = {'fp32': ['fp32'], 'tf32': ['tf32']}
PASSES = ('forward', 'backward')


def number_format(case):
    """The format in which most products of the case are multiplied."""
    mode = case.rsplit('-', 1)[1]
    return FLAGS[mode][1] if '--autocast' in FLAGS[mode] else mode


def run(words):
    done = subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, words))}\n{done.stdout}{done.stderr}')
    return done.stdout


def describe(case, folder):
    """The case's description, a file."""
    name, mode = case.rsplit('-', 1)
    function = f'{name}_last' if mode == 'last' else name
    file = pathlib.Path(folder, f'{case}.yaml')
    run([sys.executable, '-W', 'ignore', '-m', 'ddpsim.describe', DATA / f'networks.py:{function}',
         *FLAGS[mode], '--release', '2.11', '-q', '-o', file])
    return file


def busy_passes(file, mode, tests):
    """{pass: (ms that the device is busy, kernels, ms of the host)} by the laws."""
    text = run([pathlib.Path(tests) / 'price_description', file, 'h200', *COMPUTE.get(mode, [])])
    found = {each: [0.0, 0, 0.0] for each in (*PASSES, 'optimizer')}
    for row in csv.DictReader(text.splitlines()):
        if row['layer'] == 'step':
            continue
        found[row['pass']][0] += float(row['busy_us']) / 1e3
        found[row['pass']][1] += int(row['launches'])
        found[row['pass']][2] += float(row['host_us']) / 1e3
    return found


def profiled():
    """{(case, pass): [ms, kernels]} of the networks whose kernels were listed."""
    found = {}
    with gzip.open(DATA / 'kernels.csv.gz', 'rt') as file:
        for row in csv.DictReader(file):
            each = found.setdefault((row['case'], row['phase']), [0.0, 0])
            each[0] += float(row['total_us']) / 1e3
            each[1] += int(row['count'])
    return found


def step(file, mode, program):
    """What `ddpsim run` says of the step."""
    compute = COMPUTE.get(mode)
    return json.loads(run(
        [program, 'run', file, '--set', 'cluster.device=h200', '--set', 'cluster.nodes=1', '--set',
         'cluster.ranks_per_node=1', '--set', 'compare=[none]',
         *(['--set', f'workload.compute={compute[0]}'] if compute else []), '--quiet', '--json',
         '-']))['results'][0]


def held(case, measured, kernels, arguments, folder):
    file = describe(case, folder)
    mode = case.rsplit('-', 1)[1]
    said, busy = step(file, mode, arguments.ddpsim), busy_passes(file, mode, arguments.tests)
    row = {'case': case, 'step_ms': said['step_ms'], 'measured_step_ms': measured['step'],
           'error': said['step_ms'] / measured['step'] - 1,
           # Synchronised before and behind: the longer of host and device.
           'optimizer_ms': max(busy['optimizer'][0], busy['optimizer'][2]),
           'measured_optimizer_ms': measured['optimizer']}
    for each in PASSES:
        row[f'{each}_ms'], row[f'measured_{each}_ms'] = said[f'{each}_ms'], measured[each]
        if (case, each) in kernels:
            row[f'{each}_busy_ms'], row[f'{each}_kernels'] = busy[each][:2]
            row[f'measured_{each}_busy_ms'], row[f'measured_{each}_kernels'] = kernels[case, each]
    return row


def spread(errors):
    sizes = sorted(map(abs, errors))
    return statistics.median(sizes), sizes[-(-9 * len(sizes) // 10) - 1], sizes[-1]


def percent(share):
    return f'{100 * share:+.1f} %'


def show(cases):
    print(f'{"case":15} {"step":>8} {"measured":>9} {"error":>8}  {"forward busy":>22} '
          f'{"backward busy":>22}  {"optimizer":>15}')
    for row in cases:
        passes = []
        for each in PASSES:
            if f'{each}_busy_ms' in row:
                mine, real = row[f'{each}_busy_ms'], row[f'measured_{each}_busy_ms']
                passes.append(f'{mine:.1f} | {real:.1f} {percent(mine / real - 1)}')
            else:
                passes.append('')
        optimizer = row['optimizer_ms'] / row['measured_optimizer_ms'] - 1
        print(f'{row["case"]:15} {row["step_ms"]:8.2f} {row["measured_step_ms"]:9.2f} '
              f'{percent(row["error"]):>8}  {passes[0]:>22} {passes[1]:>22}  '
              f'{row["optimizer_ms"]:6.2f} {percent(optimizer):>8}')
    for name, errors in figures(cases).items():
        median, ninth, worst = spread(errors)
        print(f'{name}: median {100 * median:.1f} %, nine in ten {100 * ninth:.1f} %, worst '
              f'{100 * worst:.1f} % of {len(errors)}')


def figures(cases):
    """{what: errors}"""
    busy = [row[f'{each}_busy_ms'] / row[f'measured_{each}_busy_ms'] - 1
            for row in cases for each in PASSES if f'{each}_busy_ms' in row]
    return {'step': [row['error'] for row in cases], **({'busy': busy} if busy else {}),
            'optimizer': [row['optimizer_ms'] / row['measured_optimizer_ms'] - 1 for row in cases]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--tests', default=ROOT / 'build/release/tests',
                        help='where price_description is')
    parser.add_argument('--case', nargs='*', help='only these')
    parser.add_argument('--json', help='results to which this run is added')
    arguments = parser.parse_args()
    steps = json.loads((DATA / 'steps.json').read_text())['cases']
    kernels, cases = profiled(), []
    with tempfile.TemporaryDirectory() as folder:
        for case in arguments.case or steps:
            cases.append(held(case, steps[case], kernels, arguments, folder))
            print(f'{case} done', file=sys.stderr)
    show(cases)
    if arguments.json:
        add_run(arguments.json, __file__,
                rounded({**computed_now(arguments.ddpsim), 'cases': cases}), ('case',))


if __name__ == '__main__':
    main()
