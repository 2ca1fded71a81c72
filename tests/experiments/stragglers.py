#!/usr/bin/env python3
"""Are ranks that differ predicted? Steps of two real ranks of which one is made slower.

On two hosts of tests/links/hosts (needs root), `ddpsim validate` calibrates equal ranks, makes one
of them slower as cluster.exceptions says, and predicts and measures each strategy. A slow NIC is a
host that sends at half the rate: `ddpsim calibrate` measures hosts with equal ones, `ddpsim run`
predicts from that file and the exception, and `ddpsim validate` measures. A quarter of an hour:

    tests/experiments/stragglers.py --json tests/experiments/results/stragglers.json

The targets, over all strategies that communicate:

    |predicted / measured - 1| of the step   at most 4 % in the median
    the rank that the others wait for        named as measured, in each; of a slow NIC its node, as
                                             what sets the pace. Where both sides wait for less than
                                             0.2 % of the step, as for a pause that all-reduces
                                             hide, nobody is waited for, and a name says nothing

Exit code: 0; 3 if a target is not met; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file
import steal  # of tests/links

EXCEPTIONS = ('{rank: 1, compute: 1.3}', '{rank: 1, compute: 2}', '{rank: 0, compute: 1.3}',
              '{rank: 1, pause: 20 ms, at: 40 %}')
NIC, SLOW_RATE = '{node: 1, nic: 500 Mbit/s}', '500mbit'
KEY = ('exception', 'strategy')
MEDIAN, NINE_IN_TEN = 0.04, 0.08
NO_WAIT = 0.002  # of the step


def steps(exception, strategy, predicted_ms, measured):
    return {'exception': exception, 'strategy': strategy,
            'predicted_ms': predicted_ms, 'measured_ms': measured['step_ms'],
            'p10_ms': measured['spread']['step_low_ms'],
            'p90_ms': measured['spread']['step_high_ms'],
            'error': predicted_ms / measured['step_ms'] - 1}


def case(exception, result):
    predicted, measured = result['predicted'], result['measured']
    return {**steps(exception, result['strategy'], predicted['step_ms'], measured),
            'predicted_for': predicted['waited_for'], 'measured_for': measured['waited_for'],
            'predicted_wait_ms': predicted['waited_ms'],
            'measured_wait_ms': measured['waited_ms']}


def validated(arguments, common, exception, file):
    words = ['--set', f'cluster.exceptions=[{exception}]']
    arguments.validate_arguments = common + ' ' + shlex.join(words)
    results = experiment.validate(arguments, arguments.rate, arguments.scenario, [arguments.cap],
                                  file)
    return [case(exception, each) for each in results if each['strategy'] != 'none']


def calibrated(arguments, file):
    with tempfile.TemporaryDirectory(prefix='ddpsim-rendezvous-') as meeting:
        experiment.on_hosts(arguments.rate,
                            [arguments.ddpsim, 'calibrate', arguments.scenario, '--backend', 'gloo',
                             '--rendezvous', f'file:{meeting}', '--interface', 'link0', '--quiet',
                             '-o', file], arguments.limit)


def predicted_over_nic(arguments, calibration):
    """Each strategy's step in ms, and the node whose NICs are said to set the pace."""
    file = calibration.with_name('run.json')
    done = subprocess.run(
        [arguments.ddpsim, 'run', arguments.scenario, '--wide', '--json', file,
         '--set', f'cluster={{calibration: {calibration}, nodes: 2, ranks_per_node: 1, '
                  f'exceptions: [{NIC}]}}',
         '--set', f'training.bucket_cap={arguments.cap:g}MiB'],
        capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    named = re.search(r'the NICs of (node \d+) carry .*, which sets the pace',
                      ' '.join(done.stdout.split()))
    results = json.loads(file.read_text())['results']
    return ({each['strategy']: each['step_ms'] for each in results},
            named[1] if named else None)


def nic_cases(arguments, common, folder):
    calibration = folder / 'equal.yaml'
    calibrated(arguments, calibration)
    predicted, node = predicted_over_nic(arguments, calibration)
    arguments.validate_arguments = f'{common} --calibration {calibration}'
    results = experiment.validate(arguments, f'{arguments.rate},{SLOW_RATE}', arguments.scenario,
                                  [arguments.cap], folder / 'nic.json')
    return [{**steps(NIC, each['strategy'], predicted[each['strategy']], each['measured']),
             'predicted_for': node, 'measured_for': 'node 1',
             'predicted_wait_ms': 0, 'measured_wait_ms': 0} for each in results]


def measured_cases(arguments):
    common, cases = arguments.validate_arguments, []
    wanted = [each for each in (*EXCEPTIONS, NIC) if arguments.only in each]
    with tempfile.TemporaryDirectory(prefix='ddpsim-stragglers-') as scratch:
        for number, exception in enumerate(wanted):
            print(f'{number + 1} of {len(wanted)}: {exception}', file=sys.stderr)
            file = pathlib.Path(scratch) / f'{number}.json'
            if exception == NIC:
                measure = lambda: nic_cases(arguments, common, pathlib.Path(scratch))
            else:
                measure = lambda: validated(arguments, common, exception, file)
            cases += steal.undisturbed(measure)
    return cases


def nobody_waits(each):
    return each['exception'] != NIC and all(
        each[side + '_wait_ms'] < NO_WAIT * each[side + '_ms']
        for side in ('predicted', 'measured'))


def named_right(cases):
    return sum(each['predicted_for'] == each['measured_for'] or nobody_waits(each)
               for each in cases)


def summary(cases):
    return {**experiment.error_summary([each['error'] for each in cases], NINE_IN_TEN),
            'ranks_named_right': named_right(cases)}


def judged(cases):
    of_all, target = summary(cases), experiment.Targets()
    target(f'median error {100 * of_all["median_error"]:.1f} % (target {100 * MEDIAN:g} %), worst '
           f'{100 * of_all["worst_error"]:.1f} %', of_all['median_error'] <= MEDIAN)
    right = of_all['ranks_named_right']
    target(f'the rank waited for is named as measured in {right} of {len(cases)}',
           right == len(cases))
    return target


def row(each):
    def waits(side):
        name, wait = each[side + '_for'] or 'none of them', each[side + '_wait_ms']
        return f'{name}, {wait:.1f} ms' if each['exception'] != NIC else name
    return (f'| {each["exception"]} | {each["strategy"]} | {each["predicted_ms"]:.1f} ms '
            f'| {each["measured_ms"]:.1f} ms ({each["p10_ms"]:.1f}-{each["p90_ms"]:.1f}) '
            f'| {100 * each["error"]:+.1f} % | {waits("predicted")} | {waits("measured")} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    experiment.validate_arguments(parser)
    parser.add_argument('--rate', default='1gbit')
    parser.add_argument('--scenario',
                        default=experiment.ROOT / 'scenarios/examples/mlp-even.yaml')
    parser.add_argument('--cap', type=float, default=4, help='bucket cap, in MiB')
    parser.add_argument('--only', metavar='TEXT', default='',
                        help='exceptions that hold this, such as "nic"')
    arguments = parser.parse_args()
    made = experiment.provenance(arguments.ddpsim, [arguments.rate])
    cases = measured_cases(arguments)
    target = judged(cases)
    settings = {'scenario': pathlib.Path(arguments.scenario).name, 'rate': arguments.rate,
                'cap_mib': arguments.cap, 'steps': arguments.steps}
    print('\n'.join([
        *(f'* {line}' for line in experiment.provenance_lines(made)), '',
        '| one rank is | strategy | predicted | measured (p10-p90) | error | predicted to wait for '
        '| measured |', '|---|---|---|---|---|---|---|', *map(row, cases), '', *target.lines]))
    if arguments.json:
        experiment.add_run(arguments.json, __file__,
                           {**made, 'settings': settings, 'summary': summary(cases),
                            'cases': cases}, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
