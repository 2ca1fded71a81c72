#!/usr/bin/env python3
"""Holds predicted memory against what PyTorch's allocator counted on an H200.

    tests/experiments/peak_memory.py [--ddpsim PROGRAM] [--json FILE]

Each case of tests/data/h200/steps.json is described (ddpsim describe, from tests/data/h200/
networks.py) and predicted on an H200 (ddpsim run), alone and in DistributedDataParallel with one
rank. A row has, in MB:

    moving    what a step adds to what is there before it: predicted, measured (peak - kept), error
    there     what is there before it, predicted, and what else was there, measured: buckets that an
              earlier case of the same process had left behind (tests/data/h200/README.md)
    peak      predicted, measured less what an earlier case had left, error
    in DDP    the peak of a step in DistributedDataParallel: predicted, measured, error

Below are the median, nine in ten and the worst error, and the most that a prediction is too low.
Nothing is fitted here. Of the law's constants, the size of a transform's square (describe/
workspaces.py) and what an LSTM keeps (describe/recurrent.py) were told by resnet101-fp32 and by the
two LSTMs; all else is counted.

Needs Python with torch, transformers and the package ddpsim. What it prints is kept in results/
peak_memory.md, from which tools/accuracy writes docs/accuracy.md.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / 'tests/data/h200'
# How a mode is described, and how `run` multiplies.
FLAGS = {'amp': ['--autocast', 'bf16'], 'last': ['--autocast', 'bf16'], 'tf32': ['--tf32', 'all'],
         'fp32': [], 'bf16': []}
COMPUTE = {'fp32': ['--set', 'workload.compute=fp32'], 'tf32': ['--set', 'workload.compute=tf32']}
KINDS = ('moving', 'peak', 'in DDP')
THERE = ('parameters_bytes', 'module_buffers_bytes', 'frozen_bytes', 'inputs_bytes',
         'workspaces_bytes', 'optimizer_bytes')


def run(words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, words))}\n{done.stdout}{done.stderr}')
    return done.stdout


def predicted(case, program, folder):
    """Memory of a step alone and in DistributedDataParallel, as `run --json` has it."""
    name, mode = case.rsplit('-', 1)
    function = f'{name}_last' if mode == 'last' else name
    file = pathlib.Path(folder, f'{case}.yaml')
    run([sys.executable, '-W', 'ignore', '-m', 'ddpsim.describe', f'{DATA}/networks.py:{function}',
         *FLAGS[mode], '-q', '-o', file])
    text = run([program, 'run', file, '--set', 'cluster.device=h200', '--set', 'cluster.nodes=1',
                '--set', 'cluster.ranks_per_node=1', '--set', 'compare=[none, bucketed]',
                *COMPUTE.get(mode, []), '--json', '-'])
    memory = {row['strategy']: row['memory'] for row in json.loads(text)['results']}
    return memory['none'], memory['bucketed']


def row_of(case, measured, program, folder):
    alone, in_ddp = predicted(case, program, folder)
    there = sum(alone[field] for field in THERE)
    left = measured['kept'] - there
    pairs = {'moving': (alone['peak_bytes'] - there, measured['peak'] - measured['kept']),
             'peak': (alone['peak_bytes'], measured['peak'] - left),
             'in DDP': (in_ddp['peak_bytes'], measured['ddp']['peak'])}
    return {'case': case, 'there': there, 'left': left,
            **{name: {'predicted': a, 'measured': b, 'error': a / b - 1}
               for name, (a, b) in pairs.items()}}


def nine_in_ten(errors):
    sizes = sorted(map(abs, errors))
    return sizes[math.ceil(0.9 * len(sizes)) - 1]


def summary_of(rows, name):
    errors = [row[name]['error'] for row in rows]
    return {'median': statistics.median(map(abs, errors)), 'nine_in_ten': nine_in_ten(errors),
            'worst': max(map(abs, errors)), 'lowest': min(errors)}


def table(rows):
    """Markdown: a row for each case, in MB, and a summary of errors."""
    def part(pair):
        return (f'{pair["predicted"] / 1e6:.0f} | {pair["measured"] / 1e6:.0f} | '
                f'{100 * pair["error"]:+.1f} %')
    lines = ['| case | moving | measured | error | there | left | peak | measured | error | in DDP '
             '| measured | error |', '|---|' + 11 * '--:|']
    for row in rows:
        lines.append(f'| {row["case"]} | {part(row["moving"])} | {row["there"] / 1e6:.0f} | '
                     f'{row["left"] / 1e6:.0f} | {part(row["peak"])} | {part(row["in DDP"])} |')
    lines += ['', '| | median error | nine in ten | worst | most too low |',
              '|---|--:|--:|--:|--:|']
    for kind in KINDS:
        found = summary_of(rows, kind)
        lines.append(f'| {kind} | {found["median"]:.2%} | {found["nine_in_ten"]:.2%} | '
                     f'{found["worst"]:.2%} | {max(0, -found["lowest"]):.2%} |')
    return '\n'.join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('--ddpsim', default=str(ROOT / 'build/release/tools/ddpsim'))
    parser.add_argument('--json', metavar='FILE', help='writes the rows and their summary')
    arguments = parser.parse_args()
    cases = json.loads((DATA / 'steps.json').read_text())['cases']
    with tempfile.TemporaryDirectory(prefix='ddpsim-memory-') as folder:
        rows = [row_of(case, measured, arguments.ddpsim, folder)
                for case, measured in cases.items()]
    print(table(rows))
    if arguments.json:
        found = {'summary': {kind: summary_of(rows, kind) for kind in KINDS},
                 'cases': rows}
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1) + '\n')


if __name__ == '__main__':
    main()
