#!/usr/bin/env python3
"""Holds all-gathers and reduce-scatters by the law against public sweeps (tests/data/collectives).

    tests/experiments/collective_sweeps.py [--fits FOLDER] [--rows]

The law prices them from data sheets. No constant that all-reduces decide comes from these sources;
the two that these sweeps decide are fitted, for each source, without it (fit_ports --shards). A
second table, of rates on 1 to 32 nodes of H100 (fit_ports --rates), decides no constant: that a
rank's own part takes time was read off it. Sources that say that something else ran are apart.
Needs no GPU and measures nothing. The targets, over all rows from 1 MiB whose set-up is known:

    |predicted / measured - 1|   at most 10 % in the median, at most 25 % of nine in ten

Exit code: 0; 3 if a target is not met.
"""
import argparse
import csv
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import experiment  # beside this file

FITS = experiment.ROOT / 'build/release/tests'
MIB = 1 << 20
MEDIAN, NINE_IN_TEN = 0.10, 0.25


def printed(fits, mode):
    done = subprocess.run([pathlib.Path(fits) / 'fit_ports', experiment.ROOT / 'tests/data', mode],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'fit_ports: exit {done.returncode}: {done.stderr.strip()}')
    return csv.reader(done.stdout.splitlines())


def cases(fits):
    """Every row of every sweep, its source left out."""
    return [{'sweep': pathlib.Path(file).name, 'source': source, 'outside': outside == '1',
             'collective': collective, 'ranks': int(ranks), 'bytes': int(size),
             'measured_us': float(measured), 'predicted_us': float(predicted),
             'algorithm': algorithm, 'protocol': protocol, 'bound': bound,
             'error': float(predicted) / float(measured) - 1}
            for (file, source, outside, collective, ranks, size, measured, predicted, algorithm,
                 protocol, bound) in printed(fits, '--shards')]


def rates(fits):
    """What large messages reach; the error is of the time."""
    return [{'collective': collective, 'nodes': int(nodes), 'ranks_per_node': int(ranks),
             'measured': float(measured), 'predicted': float(predicted),
             'error': float(measured) / float(predicted) - 1}
            for collective, nodes, ranks, measured, predicted in printed(fits, '--rates')]


def error_summary(found):
    return experiment.error_summary([each['error'] for each in found], NINE_IN_TEN)


def sweeps_of(found):
    """The cases by sweep."""
    groups = {}
    for each in found:
        groups.setdefault(each['sweep'], []).append(each)
    return groups


def large(found):
    return [each for each in found if each['bytes'] >= MIB]


def small(found):
    return [each for each in found if each['bytes'] < MIB]


def inside(found):
    return [each for each in found if not each['outside']]


def judged(found):
    of_all, target = error_summary(large(inside(found))), experiment.Targets()
    for name, value, limit in (('median error', of_all['median_error'], MEDIAN),
                               ('nine in ten within', of_all['ninth_decile_error'], NINE_IN_TEN)):
        target(f'{name} {100 * value:.1f} % (target {100 * limit:g} %)', value <= limit)
    below = error_summary(small(inside(found)))
    target.note(f'below 1 MiB: median {100 * below["median_error"]:.1f} %, nine in ten within '
                f'{100 * below["ninth_decile_error"]:.1f} % of {below["cases"]} rows')
    return target


def line(name, found):
    def figures(rows):
        if not rows:
            return '- | - | -'
        each = error_summary(rows)
        return (f'{each["cases"]} | {100 * each["median_error"]:.1f} % '
                f'| {100 * each["ninth_decile_error"]:.1f} %')
    return f'| {name} | {figures(large(found))} | {figures(small(found))} |'


def row(each):
    return (f'| {each["sweep"]} | {each["bytes"]} | {each["measured_us"]:.1f} us '
            f'| {each["predicted_us"]:.1f} us | {100 * each["error"]:+.1f} % '
            f'| {each["algorithm"]} {each["protocol"]}, {each["bound"]} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--fits', default=FITS, help='where fit_ports is')
    parser.add_argument('--rows', action='store_true', help='every row, too')
    arguments = parser.parse_args()
    found, of_rates = cases(arguments.fits), rates(arguments.fits)
    groups = sweeps_of(found)
    print('\n'.join([
        '| sweep | rows from 1 MiB | median | nine in ten | rows below | median | nine in ten |',
        '|---|--:|--:|--:|--:|--:|--:|',
        *(line(name + (' (apart)' if rows[0]['outside'] else ''), rows)
          for name, rows in groups.items()),
        line('**all but those apart**', inside(found)), '']))
    if arguments.rows:
        print('\n'.join(['| sweep | bytes | measured | by the law | error | chosen, bound by |',
                         '|---|--:|--:|--:|--:|---|', *map(row, found), '']))
    print('\n'.join(['| collective | nodes | ranks of each | measured | by the law | error |',
                     '|---|--:|--:|--:|--:|--:|',
                     *(f'| {each["collective"]} | {each["nodes"]} | {each["ranks_per_node"]} '
                       f'| {each["measured"]:.0f} GB/s | {each["predicted"]:.0f} GB/s '
                       f'| {100 * each["error"]:+.1f} % |' for each in of_rates), '']))
    target = judged(found)
    each = error_summary(of_rates)
    target.note(f'rates: median {100 * each["median_error"]:.1f} %, nine in ten within '
                f'{100 * each["ninth_decile_error"]:.1f} % of {each["cases"]}')
    print('\n'.join(target.lines))
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
