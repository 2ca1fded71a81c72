#!/usr/bin/env python3
"""How well predictions hold on real links: the steps of every strategy, at several bucket caps.

For every rate and workload, `ddpsim validate` calibrates, predicts and measures on two hosts of
tests/links/hosts (needs root), all strategies and bucket caps in one invocation. A quarter of an
hour:

    tests/experiments/strategies.py --caps 1,4,8,25,64 --steps 10 \\
        --json tests/experiments/results/strategies.json

A case is a rate, a workload, a strategy and, for bucketed, a cap. With --repeats the whole is done
that often, and predicted, measured and their bounds are each the median over repeats. The targets,
checked over all cases:

    |predicted / measured - 1| of the step   at most 4 % in the median, 8 % in nine cases of ten
    |predicted - measured| overlap ratio     at most 0.08 in the median
    regret                                   at most 3 % for each rate and workload

Regret is what trusting the prediction costs: the measured step under the cap predicted best, over
that under the best cap measured, minus 1. Caps that make the same buckets are one choice, measured
by the median of theirs.

A case whose 90th percentile is more than 10 % over its 10th disagrees with itself: it is named, and
counts.

Exit code: 0; 3 if a target is not met; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file

WORKLOADS = ('mlp-even', 'mlp-fat-tail', 'mlp-fat-head')
KEY = ('rate', 'workload', 'strategy', 'cap_mib')

STEP_MEDIAN, STEP_NINE_IN_TEN, OVERLAP_MEDIAN, REGRET = 0.04, 0.08, 0.08, 0.03
SELF_DISAGREEMENT = 0.10


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
        buckets = results[0]['predicted'].get('buckets', [])
        self.buckets = tuple(bucket['bytes'] for bucket in buckets)

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
        return f'{self.cap / experiment.MIB:g} MiB' if self.cap else ''

    def record(self):
        """As it is kept in the results."""
        return {'rate': self.rate, 'workload': self.workload, 'strategy': self.strategy,
                'cap_mib': self.cap / experiment.MIB if self.cap else None,
                'predicted_ms': self.predicted, 'measured_ms': self.measured,
                'p10_ms': self.low, 'p90_ms': self.high, 'error': self.error,
                'predicted_overlap': self.predicted_overlap,
                'measured_overlap': self.measured_overlap}

    def name(self):
        return ' '.join(filter(None, [self.rate, self.workload, self.strategy, self.cap_text()]))


def regrets(cases):
    """Per rate and workload: its name, the regret, the caps predicted best, those measured best."""
    answers = []
    predicted = lambda same: statistics.median(case.predicted for case in same)
    measured = lambda same: statistics.median(case.measured for case in same)
    caps = lambda same: ' = '.join(case.cap_text() for case in same)
    for rate, workload in dict.fromkeys((case.rate, case.workload) for case in cases):
        choices = {}
        for case in cases:
            place = (case.rate, case.workload, case.strategy)
            if place == (rate, workload, 'bucketed') and case.cap:
                choices.setdefault(case.buckets or case.cap, []).append(case)
        if not choices:
            continue
        trusted, best = min(choices.values(), key=predicted), min(choices.values(), key=measured)
        regret = measured(trusted) / measured(best) - 1
        answers.append((f'{rate} {workload}', regret, caps(trusted), caps(best)))
    return answers


def table(cases):
    lines = ['| rate | workload | strategy | cap | predicted | measured (p10-p90) | error '
             '| overlap predicted | measured |', '|---|---|---|--:|--:|--:|--:|--:|--:|']
    for case in cases:
        lines.append(f'| {case.rate} | {case.workload} | {case.strategy} | {case.cap_text()} '
                     f'| {case.predicted:.1f} ms '
                     f'| {case.measured:.1f} ms ({case.low:.1f}-{case.high:.1f}) '
                     f'| {100 * case.error:+.1f} % '
                     f'| {case.predicted_overlap:.2f} | {case.measured_overlap:.2f} |')
    return lines


def summary(cases):
    """What is kept of a run when its cases are measured again."""
    places = regrets(cases)
    return {**experiment.error_summary([case.error for case in cases], STEP_NINE_IN_TEN),
            'median_overlap_error': statistics.median(case.overlap_error for case in cases),
            **({'worst_regret': max(regret for _, regret, _, _ in places)} if places else {})}


def judged(cases, repeats):
    """The targets, and what is said beside them."""
    of_all, target = summary(cases), experiment.Targets()
    target(f'median |error| of the step {100 * of_all["median_error"]:.1f} % over {len(cases)} '
           f'cases (target {100 * STEP_MEDIAN:g} %)', of_all['median_error'] <= STEP_MEDIAN)
    within = of_all['cases_within'] / len(cases)
    target(f'90th percentile {100 * of_all["ninth_decile_error"]:.1f} %, {100 * within:.0f} % of '
           f'cases within {100 * STEP_NINE_IN_TEN:g} % (target: nine in ten)', within >= 0.9)
    target(f'median absolute error of the overlap ratio {of_all["median_overlap_error"]:.3f} '
           f'(target {OVERLAP_MEDIAN:g})', of_all['median_overlap_error'] <= OVERLAP_MEDIAN)
    for name, regret, trusted, best in regrets(cases):
        target(f'regret at {name} {100 * regret:.1f} %: predicted best {trusted}, measured best '
               f'{best} (target {100 * REGRET:g} %)', regret <= REGRET)
    for key in ('rate', 'workload', 'strategy'):
        shares = {}
        for case in cases:
            shares.setdefault(getattr(case, key), []).append(abs(case.error))
        target.note(f'median |error| by {key}: ' + ', '.join(
            f'{value} {100 * statistics.median(some):.1f} %' for value, some in shares.items()))
    worst = max(cases, key=lambda case: abs(case.error))
    target.note(f'worst: {worst.name()}, {100 * worst.error:+.1f} %')
    unsure = [case for case in cases if case.disagreement > SELF_DISAGREEMENT]
    target.note(f'{len(unsure)} of {len(cases)} cases disagree with themselves (p90 / p10 - 1 > '
                f'{100 * SELF_DISAGREEMENT:g} %); all are counted above'
                + ''.join(f'\n  * {case.name()}: {100 * case.disagreement:.0f} %'
                          for case in unsure))
    if repeats > 1:
        apart = [case.between_repeats for case in cases]
        target.note(f'measured steps of {repeats} repeats lie '
                    f'{100 * statistics.median(apart):.1f} % apart in the median, '
                    f'{100 * experiment.percentile(apart, 0.9):.1f} % at the 90th percentile, '
                    f'{100 * max(apart):.1f} % at most')
    return target


def key_of(result):
    return result['strategy'], result['bucket_cap_bytes']


def measured_cases(arguments, folder):
    """A Case for each rate, workload, strategy and cap, with a result of each repeat."""
    caps = [float(cap) for cap in arguments.caps.split(',')]
    places = [(rate, workload) for rate in arguments.rates.split(',')
              for workload in arguments.workloads.split(',')]
    gathered = {place: {} for place in places}  # place -> (strategy, cap) -> a result per repeat
    for repeat in range(1, arguments.repeats + 1):
        for rate, workload in places:
            file = folder / f'{rate}-{workload}-{repeat}.json'
            if arguments.reuse and file.exists():
                results = experiment.read_validation(file)
            else:
                print(f'repeat {repeat} of {arguments.repeats}: {workload} at {rate}',
                      file=sys.stderr)
                scenario = experiment.ROOT / f'scenarios/examples/{workload}.yaml'
                results = experiment.validate(arguments, rate, scenario, caps, file)
            for result in results:
                gathered[rate, workload].setdefault(key_of(result), []).append(result)
    return [Case(*place, results) for place in places for results in gathered[place].values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    experiment.validate_arguments(parser)
    parser.add_argument('--rates', default='1gbit,2gbit,5gbit')
    parser.add_argument('--workloads', default=','.join(WORKLOADS),
                        help='names in scenarios/examples')
    parser.add_argument('--caps', default='1,2,4,8,25,64', help='bucket caps in MiB')
    parser.add_argument('--repeats', type=int, default=1, help='times everything is run')
    parser.add_argument('--results',
                        help='folder for the JSON of all invocations; default: one that is removed')
    parser.add_argument('--reuse', action='store_true',
                        help='do not run again what already lies in --results')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='ddpsim-strategies-') as scratch:
        folder = pathlib.Path(arguments.results or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        made = experiment.provenance_kept(folder, arguments.reuse, arguments.ddpsim,
                                          arguments.rates.split(','))
        cases = measured_cases(arguments, folder)
    target = judged(cases, arguments.repeats)
    note = f'{arguments.steps} steps a case, interleaved; {arguments.repeats} repeat(s)'
    header = [*experiment.provenance_lines(made), note]
    print('\n'.join([*(f'* {line}' for line in header), '', *table(cases), '', *target.lines]))
    if arguments.json:
        settings = {'steps': arguments.steps, 'repeats': arguments.repeats}
        run = {**made, 'settings': settings, 'summary': summary(cases),
               'cases': [case.record() for case in cases]}
        experiment.add_run(arguments.json, __file__, run, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
