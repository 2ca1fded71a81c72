#!/usr/bin/env python3
"""Does the tuner help real PyTorch? Predicted against measured steps of models ddpsim does not know, and the cap it recommends.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python), for each rate and model:

    1. tools/torch_profile.py profiles the model, a process on each host at once (they share this machine's memory) that
       knows of no other; and the link, once per rate and round, under the two hosts, without a model
    2. `ddpsim tune` recommends a cap from the two
    3. tests/links/torch_ddp.py trains with torch's DistributedDataParallel at seven caps, the recommended one and the
       default of 25 MiB among them, in turn

    tests/links/tuned_torch.py --output tuned.md

The models are scripts for torch_profile.py in tests/data/torch_models. With --rounds all three are done that often; the
recommendation is that of the first profile of the first host.

A virtual machine can become half as fast from one half minute to the next, with nothing stolen, and DDP cannot be
held against a profile from another time then. So there is a step without DDP before each pair of steps of a cap and behind it
(--pace of torch_ddp.py), and the pair is predicted from the profiles with all times multiplied by one factor, such that a
step without communication takes what those two took. So what is predicted is what DDP makes of a step, and when; steps
with DDP have no part in it. A case is the median over pairs of predicted / measured, predictions being the mean of those from
both hosts' profiles. Said beside it: how many steps the profiles as they are predict, which is what a user has, and how many
those steps without DDP would do for. The targets:

    |predicted / measured - 1| of the step     at most 8 % in nine cases of ten
    recommended / best measured                at most 3 % more, for each rate and model
    recommended / measured at 25 MiB           at most 1 % more, for each rate and model

Caps that make the same buckets are one choice, measured by the mean of theirs. Choices are compared turn by turn, by
their share of the turn's mean step; the median of these shares counts. A step whose 90th percentile is more than 10 % over
its 10th is marked with "!".

What is measured while the host of this virtual machine takes too much of its processors' time is measured again,
whatever came out: steps as torch_ddp.py does (5 %), profiles and links at most twice (10 %). What is in the folder of
--results already is not measured again.

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
import typing

sys.dont_write_bytecode = True
import accuracy  # beside this file
import steal

MIB = accuracy.MIB
MILLISECONDS = re.compile(r'([0-9.]+) ms')
DEFAULT_CAP = 25 * MIB
IN_A_ROW = 2  # steps of a cap before the next cap's turn
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
        steal.undisturbed(lambda: accuracy.on_hosts(rate, [arguments.python, PROFILER, '--link-only', '--output', folder],
                                                    arguments.limit))
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


def recommended_cap(arguments, scenario, candidates):
    """What `ddpsim tune` says, or, of a ddpsim without that command, the best of the candidates."""
    if subprocess.run([arguments.ddpsim, 'tune', '--help'], capture_output=True).returncode != 0:
        print('this ddpsim has no tune: the best predicted of the caps to be measured is taken', file=sys.stderr)
        return min(candidates, key=lambda cap: predicted_step(arguments, scenario, cap))
    said = ddpsim(arguments, 'tune', scenario, '--quiet', '--json', '-')
    return said.get('recommended_cap_bytes', said['best_cap_bytes'])  # what stays good if link or kernels are off


def measure(arguments, rate, model, caps, file):
    """{cap: [Pair]}, {cap: result of torch_ddp.py}."""
    if not file.exists():
        accuracy.on_hosts(rate, [arguments.python, accuracy.HERE / 'torch_ddp.py', '--script', script(model),
                                 '--caps', ','.join(repr(cap / MIB) for cap in caps), '--steps', arguments.steps,
                                 '--in-a-row', IN_A_ROW, '--untimed', 1, '--warmup', 2, '--pace', '--no-all-reduce', '--json', file],
                          arguments.limit)
    document = json.loads(file.read_text())
    results, without = document['results'], document['none']['step_ms']['all']
    around = [statistics.fmean(two) for two in zip(without, without[1:])]  # each pair, turn by turn
    pairs = {}
    for place, (cap, result) in enumerate(zip(caps, results)):
        steps = result['step_ms']['all']
        pairs[cap] = [Pair(statistics.fmean(steps[IN_A_ROW * turn:IN_A_ROW * (turn + 1)]), around[turn * len(caps) + place])
                      for turn in range(len(steps) // IN_A_ROW)]
    return pairs, dict(zip(caps, results))


def caps_to_measure(recommended, others, count):
    """`count` of them: the recommended, the default, then the others in the order given."""
    return sorted(list(dict.fromkeys([recommended, DEFAULT_CAP, *others]))[:count])


class Pair(typing.NamedTuple):
    """Steps of a cap in a row, in ms."""
    measured: float  # their mean
    without: float   # the mean of those without DDP before and behind


class Predictor:
    """Steps at the pace of the moment, from a scenario with the profile of each host."""

    def __init__(self, arguments, scenarios):
        self.arguments, self.scenarios = arguments, scenarios
        self.without = [predicted_step(arguments, scenario, DEFAULT_CAP, 'none') for scenario in scenarios]

    def step(self, cap, without=None):
        """Where a step without DDP takes `without` ms; None: as profiled."""
        return statistics.fmean(
            predicted_step(self.arguments, at_pace(scenario, without / profiled if without else 1), cap)
            for scenario, profiled in zip(self.scenarios, self.without))


def at_pace(scenario, factor):
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
    """What the rounds say of one cap."""

    def __init__(self, cap, pairs, predicted, as_profiled, results):
        middle = lambda pick: statistics.median(pick(result['step_ms']) for result in results)
        self.cap, self.pairs = cap, pairs
        self.predicted = statistics.median(predicted)
        self.measured = statistics.median(pair.measured for pair in pairs)
        self.error = statistics.median(each / pair.measured for each, pair in zip(predicted, pairs)) - 1
        self.error_as_profiled = statistics.median(as_profiled) / self.measured - 1
        self.error_without = statistics.median(pair.without / pair.measured for pair in pairs) - 1
        self.low, self.high = middle(lambda step: step['p10']), middle(lambda step: step['p90'])
        self.buckets = tuple(results[0]['buckets_bytes'])
        self.made_again = sum(result['step_ms']['made_again'] for result in results)


def choices(cases):
    """Of each choice of buckets, its share of the mean step of a turn; the median over all turns."""
    turns = {}
    for case in cases:
        turns.setdefault(case.buckets, []).append([pair.measured for pair in case.pairs])
    steps = {buckets: [statistics.fmean(same) for same in zip(*some)] for buckets, some in turns.items()}
    means = [statistics.fmean(column) for column in zip(*steps.values())]
    return {buckets: statistics.median(step / mean for step, mean in zip(some, means)) for buckets, some in steps.items()}


def noise(cases):
    """How far apart caps that make the same buckets came out, turn by turn, in the median over turns; 0 where there are none."""
    apart = lambda one, other: abs(statistics.median(a.measured / b.measured for a, b in zip(one.pairs, other.pairs)) - 1)
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

    caps, pairs, predicted, as_profiled, results = [], {}, {}, {}, {}
    profiled, without = [], []
    for number in range(arguments.rounds):
        print(f'{model} at {rate}: round {number + 1} of {arguments.rounds}', file=sys.stderr)
        workloads = profiles(arguments, model, folder / f'{rate}-{model}-{number}')
        scenarios = [*scenarios_of(number, workloads)]
        if not caps:
            recommended = recommended_cap(arguments, scenarios[0], [DEFAULT_CAP, *others][:arguments.count])
            caps = caps_to_measure(recommended, others, arguments.count)
        measured, said = measure(arguments, rate, model, caps, folder / f'{rate}-{model}-{number}.json')
        predictor = Predictor(arguments, scenarios)
        profiled.append(statistics.fmean(predictor.without))
        for cap in caps:
            pairs.setdefault(cap, []).extend(measured[cap])
            predicted.setdefault(cap, []).extend(predictor.step(cap, pair.without) for pair in measured[cap])
            as_profiled.setdefault(cap, []).append(predictor.step(cap))
            results.setdefault(cap, []).append(said[cap])
            without += [pair.without for pair in measured[cap]]
    cases = [Case(cap, pairs[cap], predicted[cap], as_profiled[cap], results[cap]) for cap in caps]
    return recommended, cases, (statistics.median(profiled), statistics.median(without))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', default=accuracy.ROOT / 'build/release/tools/ddpsim', help='the program')
    parser.add_argument('--python', default='/usr/bin/python3', help='one that has torch')
    parser.add_argument('--rates', default='1gbit,2gbit')
    parser.add_argument('--models', default='convnet,encoder,recurrent', help='scripts in tests/data/torch_models')
    parser.add_argument('--caps', default='4,1,64,8,16,2', help='in MiB; measured besides the recommended one and 25')
    parser.add_argument('--count', type=int, default=7, help='caps that are measured')
    parser.add_argument('--steps', type=int, default=10, help='timed steps of each cap and round')
    parser.add_argument('--profile-steps', type=int, default=10, help='steps of a profile')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--limit', type=float, default=1800, help='seconds an invocation may take')
    parser.add_argument('--results', help='folder for all profiles and results; default: one that is removed')
    parser.add_argument('--output', help='write what is printed here too')
    arguments = parser.parse_args()
    if arguments.steps % IN_A_ROW:
        parser.error(f'--steps: {IN_A_ROW} of a cap come in a row, got {arguments.steps}')
    others = [int(float(cap) * MIB) for cap in arguments.caps.split(',')]
    header = accuracy.provenance(arguments.ddpsim)

    rows, judged, errors, as_profiled, without, met, calibrations, made_again = [], [], [], [], [], True, {}, 0
    apart = 0

    def target(text, fine):
        nonlocal met
        met = met and fine
        judged.append(f'* {text}: {"met" if fine else "MISSED"}')

    with tempfile.TemporaryDirectory(prefix='ddpsim-tuned-') as scratch:
        folder = pathlib.Path(arguments.results or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for rate in arguments.rates.split(','):
            for model in arguments.models.split(','):
                recommended, cases, (profiled, alone) = run_rounds(arguments, rate, model, others, folder, calibrations)
                steps = choices(cases)
                mine, = (steps[case.buckets] for case in cases if case.cap == recommended)
                default, = (steps[case.buckets] for case in cases if case.cap == DEFAULT_CAP)
                best = min(steps.values())
                apart = max(apart, noise(cases))
                for case in cases:
                    errors.append(abs(case.error))
                    as_profiled.append(abs(case.error_as_profiled))
                    without.append(abs(case.error_without))
                    made_again += case.made_again
                    name = cap_text(case.cap) + (' (recommended)' if case.cap == recommended else '')
                    unsure = ' !' if case.high / case.low - 1 > accuracy.SELF_DISAGREEMENT else ''
                    rows.append(f'| {rate} | {model} | {name} | {len(case.buckets)} | {case.predicted:.1f} ms | '
                                f'{case.measured:.1f} ms ({case.low:.1f}-{case.high:.1f}{unsure}) | {100 * case.error:+.1f} % |')
                target(f'{model} at {rate}: recommended {cap_text(recommended)} takes {100 * (mine / best - 1):.1f} % more than '
                       f'the best measured (target {100 * OVER_BEST:g} %) and {100 * (mine / default - 1):+.1f} % against '
                       f'25 MiB (target {100 * OVER_DEFAULT:+g} %); without DDP {profiled:.1f} ms '
                       f'in the profiles, {alone:.1f} ms between the others',
                       mine <= best * (1 + OVER_BEST) and mine <= default * (1 + OVER_DEFAULT))
    within = sum(error <= STEP_NINE_IN_TEN for error in errors) / len(errors)
    target(f'{100 * within:.0f} % of {len(errors)} predicted steps are within {100 * STEP_NINE_IN_TEN:g} % (target: nine in ten); '
           f'median {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %', within >= 0.9)
    judged.append(f'* noise: caps that make the same buckets came out up to {100 * apart:.1f} % apart')
    for how, found in (('from the profiles as they are', as_profiled),
                       ('with the steps without DDP around them for predictions', without)):
        judged.append(f'* {how}, {100 * sum(error <= STEP_NINE_IN_TEN for error in found) / len(found):.0f} % would be; '
                      f'median {100 * statistics.median(found):.1f} %, worst {100 * max(found):.1f} %')
    text = '\n'.join([*(f'* {line}' for line in header),
                      f'* {arguments.steps} steps a cap, {arguments.rounds} round(s), each after profiles of {arguments.profile_steps} steps, one thread of kernels per rank',
                      f'* {made_again} of {made_again + len(errors) * arguments.steps * arguments.rounds} steps with DDP were made again: the host took more than {100 * steal.MOST_STOLEN:g} % of the processors',
                      '* predicted from profiles scaled so that a step without DDP takes what those around each pair of steps took; '
                      'error: the median over pairs', '',
                      '| rate | model | cap | all-reduces | predicted | measured (p10-p90) | error |',
                      '|---|---|--:|--:|--:|--:|--:|', *rows, '', *judged]) + '\n'
    print(text, end='')
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    return 0 if met else 3


if __name__ == '__main__':
    sys.exit(main())
