#!/usr/bin/env python3
"""How well predictions hold on real links: the table of predicted against measured steps.

For every rate and workload, `ddpsim validate` calibrates, predicts and measures on two hosts of tests/links/hosts
(needs root), all strategies and bucket caps in one invocation:

    tests/links/accuracy.py --output accuracy.md

A case is a rate, a workload, a strategy and, for bucketed, a cap. With --repeats the whole is done that often, and
predicted, measured and their bounds are each the median over repeats. The targets, checked over all cases:

    |predicted / measured - 1| of the step   at most 4 % in the median, 8 % in nine cases of ten
    |predicted - measured| overlap ratio     at most 0.08 in the median
    regret                                   at most 3 % for each rate and workload

Regret is what trusting the prediction costs: the measured step under the cap predicted best, over that under the
best cap measured, minus 1. Caps that make the same buckets are one choice, measured by the median of theirs.

A case whose 90th percentile is more than 10 % over its 10th disagrees with itself: it is named, and counts.

Exit code: 0; 3 if a target is missed; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import pace  # beside this file

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORKLOADS = ('mlp-even', 'mlp-fat-tail', 'mlp-fat-head')
MIB = 1 << 20

STEP_MEDIAN, STEP_NINE_IN_TEN, OVERLAP_MEDIAN, REGRET = 0.04, 0.08, 0.08, 0.03
SELF_DISAGREEMENT = 0.10


# Running.

def first_line(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else 'unknown'


def revision():
    return first_line(['git', 'describe', '--always', '--dirty'])


def provenance(ddpsim, rates):
    """Lines on when, where and with what, and how fit for measuring that is: what links of those rates let through, and at
    what pace processors compute. Takes half a minute; the lines are printed, too, for what follows takes longer."""
    if not os.access(ddpsim, os.X_OK):
        sys.exit(f'{ddpsim}: no such program; build it or give --ddpsim')
    cpu = 'unknown CPU'
    with open('/proc/cpuinfo') as file:
        for line in file:
            if line.startswith('model name'):
                cpu = line.split(':', 1)[1].strip()
                break
    load = ' '.join(f'{value:.2f}' for value in os.getloadavg())
    lines = [f'{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}',
             f'{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, load before {load}',
             f'revision {revision()}, {first_line([ddpsim, "--version"])}',
             *map(lets_through, rates), pace.measure()[0]]
    print('\n'.join(lines), file=sys.stderr)
    return lines


def provenance_kept(folder, reuse, ddpsim, rates):
    """The lines of provenance.txt in that folder of results; written first unless it may be used as it is."""
    taken = folder / 'provenance.txt'
    if not (reuse and taken.exists()):
        taken.write_text('\n'.join(provenance(ddpsim, rates)))
    return taken.read_text().splitlines()


def lets_through(rate):
    """A line on one stream between two hosts."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-goodput-') as scratch:
        best = float(on_hosts(rate, [HERE / 'goodput.py', f'{scratch}/stop', '--seconds', 5], 300))
    return f'a link of {rate} lets {best:.3g} Gbit/s through (payload is 0.956 of a rate)'


def on_hosts(rate, command, limit):
    """What `command`, run once in each of two hosts, prints; ends this program if it fails."""
    try:
        done = subprocess.run([HERE / 'hosts', '2', rate, *map(str, command)], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        sys.exit(f'not done after {limit:g} s at {rate}: {shlex.join(map(str, command))}')
    if done.returncode != 0:
        print(done.stderr, end='', file=sys.stderr)
        print(f'exit {done.returncode} at {rate}: {shlex.join(map(str, command))}', file=sys.stderr)
        sys.exit(77 if done.returncode == 77 else 1)
    return done.stdout


def validate(arguments, rate, scenario, caps, file):
    """The results of one `ddpsim validate`, also left in `file`."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-rendezvous-') as meeting:
        on_hosts(rate, [arguments.ddpsim, 'validate', scenario, '--backend', 'gloo', '--rendezvous', f'file:{meeting}',
                        '--interface', 'link0', '--caps', ','.join(f'{cap:g}MiB' for cap in caps),
                        '--steps', arguments.steps, '--json', file, *shlex.split(arguments.validate_arguments)],
                 arguments.limit)
    return read(file)


def read(file):
    with open(file) as source:
        document = json.load(source)
    if document['format'] != 'ddpsim.validate/1':
        sys.exit(f'{file}: expected format ddpsim.validate/1, got {document["format"]}')
    return [result for result in document['results'] if result['strategy'] != 'none']


def common_arguments(parser):
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim', help='the program')
    parser.add_argument('--steps', type=int, default=20, help='measured steps of each case')
    parser.add_argument('--limit', type=float, default=1800, help='seconds an invocation may take')
    parser.add_argument('--validate-arguments', default='', help='more of them for `ddpsim validate`, in one word')
    parser.add_argument('--output', help='write what is printed here too')


# Judging.

class Case:
    """What the repeats say of one strategy (and cap) at one rate and workload."""

    def __init__(self, rate, workload, results):
        middle = lambda pick: statistics.median(pick(result) for result in results)
        self.rate, self.workload = rate, workload
        self.strategy, self.cap = results[0]['strategy'], results[0]['bucket_cap_bytes']
        self.predicted = middle(lambda result: result['predicted']['step_ms'])
        self.measured = middle(lambda result: result['measured']['step_ms'])
        self.low = middle(lambda result: result['measured']['spread']['step_low_ms'])
        self.high = middle(lambda result: result['measured']['spread']['step_high_ms'])
        self.predicted_overlap = middle(lambda result: result['predicted']['overlap_ratio'])
        self.measured_overlap = middle(lambda result: result['measured']['overlap_ratio'])
        steps = [result['measured']['step_ms'] for result in results]
        self.between_repeats = (max(steps) - min(steps)) / self.measured
        self.buckets = tuple(bucket['bytes'] for bucket in results[0]['predicted'].get('buckets', []))

    @property
    def error(self):
        return self.predicted / self.measured - 1

    @property
    def overlap_error(self):
        return abs(self.predicted_overlap - self.measured_overlap)

    @property
    def disagreement(self):
        return self.high / self.low - 1

    def cap_text(self):
        return f'{self.cap / MIB:g} MiB' if self.cap else ''

    def name(self):
        return ' '.join(filter(None, [self.rate, self.workload, self.strategy, self.cap_text()]))


def regrets(cases):
    """Per rate and workload: its name, the regret, the caps predicted best and those measured best."""
    answers = []
    for rate, workload in dict.fromkeys((case.rate, case.workload) for case in cases):
        choices = {}
        for case in cases:
            if (case.rate, case.workload, case.strategy) == (rate, workload, 'bucketed') and case.cap:
                choices.setdefault(case.buckets or case.cap, []).append(case)
        if not choices:
            continue
        measured = lambda same: statistics.median(case.measured for case in same)
        trusted = min(choices.values(), key=lambda same: statistics.median(case.predicted for case in same))
        best = min(choices.values(), key=measured)
        caps = lambda same: ' = '.join(case.cap_text() for case in same)
        answers.append((f'{rate} {workload}', measured(trusted) / measured(best) - 1, caps(trusted), caps(best)))
    return answers


def percentile(values, share):
    """The smallest value that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def table(cases):
    lines = ['| rate | workload | strategy | cap | predicted | measured (p10-p90) | error | overlap predicted | measured |',
             '|---|---|---|--:|--:|--:|--:|--:|--:|']
    for case in cases:
        lines.append(f'| {case.rate} | {case.workload} | {case.strategy} | {case.cap_text()} | {case.predicted:.1f} ms '
                     f'| {case.measured:.1f} ms ({case.low:.1f}-{case.high:.1f}) | {100 * case.error:+.1f} % '
                     f'| {case.predicted_overlap:.2f} | {case.measured_overlap:.2f} |')
    return lines


def summary(cases, repeats):
    """Lines, and whether every target was met."""
    errors = [abs(case.error) for case in cases]
    overlap = statistics.median(case.overlap_error for case in cases)
    within = sum(error <= STEP_NINE_IN_TEN for error in errors) / len(errors)
    lines, met = [], True

    def target(text, fine):
        nonlocal met
        met = met and fine
        lines.append(f'* {text}: {"met" if fine else "MISSED"}')

    target(f'median |error| of the step {100 * statistics.median(errors):.1f} % over {len(cases)} cases '
           f'(target {100 * STEP_MEDIAN:g} %)', statistics.median(errors) <= STEP_MEDIAN)
    target(f'90th percentile {100 * percentile(errors, 0.9):.1f} %, {100 * within:.0f} % of cases within '
           f'{100 * STEP_NINE_IN_TEN:g} % (target: nine in ten)', within >= 0.9)
    target(f'median absolute error of the overlap ratio {overlap:.3f} (target {OVERLAP_MEDIAN:g})', overlap <= OVERLAP_MEDIAN)
    for name, regret, trusted, best in regrets(cases):
        target(f'regret at {name} {100 * regret:.1f} %: predicted best {trusted}, measured best {best} '
               f'(target {100 * REGRET:g} %)', regret <= REGRET)
    for key in ('rate', 'workload', 'strategy'):
        shares = {}
        for case in cases:
            shares.setdefault(getattr(case, key), []).append(abs(case.error))
        lines.append(f'* median |error| by {key}: ' + ', '.join(
            f'{value} {100 * statistics.median(some):.1f} %' for value, some in shares.items()))
    worst = max(cases, key=lambda case: abs(case.error))
    lines.append(f'* worst: {worst.name()}, {100 * worst.error:+.1f} %')
    unsure = [case for case in cases if case.disagreement > SELF_DISAGREEMENT]
    lines.append(f'* {len(unsure)} of {len(cases)} cases disagree with themselves (p90 / p10 - 1 > '
                 f'{100 * SELF_DISAGREEMENT:g} %); all are counted above'
                 + ''.join(f'\n  * {case.name()}: {100 * case.disagreement:.0f} %' for case in unsure))
    if repeats > 1:
        apart = [case.between_repeats for case in cases]
        lines.append(f'* measured steps of {repeats} repeats lie {100 * statistics.median(apart):.1f} % apart in the median, '
                     f'{100 * percentile(apart, 0.9):.1f} % at the 90th percentile, {100 * max(apart):.1f} % at most')
    return lines, met


def key(result):
    return result['strategy'], result['bucket_cap_bytes']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser)
    parser.add_argument('--rates', default='1gbit,2gbit,5gbit')
    parser.add_argument('--workloads', default=','.join(WORKLOADS), help='names in scenarios/examples')
    parser.add_argument('--caps', default='1,2,4,8,25,64', help='bucket caps in MiB')
    parser.add_argument('--repeats', type=int, default=1, help='times everything is run')
    parser.add_argument('--results', help='folder for the JSON of every invocation; default: one that is removed')
    parser.add_argument('--reuse', action='store_true', help='do not run again what already lies in --results')
    arguments = parser.parse_args()
    caps = [float(cap) for cap in arguments.caps.split(',')]

    gathered = {}  # (rate, workload) -> (strategy, cap) -> a result per repeat
    with tempfile.TemporaryDirectory(prefix='ddpsim-accuracy-') as scratch:
        folder = pathlib.Path(arguments.results or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        header = provenance_kept(folder, arguments.reuse, arguments.ddpsim, arguments.rates.split(','))
        for repeat in range(1, arguments.repeats + 1):
            for rate in arguments.rates.split(','):
                for workload in arguments.workloads.split(','):
                    file = folder / f'{rate}-{workload}-{repeat}.json'
                    if arguments.reuse and file.exists():
                        results = read(file)
                    else:
                        print(f'repeat {repeat} of {arguments.repeats}: {workload} at {rate}', file=sys.stderr)
                        results = validate(arguments, rate, ROOT / f'scenarios/examples/{workload}.yaml', caps, file)
                    for result in results:
                        gathered.setdefault((rate, workload), {}).setdefault(key(result), []).append(result)
    cases = [Case(*place, results) for place, by_case in gathered.items() for results in by_case.values()]
    lines, met = summary(cases, arguments.repeats)
    note = f'{arguments.steps} steps a case, interleaved; {arguments.repeats} repeat(s)'
    text = '\n'.join([*(f'* {line}' for line in [*header, note]), '', *table(cases), '', *lines]) + '\n'
    print(text, end='')
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    return 0 if met else 3


if __name__ == '__main__':
    sys.exit(main())
