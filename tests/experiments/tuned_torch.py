#!/usr/bin/env python3
"""Does the tuner help real PyTorch? Steps and recommended caps of models ddpsim does not know.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python), for each
rate and model:

    1. ddpsim.profile profiles the model, a process on each host at once (they share this
       machine's memory) that knows of no other; and the link, once per rate and round, under the
       two hosts, without a model
    2. `ddpsim tune` recommends a cap from the two
    3. tests/experiments/torch_ddp.py trains with torch's DistributedDataParallel at seven caps,
       what was recommended and DDP as it is by default among them, in turn

An hour:

    tests/experiments/tuned_torch.py --rounds 3 --profile-steps 60 --link-seconds 120 \\
        --json tests/experiments/results/tuned_torch.json

The models are scripts for ddpsim.profile in tests/data/torch_models, with batches so small that
a step is short: a virtual machine's pace changes from step to step and from minute to minute. With
--rounds all three are done that often, so that profiles and steps see the same ups and downs; the
recommendation is that of the first profile of the first host.

A step predicted is the mean over rounds and hosts, a step measured the mean over rounds of the
median over turns. The targets:

    |predicted / measured - 1| of the step     at most 8 % in nine cases of ten
    recommended / best measured                at most 3 % more, for each rate and model
    recommended / measured by default          at most 1 % more, for each rate and model

By default the first bucket is of 1 MiB and the others of 25 MiB; `bucket_cap_mb=25` would make the
first one as large.

Caps that make the same buckets are one choice, measured by the mean of theirs. Choices are
compared turn by turn, by their share of the turn's mean step; the median of these shares counts.
A step whose 90th percentile is more than 10 % over its 10th is marked with "!".

Said beside it, without a target: how many steps of single rounds are within 8 %; how many would be
at the pace of the training, that is from profiles with all times multiplied by one factor, such
that a step without communication takes what the steps without DDP took that have their turn among
those of the caps (an easier question: what DDP makes of a step, however fast the machine is); and
how many with those steps themselves for a prediction.

What is measured while the host of this virtual machine takes too much of its processors' time is
measured again, whatever came out: steps as torch_ddp.py does (5 %), profiles and links at most
twice (10 %). What is in the folder of --results already is not measured again.

Said first is what the links let through (goodput.py) and whether the machine computes at one pace
(pace.py): where it does not, profiles and steps minutes apart differ, and so do predictions.

Exit code: 0; 3 if a target is not met; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file
import steal  # of tests/links

MIB = experiment.MIB
MILLISECONDS = re.compile(r'([0-9.]+) ms')
DEFAULT_CAP = 0  # DDP as it is by default
STEP_NINE_IN_TEN, OVER_BEST, OVER_DEFAULT = 0.08, 0.03, 0.01
SELF_DISAGREEMENT = 0.10
KEY = ('rate', 'model')  # caps differ between runs
PROFILER = experiment.ROOT / 'python/ddpsim/profile/__main__.py'


# Measuring.

def torch_python():
    """What tools/test made, or the distribution's."""
    made = experiment.ROOT / 'build/torch/bin/python'
    return str(made) if made.exists() else '/usr/bin/python3'


def script(model):
    return experiment.ROOT / f'tests/data/torch_models/{model}.py'


def profiles(arguments, model, folder):
    """A workload profile of each host's process, the first host's first."""
    alone = 'unset WORLD_SIZE; exec "$0" "$1" --script "$2" --steps "$4" --output "$3/$RANK"'
    made = [folder / '0/workload.yaml', folder / '1/workload.yaml']
    if not all(workload.exists() for workload in made):
        command = ['sh', '-c', alone, arguments.python, PROFILER, script(model), folder,
                   arguments.profile_steps]
        steal.undisturbed(lambda: experiment.on_hosts('unlimited', command, arguments.limit))
    return made


def link_calibration(arguments, rate, folder):
    made = folder / 'calibration.yaml'
    if not made.exists():
        command = [arguments.python, PROFILER, '--link-only', '--seconds', arguments.link_seconds,
                   '--output', folder]
        steal.undisturbed(lambda: experiment.on_hosts(rate, command, arguments.limit))
    return made


def measure(arguments, rate, model, caps, file):
    """{cap: result of torch_ddp.py}; that of None: without DDP."""
    if not file.exists():
        experiment.on_hosts(
            rate, [arguments.python, experiment.HERE / 'torch_ddp.py', '--script', script(model),
                   '--caps', ','.join(repr(cap / MIB) for cap in caps),
                   '--steps', arguments.steps, '--warmup', 2, '--no-all-reduce', '--json', file],
            arguments.limit)
    document = json.loads(file.read_text())
    measured_caps = [round(MIB * result['bucket_cap_mb']) for result in document['results']]
    if measured_caps != caps or len(document['none']['step_ms']['all']) != arguments.steps:
        sys.exit(f'{file}: measured with other caps or another number of steps: '
                 'give another --results')
    return {None: document['none'], **dict(zip(caps, document['results']))}


# Predicting.

def ddpsim(arguments, *words):
    done = subprocess.run([arguments.ddpsim, *map(str, words)], capture_output=True, text=True,
                          timeout=arguments.limit)
    if done.returncode != 0:
        sys.exit(f'ddpsim {words[0]}: exit {done.returncode}: {done.stderr.strip()}')
    return json.loads(done.stdout)


def predicted_step(arguments, scenario, cap, strategy='bucketed'):
    result, = ddpsim(arguments, 'run', scenario, '--quiet', '--json', '-',
                     '--set', f'compare=[{strategy}]',
                     *(('--set', f'training.bucket_cap={cap}B') if cap != DEFAULT_CAP else ())
                     )['results']
    return result['step_ms']


def recommended_cap(arguments, scenario):
    tuned = ddpsim(arguments, 'tune', scenario, '--quiet', '--json', '-')
    return tuned['recommended_cap_bytes'] if tuned['pays'] else DEFAULT_CAP


def caps_to_measure(recommended, others, count):
    """`count` of them: the recommended, the default, then the others in the order given."""
    return sorted(list(dict.fromkeys([recommended, DEFAULT_CAP, *others]))[:count])


class Predictor:
    """Steps from a scenario with the profile of each host."""

    def __init__(self, arguments, scenarios):
        self.arguments, self.scenarios = arguments, scenarios
        self.without = [predicted_step(arguments, scenario, DEFAULT_CAP, 'none')
                        for scenario in scenarios]

    def step(self, cap, without=None):
        """Where a step without DDP takes `without` ms; None: as profiled."""
        return statistics.fmean(
            predicted_step(self.arguments, scaled(scenario, without / profiled if without else 1),
                           cap)
            for scenario, profiled in zip(self.scenarios, self.without))


def scaled(scenario, factor):
    """The scenario with all times of its workload profile multiplied."""
    if factor == 1:
        return scenario
    paced = scenario.with_name('paced.yaml')
    profile, paced_profile = (scenario.parent / name
                              for name in ('workload.yaml', 'workload-paced.yaml'))
    paced_profile.write_text(MILLISECONDS.sub(lambda time: f'{factor * float(time[1]):.6f} ms',
                                              profile.read_text()))
    paced.write_text(scenario.read_text().replace(str(profile), str(paced_profile)))
    return paced


# Judging.

class Case:
    """What the rounds say of one cap; an entry of each list for each."""

    def __init__(self, cap, predicted, at_pace, results, without):
        mean = lambda key: statistics.fmean(result['step_ms'][key] for result in results)
        medians = [result['step_ms']['median'] for result in results]
        self.cap, self.predicted = cap, statistics.fmean(predicted)
        self.measured, self.low, self.high = mean('median'), mean('p10'), mean('p90')
        error = lambda steps: statistics.fmean(steps) / self.measured - 1
        self.error, self.error_at_pace = error(predicted), error(at_pace)
        self.error_without = error([result['step_ms']['median'] for result in without])
        self.errors = [step / median - 1 for step, median in zip(predicted, medians)]
        # Turn by turn.
        self.steps = [step for result in results for step in result['step_ms']['all']]
        self.buckets = tuple(results[0]['buckets_bytes'])
        self.made_again = sum(result['step_ms']['made_again'] for result in results)

    def record(self, rate, model, recommended):
        """As it is kept in the results."""
        return {'rate': rate, 'model': model, 'cap_mib': self.cap / MIB,
                'recommended': self.cap == recommended, 'all_reduces': len(self.buckets),
                'predicted_ms': self.predicted, 'measured_ms': self.measured,
                'p10_ms': self.low, 'p90_ms': self.high,
                'error': self.error, 'error_at_pace': self.error_at_pace}

    def row(self, rate, model, recommended):
        name = cap_text(self.cap) + (' (recommended)' if self.cap == recommended else '')
        unsure = ' !' if self.high / self.low - 1 > SELF_DISAGREEMENT else ''
        return (f'| {rate} | {model} | {name} | {len(self.buckets)} | {self.predicted:.1f} ms | '
                f'{self.measured:.1f} ms ({self.low:.1f}-{self.high:.1f}{unsure}) | '
                f'{100 * self.error:+.1f} % | {100 * self.error_at_pace:+.1f} % |')


def choices(cases):
    """Of each choice of buckets, its share of the mean step of a turn; the median over turns."""
    same = {}
    for case in cases:
        same.setdefault(case.buckets, []).append(case.steps)
    steps = {buckets: [statistics.fmean(turn) for turn in zip(*some)]
             for buckets, some in same.items()}
    means = [statistics.fmean(turn) for turn in zip(*steps.values())]
    return {buckets: statistics.median(step / mean for step, mean in zip(some, means))
            for buckets, some in steps.items()}


def noise(cases):
    """How far apart caps that make the same buckets came out, turn by turn, in the median over
    turns; 0 where there are none."""
    apart = lambda one, other: abs(
        statistics.median(a / b for a, b in zip(one.steps, other.steps)) - 1)
    return max((apart(one, other) for one, other in itertools.combinations(cases, 2)
                if one.buckets == other.buckets), default=0)


def cap_text(cap):
    return f'{cap / MIB:.4g} MiB' if cap != DEFAULT_CAP else 'default'


class Place:
    """What the rounds say of a rate and model. `profiled` and `alone`: steps without DDP, by the
    profiles and as measured between the others."""

    def __init__(self, rate, model, recommended, cases, profiled, alone):
        self.rate, self.model, self.recommended, self.cases = rate, model, recommended, cases
        self.profiled, self.alone = profiled, alone
        steps = choices(cases)
        mine, = (steps[case.buckets] for case in cases if case.cap == recommended)
        default, = (steps[case.buckets] for case in cases if case.cap == DEFAULT_CAP)
        self.over_best, self.over_default = mine / min(steps.values()) - 1, mine / default - 1

    def record(self):
        """As it is kept in the results."""
        return {'rate': self.rate, 'model': self.model, 'recommended_mib': self.recommended / MIB,
                'over_best': self.over_best, 'over_default': self.over_default,
                'profiled_without_ddp_ms': self.profiled, 'measured_without_ddp_ms': self.alone}

    def sentence(self):
        return (f'{self.model} at {self.rate}: recommended {cap_text(self.recommended)} takes '
                f'{100 * self.over_best:.1f} % more than the best measured '
                f'(target {100 * OVER_BEST:g} %) and {100 * self.over_default:+.1f} % against '
                f'the default (target {100 * OVER_DEFAULT:+g} %); without DDP '
                f'{self.profiled:.1f} ms by the profiles, {self.alone:.1f} ms between the others')


def run_rounds(arguments, rate, model, others, folder, calibrations):
    """The Place of that rate and model. `calibrations`: of the link as measured in a round, for
    all models."""
    def scenarios_of(number, workloads):
        if (rate, number) not in calibrations:
            calibrations[rate, number] = link_calibration(arguments, rate,
                                                          folder / f'link-{rate}-{number}')
        for workload in workloads:
            scenario = workload.parent / 'scenario.yaml'
            scenario.write_text(f'name: {model} at {rate}\nworkload: {{model: {workload}}}\n'
                                f'cluster: {{calibration: {calibrations[rate, number]}}}\n'
                                'training: {}\n')
            yield scenario

    caps, predicted, at_pace, results, profiled = [], {}, {}, {}, []
    for number in range(arguments.rounds):
        print(f'{model} at {rate}: round {number + 1} of {arguments.rounds}', file=sys.stderr)
        workloads = profiles(arguments, model, folder / f'{rate}-{model}-{number}')
        scenarios = [*scenarios_of(number, workloads)]
        if not caps:
            recommended = recommended_cap(arguments, scenarios[0])
            caps = caps_to_measure(recommended, others, arguments.count)
        measured = measure(arguments, rate, model, caps, folder / f'{rate}-{model}-{number}.json')
        for cap, result in measured.items():
            results.setdefault(cap, []).append(result)
        predictor = Predictor(arguments, scenarios)
        profiled.append(statistics.fmean(predictor.without))
        for cap in caps:
            predicted.setdefault(cap, []).append(predictor.step(cap))
            pace = measured[None]['step_ms']['median']
            at_pace.setdefault(cap, []).append(predictor.step(cap, pace))
    cases = [Case(cap, predicted[cap], at_pace[cap], results[cap], results[None]) for cap in caps]
    alone = statistics.fmean(each['step_ms']['median'] for each in results[None])
    return Place(rate, model, recommended, cases, statistics.fmean(profiled), alone)


def summary(places):
    """What is kept of a run when its cases are measured again."""
    cases = [case for place in places for case in place.cases]
    of = lambda errors: experiment.error_summary(errors, STEP_NINE_IN_TEN)
    return {**of([case.error for case in cases]),
            'at_pace': of([case.error_at_pace for case in cases]),
            'recommended': [place.record() for place in places],
            'noise': max(noise(place.cases) for place in places)}


def judged(places):
    target, of_all = experiment.Targets(), summary(places)
    cases = [case for place in places for case in place.cases]
    for place in places:
        target(place.sentence(),
               place.over_best <= OVER_BEST and place.over_default <= OVER_DEFAULT)

    def within(errors, what):
        """(the share that is, a sentence)"""
        said = experiment.error_summary(errors, STEP_NINE_IN_TEN)
        share = said['cases_within'] / said['cases']
        return share, (f'{100 * share:.0f} % of {said["cases"]} {what} are within '
                       f'{100 * STEP_NINE_IN_TEN:g} %; median {100 * said["median_error"]:.1f} %, '
                       f'worst {100 * said["worst_error"]:.1f} %')
    share, said = within([case.error for case in cases], 'predicted steps')
    target(f'{said} (target: nine in ten)', share >= 0.9)
    for errors, what in (
            ([error for case in cases for error in case.errors], 'steps of single rounds'),
            ([case.error_at_pace for case in cases],
             'steps predicted at the pace of the training'),
            ([case.error_without for case in cases], 'steps without DDP, for a prediction,')):
        target.note(f'no target: {within(errors, what)[1]}')
    target.note(f'noise: caps that make the same buckets came out up to '
                f'{100 * of_all["noise"]:.1f} % apart')
    return target


def arguments_given():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    parser.add_argument('--python', default=torch_python(), help='one that has torch')
    parser.add_argument('--rates', default='1gbit,2gbit')
    parser.add_argument('--models', default='convnet,encoder,recurrent,vision,experts,deep',
                        help='scripts in tests/data/torch_models')
    parser.add_argument('--caps', default='4,1,64,8,16,2',
                        help='in MiB; measured besides the recommended one and the default')
    parser.add_argument('--count', type=int, default=7, help='caps that are measured')
    parser.add_argument('--steps', type=int, default=30,
                        help='timed steps of each cap and round')
    parser.add_argument('--profile-steps', type=int, default=10, help='steps of a profile')
    parser.add_argument('--link-seconds', type=float, default=60,
                        help='about how long the link is measured')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--results',
                        help='folder for all profiles and results; default: one that is removed')
    return parser.parse_args()


def main():
    arguments = arguments_given()
    others = [int(float(cap) * MIB) for cap in arguments.caps.split(',')]
    rates, models = arguments.rates.split(','), arguments.models.split(',')
    with tempfile.TemporaryDirectory(prefix='ddpsim-tuned-') as scratch:
        folder = pathlib.Path(arguments.results or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        made = experiment.provenance_kept(folder, True, arguments.ddpsim, rates)
        calibrations = {}
        places = [run_rounds(arguments, rate, model, others, folder, calibrations)
                  for rate in rates for model in models]

    cases = [case for place in places for case in place.cases]
    again, timed = sum(case.made_again for case in cases), sum(len(case.steps) for case in cases)
    target = judged(places)
    settings = {'batches': 'small', 'steps': arguments.steps, 'rounds': arguments.rounds,
                'profile_steps': arguments.profile_steps, 'link_seconds': arguments.link_seconds,
                'predicted_by': experiment.revision()}
    what = ', '.join(f'{name} {value}' for name, value in settings.items())
    print('\n'.join([
        *(f'* {line}' for line in [*experiment.provenance_lines(made), what]),
        f'* {again} of {again + timed} steps with DDP were made again: the host took more than '
        f'{100 * steal.MOST_STOLEN:g} % of the processors', '',
        "| rate | model | cap | all-reduces | predicted | measured (p10-p90) | error | at the "
        "training's pace |",
        '|---|---|--:|--:|--:|--:|--:|--:|',
        *(case.row(place.rate, place.model, place.recommended)
          for place in places for case in place.cases), '', *target.lines]))
    if arguments.json:
        run = {**made, 'settings': settings, 'summary': summary(places),
               'cases': [case.record(place.rate, place.model, place.recommended)
                         for place in places for case in place.cases]}
        experiment.add_run(arguments.json, __file__, run, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
