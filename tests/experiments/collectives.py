#!/usr/bin/env python3
"""Is every kind of collective predicted? Collectives and messages between real ranks.

On two and on four hosts of tests/links/hosts (needs root), all-gathers, reduce-scatters,
broadcasts, all-to-alls and messages run among all ranks and among groups, several in a row. In
turns, jobs of the sizes that `ddpsim calibrate --collectives all` measures and of others run, so
that a machine whose pace changes does so for both; the others are simulated by a calibration of the
former (run_collectives.cpp). A quarter of an hour:

    tests/experiments/collectives.py --json tests/experiments/results/collectives.json

The targets, from 5 KiB to 63 MiB (of an all-gather the result), over all kinds but the all-reduce:

    |predicted / measured - 1| of a collective   at most 10 % in the median

Exit code: 0; 3 if the target is not met; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import csv
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file

KIB = 1 << 10
SIZES = [KIB * size for size in (5, 12, 48, 192, 768, 3072, 12288, 49152, 64512)]
KEY = ('hosts', 'collective', 'ranks', 'bytes')
MEDIAN, NINE_IN_TEN = 0.10, 0.25


def on_hosts(hosts, arguments, words):
    command = [experiment.LINKS / 'hosts', str(hosts), arguments.rate, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
    if done.returncode != 0:
        print(done.stderr, end='', file=sys.stderr)
        sys.exit(77 if done.returncode == 77 else 1)
    return done.stdout


def case(hosts, row):
    predicted, measured = float(row['predicted_us']), float(row['measured_us'])
    return {'hosts': hosts, 'collective': row['operation'], 'ranks': int(row['ranks']),
            'bytes': int(row['bytes']), 'predicted_us': predicted, 'measured_us': measured,
            'p10_us': float(row['low_us']), 'p90_us': float(row['high_us']),
            'error': predicted / measured - 1}


def cases_of(hosts, arguments):
    columns = ('operation', 'ranks', 'bytes', 'predicted_us', 'measured_us', 'low_us', 'high_us')
    print(f'{hosts} hosts', file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix='ddpsim-rendezvous-') as meeting:
        said = on_hosts(hosts, arguments, [arguments.run_collectives, meeting, 'link0',
                                           arguments.rounds, *SIZES])
    return [case(hosts, row) for row in csv.DictReader(said.splitlines(), columns)]


def groups_of(cases):
    """The cases of each kind and number of ranks."""
    groups = {}
    for each in cases:
        groups.setdefault((each['collective'], each['ranks'], each['hosts']), []).append(each)
    return groups


def median_error(cases):
    return statistics.median(abs(each['error']) for each in cases)


def is_new(each):
    """Not the all-reduce of all ranks, which every calibration has."""
    return each['collective'] != 'all-reduce' or each['ranks'] < each['hosts']


def summary(cases):
    counted = [each for each in cases if is_new(each)]
    return {**experiment.error_summary([each['error'] for each in counted], NINE_IN_TEN),
            'median_by_kind': {f'{kind} among {ranks} of {hosts}': median_error(group)
                               for (kind, ranks, hosts), group in groups_of(cases).items()}}


def judged(cases):
    of_all, target = summary(cases), experiment.Targets()
    target(f'median error {100 * of_all["median_error"]:.1f} % (target {100 * MEDIAN:g} %), nine '
           f'in ten within {100 * of_all["ninth_decile_error"]:.1f} %',
           of_all['median_error'] <= MEDIAN)
    for name, error in of_all['median_by_kind'].items():
        target.note(f'{name}: median error {100 * error:.1f} %')
    return target


def size_text(count):
    return f'{count >> 20} MiB' if count >= 1 << 20 else f'{count >> 10} KiB'


def row(each):
    return (f'| {each["collective"]} | {each["ranks"]} of {each["hosts"]} '
            f'| {size_text(each["bytes"])} | {each["predicted_us"]:.0f} us '
            f'| {each["measured_us"]:.0f} us ({each["p10_us"]:.0f}-{each["p90_us"]:.0f}) '
            f'| {100 * each["error"]:+.1f} % |')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    parser.add_argument('--run-collectives', metavar='PROGRAM',
                        default=experiment.ROOT / 'build/release/tests/run_collectives')
    parser.add_argument('--rate', default='1gbit')
    parser.add_argument('--hosts', type=int, nargs='+', default=[2, 4], choices=[2, 3, 4])
    parser.add_argument('--rounds', type=int, default=5)
    arguments = parser.parse_args()
    made = experiment.provenance(arguments.ddpsim, [arguments.rate])
    cases = [each for hosts in arguments.hosts for each in cases_of(hosts, arguments)]
    target = judged(cases)
    settings = {'rate': arguments.rate, 'hosts': arguments.hosts, 'rounds': arguments.rounds}
    print('\n'.join([
        *(f'* {line}' for line in experiment.provenance_lines(made)), '',
        '| collective | ranks | size | predicted | measured (p10-p90) | error |',
        '|---|---|--:|--:|--:|--:|', *map(row, cases), '', *target.lines]))
    if arguments.json:
        experiment.add_run(arguments.json, __file__,
                           {**made, 'settings': settings, 'summary': summary(cases),
                            'cases': cases}, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
