#!/usr/bin/env python3
"""Holds steps of FullyShardedDataParallel against published ones (tests/data/sharded): by the laws
alone, and with the first row of each setup known, to which computation is fitted.

    tests/experiments/sharded_steps.py [--ddpsim PROGRAM]

No constant was fitted to these steps. Most rows are of the first FullyShardedDataParallel, over
flat parameters, and are predicted as fully_shard: both gather a unit at a time and prefetch one.
Where a source does not name its network the file says what it is taken for. Needs no GPU and
measures nothing here.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import experiment

DATA = experiment.ROOT / 'tests/data/sharded'


def scored(ddpsim, flags):
    with tempfile.TemporaryDirectory(prefix='ddpsim-sharded-') as folder:
        file = pathlib.Path(folder, 'score.json')
        done = subprocess.run([ddpsim, 'score', *sorted(map(str, DATA.glob('*.yaml'))), *flags,
                               '--quiet', '--json', file], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(file.read_text())['rows']


def cases(ddpsim):
    found = []
    for lawful, known in zip(scored(ddpsim, ['--laws-only']), scored(ddpsim, [])):
        found.append({'setup': pathlib.Path(lawful['file']).stem, 'row': lawful['label'],
                      'ranks': lawful['ranks'], 'device': lawful['device'],
                      'measured_ms': lawful['measured_step_ms'],
                      'by_laws_ms': lawful['predicted_step_ms'], 'by_laws_error': lawful['error'],
                      'one_known_ms': known['predicted_step_ms'], 'is_known': known['calibration'],
                      'one_known_error': known['error']})
    return found


def errors(found, key):
    return [each[key] for each in found if key == 'by_laws_error' or not each['is_known']]


def summary(found):
    return {name: experiment.error_summary(errors(found, key), within)
            for name, key, within in (('by_laws', 'by_laws_error', 0.25),
                                      ('one_known', 'one_known_error', 0.10))}


def row(each):
    known = '-' if each['is_known'] else f'{100 * each["one_known_error"]:+.1f} %'
    return (f'| {each["setup"]} | {each["row"]} | {each["ranks"]} | {each["measured_ms"]:.0f} ms '
            f'| {each["by_laws_ms"]:.0f} ms | {100 * each["by_laws_error"]:+.1f} % | {known} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=experiment.ROOT / 'build/release/tools/ddpsim')
    arguments = parser.parse_args()
    found = cases(arguments.ddpsim)
    of_all = summary(found)
    print('\n'.join(['| setup | row | ranks | measured | by the laws | error | one row known |',
                     '|---|---|---|---|---|---|---|', *map(row, found), '']))
    for name, target in (('by_laws', None), ('one_known', (0.04, 0.10))):
        each = of_all[name]
        held = '' if target is None else (
            f' (targets {100 * target[0]:g} and {100 * target[1]:g} %)')
        print(f'* {name}: median {100 * each["median_error"]:.1f} %, nine in ten within '
              f'{100 * each["ninth_decile_error"]:.1f} %{held}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
