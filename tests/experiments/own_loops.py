#!/usr/bin/env python3
"""How well steps of loops of one's own are predicted, which average gradients without DDP.

On two hosts of tests/links/hosts (needs root, and a Python with torch, see --python), for each rate
and model: ddpsim.profile profiles the model, and the link by itself, as for tuned_torch.py; then
tests/experiments/torch_ddp.py trains a copy of the model by each of four loops as people write
them, in turns: an all-reduce for each gradient after the backward pass (naive) or from its hook
(overlap), one for all of them (flat), and buckets of 4 MiB around torch's _flatten_dense_tensors
(flattened). `ddpsim run` predicts each from the two profiles alone. A quarter of an hour:

    tests/experiments/own_loops.py --json tests/experiments/results/own_loops.json

A step predicted is the mean over the profiles of both hosts, a step measured the mean over turns
without the tenth that took longest: a machine's pauses are not the loop's. The target:

    |predicted / measured - 1| of the step     at most 8 % in nine cases of ten

Said beside it, without a target: how far a step without communication is, which shows how much the
machine's pace changed between profile and training.

Exit code: 0; 3 if the target is not met; 77 where hosts cannot be made; 1 if a run fails.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
import experiment  # beside this file
import tuned_torch  # beside this file

NINE_IN_TEN = 0.08
KEY = ('rate', 'model', 'loop')
SETTINGS = {  # of each loop, as ddpsim knows it
    'naive': ['compare=[naive]'],
    'flat': ['compare=[flat]'],
    'overlap': ['compare=[overlap]'],
    'flattened': ['compare=[bucketed]', 'training.flattened_buckets=true',
                  'training.bucket_cap=4MiB'],
}


def usual_mean(steps):
    """Without the tenth that took longest."""
    return statistics.fmean(sorted(steps)[:max(1, len(steps) * 9 // 10)])


def measured_loops(arguments, rate, model, file):
    """{loop: its steps in ms}; that of None: without communication."""
    if not file.exists():
        experiment.on_hosts(
            rate, [arguments.python, experiment.HERE / 'torch_ddp.py', '--script',
                   tuned_torch.script(model), '--caps', '0', '--loops', ','.join(SETTINGS),
                   '--steps', arguments.steps, '--warmup', 2, '--no-all-reduce', '--json', file],
            arguments.limit)
    document = json.loads(file.read_text())
    return {None: document['none']['step_ms']['all'],
            **{each['loop']: each['step_ms']['all'] for each in document['loops']}}


def predicted_step(arguments, scenarios, settings):
    words = [word for setting in settings for word in ('--set', setting)]
    steps = [tuned_torch.ddpsim(arguments, 'run', scenario, '--quiet', '--json', '-',
                                *words)['results'][0]['step_ms'] for scenario in scenarios]
    return statistics.fmean(steps)


def cases_of(arguments, rate, model, folder, link):
    workloads = tuned_torch.profiles(arguments, model, folder / f'{rate}-{model}')
    scenarios = []
    for workload in workloads:
        scenarios.append(workload.parent / 'scenario.yaml')
        scenarios[-1].write_text(f'name: {model} at {rate}\nworkload: {{model: {workload}}}\n'
                                 f'cluster: {{calibration: {link}}}\ntraining: {{}}\n')
    measured = measured_loops(arguments, rate, model, folder / f'{rate}-{model}.json')
    for loop, settings in {None: ['compare=[none]'], **SETTINGS}.items():
        predicted, steps = predicted_step(arguments, scenarios, settings), measured[loop]
        low, *_, high = statistics.quantiles(steps, n=10, method='inclusive')
        yield {'rate': rate, 'model': model, 'loop': loop or 'none', 'predicted_ms': predicted,
               'measured_ms': usual_mean(steps), 'p10_ms': low, 'p90_ms': high,
               'error': predicted / usual_mean(steps) - 1}


def arguments_given():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    experiment.common_arguments(parser)
    parser.add_argument('--python', default=tuned_torch.torch_python(), help='one that has torch')
    parser.add_argument('--rates', default='1gbit,2gbit')
    parser.add_argument('--models', default='convnet,encoder,deep',
                        help='scripts in tests/data/torch_models')
    parser.add_argument('--steps', type=int, default=30, help='timed steps of each loop')
    parser.add_argument('--profile-steps', type=int, default=60, help='steps of a profile')
    parser.add_argument('--link-seconds', type=float, default=60,
                        help='about how long the link is measured')
    parser.add_argument('--results',
                        help='folder for all profiles and results; default: one that is removed')
    return parser.parse_args()


def main():
    arguments = arguments_given()
    rates, models = arguments.rates.split(','), arguments.models.split(',')
    with tempfile.TemporaryDirectory(prefix='ddpsim-loops-') as scratch:
        folder = pathlib.Path(arguments.results or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        made = experiment.provenance_kept(folder, True, arguments.ddpsim, rates)
        cases = []
        for rate in rates:
            link = tuned_torch.link_calibration(arguments, rate, folder / f'link-{rate}')
            for model in models:
                print(f'{model} at {rate}', file=sys.stderr)
                cases += cases_of(arguments, rate, model, folder, link)

    loops = [case for case in cases if case['loop'] != 'none']
    alone = [case for case in cases if case['loop'] == 'none']
    summary = experiment.error_summary([case['error'] for case in loops], NINE_IN_TEN)
    target = experiment.Targets()
    target(f'{summary["cases_within"]} of {summary["cases"]} steps are within '
           f'{100 * NINE_IN_TEN:g} %; median {100 * summary["median_error"]:.1f} %, worst '
           f'{100 * summary["worst_error"]:.1f} % (target: nine in ten)',
           summary['cases_within'] >= 0.9 * summary['cases'])
    worst = max(abs(case['error']) for case in alone)
    target.note(f'no target: steps without communication are up to {100 * worst:.1f} % off')
    print('\n'.join([
        *(f'* {line}' for line in experiment.provenance_lines(made)), '',
        '| rate | model | loop | predicted ms | measured ms (p10-p90) | error |',
        '|---|---|---|--:|--:|--:|',
        *(f'| {case["rate"]} | {case["model"]} | {case["loop"]} | {case["predicted_ms"]:.1f} '
          f'| {case["measured_ms"]:.1f} ({case["p10_ms"]:.1f}-{case["p90_ms"]:.1f}) '
          f'| {100 * case["error"]:+.1f} % |' for case in cases), '', *target.lines]))
    if arguments.json:
        settings = {'steps': arguments.steps, 'profile_steps': arguments.profile_steps,
                    'link_seconds': arguments.link_seconds}
        experiment.add_run(arguments.json, __file__,
                           {**made, 'settings': settings, 'summary': summary, 'cases': cases}, KEY)
    return target.exit_code()


if __name__ == '__main__':
    sys.exit(main())
