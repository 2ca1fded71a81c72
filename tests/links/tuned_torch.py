#!/usr/bin/env python3
"""Does the tuner help real PyTorch? Predicted against measured steps of models ddpsim does not know, and the cap it recommends.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python), for each rate and model:

    1. tools/torch_profile.py profiles the model, a process on each host at once (they share this machine's memory) that
       knows of no other; and the link, once per rate and round, under the two hosts, without a model
    2. `ddpsim tune` recommends a cap from the two
    3. tests/links/torch_ddp.py trains with torch's DistributedDataParallel at seven caps, the recommended one and the
       default of 25 MiB among them, in turn

    tests/links/tuned_torch.py --output tuned.md

The models are scripts for torch_profile.py in tests/data/torch_models, with batches so small that a step is short: a virtual
machine's pace changes from step to step and from minute to minute. With --rounds all three are done that often, so that profiles and steps see the same ups and downs; the recommendation is
that of the first profile of the first host.

A step predicted is the mean over rounds and hosts, a step measured the mean over rounds of the median over turns. The targets:

    |predicted / measured - 1| of the step     at most 8 % in nine cases of ten
    recommended / best measured                at most 3 % more, for each rate and model
    recommended / measured at 25 MiB           at most 1 % more, for each rate and model

Caps that make the same buckets are one choice, measured by the mean of theirs. Choices are compared turn by turn, by their share of the
turn's mean step; the median of these shares counts. A step whose 90th percentile is more than 10 % over its 10th is marked with "!".

Said beside it, without a target: how many steps of single rounds are within 8 %; how many would be at the pace of the training,
that is from profiles with all times multiplied by one factor, such that a step without communication takes what the steps without DDP took that have their turn
among those of the caps (an easier question: what DDP makes of a step, however fast the machine is); and how many with those steps themselves for a prediction.

What is measured while the host of this virtual machine takes too much of its processors' time is measured again,
whatever came out: steps as torch_ddp.py does (5 %), profiles and links at most twice (10 %). What is in the folder of
--results already is not measured again.

Said first is what the links let through (goodput.py) and whether the machine computes at one pace (pace.py): where it does
not, profiles and steps minutes apart differ, and targets may be missed.

Exit code: 0; 3 if a target is missed; 77 where hosts cannot be made; 1 if a run fails.
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
import accuracy  # beside this file
import steal

MIB = accuracy.MIB
MILLISECONDS = re.compile(r'([0-9.]+) ms')
DEFAULT_CAP = 25 * MIB
STEP_NINE_IN_TEN, OVER_BEST, OVER_DEFAULT = 0.08, 0.03, 0.01
PROFILER = accuracy.ROOT / 'tools/torch_profile.py'


def script(model):
    return accuracy.ROOT / f'tests/data/torch_models/{model}.py'


def profiles(arguments, model, folder):
    """A workload profile of each host's process, the first host's first."""
    alone = 'unset WORLD_SIZE; exec "$0" "$1" --script "$2" --steps "$4" --output "$3/$RANK"'
    made = [folder / '0/workload.yaml', folder / '1/workload.yaml']
    if not all(workload.exists() for workload in made):
        steal.undisturbed(lambda: accuracy.on_hosts(
            'unlimited', ['sh', '-c', alone, arguments.python, PROFILER, script(model), folder, arguments.profile_steps],
            arguments.limit))
    return made


def link_calibration(arguments, rate, folder):
    made = folder / 'calibration.yaml'
    if not made.exists():
        steal.undisturbed(lambda: accuracy.on_hosts(rate, [arguments.python, PROFILER, '--link-only', '--seconds', arguments.link_seconds,
                                                           '--output', folder], arguments.limit))
    return made


def ddpsim(arguments, *words):
    done = subprocess.run([arguments.ddpsim, *map(str, words)], capture_output=True, text=True, timeout=arguments.limit)
    if done.returncode != 0:
        sys.exit(f'ddpsim {words[0]}: exit {done.returncode}: {done.stderr.strip()}')
    return json.loads(done.stdout)


def predicted_step(arguments, scenario, cap, strategy='bucketed'):
    result, = ddpsim(arguments, 'run', scenario, '--quiet', '--json', '-', '--set', f'compare=[{strategy}]',
                     '--set', f'training.bucket_cap={cap}B')['results']
    return result['step_ms']


def recommended_cap(arguments, scenario):
    return ddpsim(arguments, 'tune', scenario, '--quiet', '--json', '-')['recommended_cap_bytes']


def measure(arguments, rate, model, caps, file):
    """{cap: result of torch_ddp.py}; that of None: without DDP."""
    if not file.exists():
        accuracy.on_hosts(rate, [arguments.python, accuracy.HERE / 'torch_ddp.py', '--script', script(model),
                                 '--caps', ','.join(repr(cap / MIB) for cap in caps), '--steps', arguments.steps,
                                 '--warmup', 2, '--no-all-reduce', '--json', file], arguments.limit)
    document = json.loads(file.read_text())
    if [round(MIB * result['bucket_cap_mb']) for result in document['results']] != caps \
            or len(document['none']['step_ms']['all']) != arguments.steps:
        sys.exit(f'{file}: measured with other caps or another number of steps: give another --results')
    return {None: document['none'], **dict(zip(caps, document['results']))}


def caps_to_measure(recommended, others, count):
    """`count` of them: the recommended, the default, then the others in the order given."""
    return sorted(list(dict.fromkeys([recommended, DEFAULT_CAP, *others]))[:count])


class Predictor:
    """Steps from a scenario with the profile of each host."""

    def __init__(self, arguments, scenarios):
        self.arguments, self.scenarios = arguments, scenarios
        self.without = [predicted_step(arguments, scenario, DEFAULT_CAP, 'none') for scenario in scenarios]

    def step(self, cap, without=None):
        """Where a step without DDP takes `without` ms; None: as profiled."""
        return statistics.fmean(
            predicted_step(self.arguments, scaled(scenario, without / profiled if without else 1), cap)
            for scenario, profiled in zip(self.scenarios, self.without))


def scaled(scenario, factor):
    """The scenario with all times of its workload profile multiplied."""
    if factor == 1:
        return scenario
    paced = scenario.with_name('paced.yaml')
    workload = (scenario.parent / 'workload.yaml').read_text()
    (scenario.parent / 'workload-paced.yaml').write_text(
        MILLISECONDS.sub(lambda time: f'{factor * float(time[1]):.6f} ms', workload))
    paced.write_text(scenario.read_text().replace(str(scenario.parent / 'workload.yaml'), str(scenario.parent / 'workload-paced.yaml')))
    return paced


class Case:
    """What the rounds say of one cap; an entry of each list for each."""

    def __init__(self, cap, predicted, at_pace, results, without):
        mean = lambda key: statistics.fmean(result['step_ms'][key] for result in results)
        medians = [result['step_ms']['median'] for result in results]
        self.cap = cap
        self.predicted, self.measured, self.low, self.high = statistics.fmean(predicted), mean('median'), mean('p10'), mean('p90')
        error = lambda steps: statistics.fmean(steps) / self.measured - 1
        self.error, self.error_at_pace = error(predicted), error(at_pace)
        self.error_without = error([result['step_ms']['median'] for result in without])
        self.errors = [step / median - 1 for step, median in zip(predicted, medians)]
        self.steps = [step for result in results for step in result['step_ms']['all']]  # turn by turn
        self.buckets = tuple(results[0]['buckets_bytes'])
        self.made_again = sum(result['step_ms']['made_again'] for result in results)


def choices(cases):
    """Of each choice of buckets, its share of the mean step of a turn; the median over all turns."""
    same = {}
    for case in cases:
        same.setdefault(case.buckets, []).append(case.steps)
    steps = {buckets: [statistics.fmean(turn) for turn in zip(*some)] for buckets, some in same.items()}
    means = [statistics.fmean(turn) for turn in zip(*steps.values())]
    return {buckets: statistics.median(step / mean for step, mean in zip(some, means)) for buckets, some in steps.items()}


def noise(cases):
    """How far apart caps that make the same buckets came out, turn by turn, in the median over turns; 0 where there are none."""
    apart = lambda one, other: abs(statistics.median(a / b for a, b in zip(one.steps, other.steps)) - 1)
    return max((apart(one, other) for one, other in itertools.combinations(cases, 2) if one.buckets == other.buckets), default=0)


def cap_text(cap):
    return f'{cap / MIB:.4g} MiB'


def run_rounds(arguments, rate, model, others, folder, calibrations):
    """(recommended cap, a Case for each cap, steps without DDP: as profiled, as measured between the others)."""
    def scenarios_of(number, workloads):
        """Of the link as measured in that round, for all models."""
        if (rate, number) not in calibrations:
            calibrations[rate, number] = link_calibration(arguments, rate, folder / f'link-{rate}-{number}')
        calibration = calibrations[rate, number]
        for workload in workloads:
            scenario = workload.parent / 'scenario.yaml'
            scenario.write_text(f'name: {model} at {rate}\nworkload: {{model: {workload}}}\n'
                                f'cluster: {{calibration: {calibration}}}\ntraining: {{}}\n')
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
            at_pace.setdefault(cap, []).append(predictor.step(cap, measured[None]['step_ms']['median']))
    cases = [Case(cap, predicted[cap], at_pace[cap], results[cap], results[None]) for cap in caps]
    return recommended, cases, (statistics.fmean(profiled), statistics.fmean(each['step_ms']['median'] for each in results[None]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=accuracy.ROOT / 'build/release/tools/ddpsim', help='the program')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has torch')
    parser.add_argument('--rates', default='1gbit,2gbit')
    parser.add_argument('--models', default='convnet,encoder,recurrent', help='scripts in tests/data/torch_models')
    parser.add_argument('--caps', default='4,1,64,8,16,2', help='in MiB; measured besides the recommended one and 25')
    parser.add_argument('--count', type=int, default=7, help='caps that are measured')
    parser.add_argument('--steps', type=int, default=30, help='timed steps of each cap and round')
    parser.add_argument('--profile-steps', type=int, default=10, help='steps of a profile')
    parser.add_argument('--link-seconds', type=float, default=60, help='about how long the link is measured')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--limit', type=float, default=1800, help='seconds an invocation may take')
    parser.add_argument('--results', help='folder for all profiles and results; default: one that is removed')
    parser.add_argument('--output', help='write what is printed here too')
    arguments = parser.parse_args()
    others = [int(float(cap) * MIB) for cap in arguments.caps.split(',')]

    rows, judged, cases_of_all, met, calibrations = [], [], [], True, {}
    apart = 0

    def target(text, fine):
        nonlocal met
        met = met and fine
        judged.append(f'* {text}: {"met" if fine else "MISSED"}')

    with tempfile.TemporaryDirectory(prefix='ddpsim-tuned-') as scratch:
        folder = pathlib.Path(arguments.results or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        header = accuracy.provenance_kept(folder, True, arguments.ddpsim, arguments.rates.split(','))
        for rate in arguments.rates.split(','):
            for model in arguments.models.split(','):
                recommended, cases, (profiled, alone) = run_rounds(arguments, rate, model, others, folder, calibrations)
                steps = choices(cases)
                mine, = (steps[case.buckets] for case in cases if case.cap == recommended)
                default, = (steps[case.buckets] for case in cases if case.cap == DEFAULT_CAP)
                best = min(steps.values())
                apart = max(apart, noise(cases))
                cases_of_all += cases
                for case in cases:
                    name = cap_text(case.cap) + (' (recommended)' if case.cap == recommended else '')
                    unsure = ' !' if case.high / case.low - 1 > accuracy.SELF_DISAGREEMENT else ''
                    rows.append(f'| {rate} | {model} | {name} | {len(case.buckets)} | {case.predicted:.1f} ms | '
                                f'{case.measured:.1f} ms ({case.low:.1f}-{case.high:.1f}{unsure}) | {100 * case.error:+.1f} % | {100 * case.error_at_pace:+.1f} % |')
                target(f'{model} at {rate}: recommended {cap_text(recommended)} takes {100 * (mine / best - 1):.1f} % more than '
                       f'the best measured (target {100 * OVER_BEST:g} %) and {100 * (mine / default - 1):+.1f} % against '
                       f'25 MiB (target {100 * OVER_DEFAULT:+g} %); without DDP {profiled:.1f} ms '
                       f'by the profiles, {alone:.1f} ms between the others',
                       mine <= best * (1 + OVER_BEST) and mine <= default * (1 + OVER_DEFAULT))

    def within(errors, what):
        """(the share that is, a sentence)"""
        sizes = [abs(error) for error in errors]
        share = sum(size <= STEP_NINE_IN_TEN for size in sizes) / len(sizes)
        return share, (f'{100 * share:.0f} % of {len(sizes)} {what} are within {100 * STEP_NINE_IN_TEN:g} %; '
                       f'median {100 * statistics.median(sizes):.1f} %, worst {100 * max(sizes):.1f} %')
    share, said = within([case.error for case in cases_of_all], 'predicted steps')
    target(f'{said} (target: nine in ten)', share >= 0.9)
    for errors, what in (([error for case in cases_of_all for error in case.errors], 'steps of single rounds'),
                         ([case.error_at_pace for case in cases_of_all], 'steps predicted at the pace of the training'),
                         ([case.error_without for case in cases_of_all], 'steps without DDP, for a prediction,')):
        judged.append(f'* no target: {within(errors, what)[1]}')
    judged.append(f'* noise: caps that make the same buckets came out up to {100 * apart:.1f} % apart')
    made_again, made = sum(case.made_again for case in cases_of_all), sum(len(case.steps) for case in cases_of_all)
    text = '\n'.join([*(f'* {line}' for line in [*header, f'predicted by revision {accuracy.revision()}']),
                      f'* {arguments.steps} steps a cap, {arguments.rounds} round(s), each after profiles of {arguments.profile_steps} steps, one thread of kernels per rank',
                      f'* {made_again} of {made_again + made} steps with DDP were made again: the host took more than {100 * steal.MOST_STOLEN:g} % of the processors', '',
                      '| rate | model | cap | all-reduces | predicted | measured (p10-p90) | error | at the training\'s pace |',
                      '|---|---|--:|--:|--:|--:|--:|--:|', *rows, '', *judged]) + '\n'
    print(text, end='')
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    return 0 if met else 3


if __name__ == '__main__':
    sys.exit(main())
