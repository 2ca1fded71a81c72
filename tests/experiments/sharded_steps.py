#!/usr/bin/env python3
"""Holds sharded steps against published ones (tests/data/sharded): by the laws alone, and with the
first row of each setup known, to which computation is fitted.

    tests/experiments/sharded_steps.py [--ddpsim PROGRAM]

Peaks of memory stand against those of tests/data/sharded/peaks, and against the memory of the
GPUs that rows ran on.

No constant was fitted to these steps. Most rows are of the first FullyShardedDataParallel, over
flat parameters, and are predicted as fully_shard: both gather a unit at a time and prefetch one.
Where a source does not name its network the file says what it is taken for. Needs no GPU and
measures nothing here.
"""
import argparse
import csv
import functools
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


@functools.cache
def cases(ddpsim):
    found = []
    for lawful, known in zip(scored(ddpsim, ['--laws-only']), scored(ddpsim, [])):
        found.append({'setup': pathlib.Path(lawful['file']).stem, 'row': lawful['label'],
                      'ranks': lawful['ranks'], 'device': lawful['device'],
                      'link': lawful['link'], 'compute': lawful['compute'],
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


def peaks(ddpsim):
    """What each row of peaks.csv is predicted to hold at most, and to reserve, in GiB."""
    lines = [line for line in (DATA / 'peaks/peaks.csv').read_text().splitlines()
             if not line.startswith('#')]
    found = []
    for each in csv.DictReader(lines):
        settings = [word for setting in each['set'].split() for word in ('--set', setting)]
        with tempfile.TemporaryDirectory(prefix='ddpsim-sharded-') as folder:
            file = pathlib.Path(folder, 'run.json')
            scenario = next(DATA.rglob(f'{each["file"]}.yaml'))
            done = subprocess.run([ddpsim, 'run', scenario, *settings,
                                   '--quiet', '--json', file], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            memory = json.loads(file.read_text())['results'][0]['memory']
        found.append({**each, 'measured_gib': float(each['measured_gib']),
                      'allocated_gib': memory['peak_bytes'] / 2**30,
                      'reserved_gib': memory['reserved_bytes'] / 2**30})
    return found


def peak_error(each):
    """Of a GPU's memory: how far below it a peak stays."""
    held = each['allocated_gib' if each['kind'] == 'allocated' else 'reserved_gib']
    return held / each['measured_gib'] - 1


def peak_errors(found):
    """Of those peaks that were published."""
    return experiment.error_summary([peak_error(each) for each in found
                                     if each['kind'] != 'at most'], 0.10)


def peak_row(each):
    error = peak_error(each)
    held = (f'{100 * error:+.1f} %' if each['kind'] != 'at most' else
            'fits' if error <= 0 else 'does not fit')
    return (f'| {each["file"]} | {each["set"] or "as it is"} | {each["kind"]} '
            f'{each["measured_gib"]:g} GiB | {each["reserved_gib"]:.1f} GiB '
            f'| {each["allocated_gib"]:.1f} GiB | {held} |')


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
    held = peaks(arguments.ddpsim)
    print('\n'.join(['', '| setup | set | measured | reserved | allocated | error |',
                     '|---|---|---|---|---|---|', *map(peak_row, held), '']))
    of_peaks = peak_errors(held)
    print(f'* peaks: median {100 * of_peaks["median_error"]:.1f} %, nine in ten within '
          f'{100 * of_peaks["ninth_decile_error"]:.1f} % (targets 4 and 10 %)')
    return 0


if __name__ == '__main__':
    sys.exit(main())
