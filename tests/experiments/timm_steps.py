#!/usr/bin/env python3
"""Holds steps of described image models against what an RTX 3090 took for them, as the authors of
the library timm published it (tests/data/timm_steps.csv): 67 steps of 58 models that no constant
was fitted to, on a GPU of another generation than the one that the laws were measured on.

    tests/experiments/timm_steps.py [--ddpsim PROGRAM] [--model NAME ...] [--descriptions FOLDER]
                                    [--json FILE]

No constant was fitted to these steps. With them in sight it was found that what convolutions cost
beside their products goes by multiprocessors and not by tensor cores, that products of few rows and
columns are cut into many parts, and that the card's clock is above its data sheet's
(model/kernel/convolution_law.cpp, product_law.cpp, catalogue/devices/rtx3090.yaml).

Models come from the library as it is today, which may have written one or another anew; attention
is unfused, as it was then. --descriptions keeps descriptions in a folder, and takes those that are
there already.

Needs Python with torch, timm (and torchvision, which it imports) and the package ddpsim.
"""
import argparse
import concurrent.futures
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import experiment

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / 'tests/data/timm_steps.csv'
DEVICE = 'rtx3090'
AUTOCAST = 'fp16'

MODEL = '''
import torch
for name in ('nms', 'qnms'):  # of torchvision, where that is built for another torch
    try:
        torch.library.define(f'torchvision::{{name}}', '(Tensor a, Tensor b, float c) -> Tensor')
    except RuntimeError:
        pass
import timm
from timm.layers import set_fused_attn


def make():
    set_fused_attn(False)
    layout = torch.channels_last if {last} else torch.contiguous_format
    try:
        model = timm.create_model('{model}', img_size={size})
    except TypeError:  # convolutional networks take any size
        model = timm.create_model('{model}')
    model = model.train().to(memory_format=layout)
    pictures = torch.randn({batch}, 3, {size}, {size}).contiguous(memory_format=layout)

    def loss(model, batch):
        scores = model(batch[0])
        scores = scores[0] if isinstance(scores, tuple) else scores
        return torch.nn.functional.cross_entropy(scores, batch[1])
    return (model, (pictures, torch.randint(0, 1000, ({batch},))), loss,
            torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
'''


def rows():
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith('#')]
    return list(csv.DictReader(lines))


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, words))}\n{done.stdout}{done.stderr}')
    return done.stdout


def predicted(row, program, folder):
    """Milliseconds of a step."""
    name = f'{row["model"]}-{row["layout"]}'
    source, file = (pathlib.Path(folder, name + ending) for ending in ('.py', '.yaml'))
    if not file.exists():
        source.write_text(MODEL.format(**row, last=row['layout'] == 'last'))
        run([sys.executable, '-W', 'ignore', '-m', 'ddpsim.describe', f'{source}:make',
             '--autocast', AUTOCAST, '--release', '2.6', '-q', '-o', file])
    said = run([program, 'run', file, '--set', f'cluster.device={DEVICE}', '--set',
                'cluster.nodes=1', '--set', 'cluster.ranks_per_node=1', '--set', 'compare=[none]',
                '--quiet', '--json', '-'])
    return json.loads(said)['results'][0]['step_ms']


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--model', action='append')
    parser.add_argument('--descriptions', help='a folder to keep them in')
    parser.add_argument('--json', help='results to which this run is added')
    arguments = parser.parse_args()
    wanted = [row for row in rows() if not arguments.model or row['model'] in arguments.model]
    cases = []
    with tempfile.TemporaryDirectory() as passing, \
            concurrent.futures.ThreadPoolExecutor(2) as workers:
        folder = arguments.descriptions or passing
        steps = workers.map(lambda row: predicted(row, arguments.ddpsim, folder), wanted)
        for row, step in zip(wanted, steps):
            measured = float(row['step_ms'])
            cases.append({'case': f'{row["model"]}, channels {row["layout"]}', 'step_ms': step,
                          'measured_step_ms': measured, 'error': step / measured - 1})
            print(f'{cases[-1]["case"]:44} {step:8.1f} | {measured:6.1f} ms '
                  f'{100 * cases[-1]["error"]:+6.1f} %', flush=True)
    errors = [case['error'] for case in cases]
    sizes = sorted(map(abs, errors))
    print(f'{len(sizes)} steps: median {100 * statistics.median(sizes):.1f} %, nine in ten '
          f'{100 * sizes[-(-9 * len(sizes) // 10) - 1]:.1f} %, worst {100 * sizes[-1]:.1f} %, '
          f'bias {100 * statistics.mean(errors):+.1f} %')
    if arguments.json:
        experiment.add_run(arguments.json, __file__,
                           experiment.rounded({**experiment.computed_now(arguments.ddpsim),
                                               'cases': cases}), ('case',))


if __name__ == '__main__':
    main()
