#!/usr/bin/env python3
"""Whether what ddpsim imports of torch's own traces is what torch did, and predicts itself.

    python traces.py --ddpsim PROGRAM [CASE ...]       with a Python that has torch 2

--list names the cases.

Two real ranks train a model with DistributedDataParallel over Gloo, and torch's profiler writes its
Kineto JSON (traced.py). Imported are its steps, each by itself: buckets must be those that DDP says
it has, and the step that `ddpsim run` predicts from the profile and the link of rank 0's trace must
be the traced one within 3 %, in the median over the five shortest of twelve steps of one of up to
three trainings. Whatever else uses the processors only lengthens a step, and then its parts do not
add up to it: a prediction may be too short by what the ranks' threads waited for a processor in
that step besides, and is never too long by more than 3 %. The device of the prediction is the
machine as the trace shows it: its memory is as fast as the trace's copies into buckets.

Exit code 0; 3 if not so; 77 without torch 2 (1 with DDPSIM_TORCH=required); 1 if a rank fails.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import collect

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / 'data' / 'torch_models'
CASES = {'residual network': 'convnet.py:make', 'encoder': 'encoder.py:make',
         'recurrent': 'recurrent.py:make'}
TOLERANCE = 0.03
STEPS = 12
JUDGED = 5  # the shortest of them
TRAININGS = 3
COPY_IN = 'torch::distributed::reducer::mul_out'


def traced(script, folder):
    from forks import two_ranks  # imports torch, for both at once
    ended = two_ranks([HERE / 'traced.py', script, folder, STEPS], timeout=240)
    for number, (code, out, err) in enumerate(ended):
        if code != 0:
            raise collect.Failure(f'rank {number} failed:\n{(out + err)[-2000:]}')


def steps_of(trace):
    """The trace cut into traces of one step each."""
    marks = {event['name']: event for event in trace['traceEvents']
             if event.get('ph') == 'X' and event['name'].startswith('ProfilerStep#')}
    for mark in sorted(marks.values(), key=lambda event: event['ts']):
        begin, end = mark['ts'], mark['ts'] + mark['dur']
        yield {**trace, 'traceEvents': [event for event in trace['traceEvents']
                                        if 'ts' not in event or begin <= event['ts'] <= end]}


def asked(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise collect.Failure(f'{" ".join(map(str, words))}: {done.stderr.strip()[-1000:]}')
    return json.loads(done.stdout)


def scenario_of(step, found):
    size = 2 * sum(bucket['bytes'] for bucket in found['buckets'])  # read and written
    took = sum(event['dur'] for event in step['traceEvents'] if event.get('name') == COPY_IN)
    return (
        'workload: {model: p.yaml}\n'
        'cluster:\n'
        '  device: {source: the copies of its trace, synchronous: true, multiprocessors: 1,\n'
        f'    memory: 64 GB, memory_bandwidth: {size / took / 1e3:.3f} GB/s,\n'
        '    memory_efficiency: 1,\n'
        '    peak: {fp32: 0.1 TFLOP/s}, gemm_efficiency: {fp32: 0.8}, peer_to_peer: false}\n'
        '  ranks_per_node: 2\n  launch: sync\n  intra_node: l.yaml\n  interference: {}\n'
        '  skew: 0 %\n'
        'training: {bucket_cap: 2 MiB}\ncompare: [bucketed]\n')


def predicted(program, step, said, folder):
    """(measured, predicted) ms of a step; None if its all-reduces are no times of a link, as where
    other processes have the processors meanwhile, or overlap so that the time of one is not known.
    """
    (folder / 'step.json').write_text(json.dumps(step))
    (folder / 'l.yaml').unlink(missing_ok=True)  # of another step
    found = asked([program, 'import', 'torch-trace', 'step.json', '-o', 'p.yaml', '--link-profile',
                   'l.yaml', '--json', '-'], folder)
    if [bucket['bytes'] for bucket in found['buckets']] != said:
        raise collect.Failure(f'buckets {[bucket["bytes"] for bucket in found["buckets"]]}, DDP '
                              f'says {said}')
    unknown = any('left out of the link profile' in note for note in found['notes'])
    if unknown or not (folder / 'l.yaml').exists():
        return None
    (folder / 's.yaml').write_text(scenario_of(step, found))
    run = asked([program, 'run', 's.yaml', '--json', '-'], folder)
    return found['steps'][0]['step_ms'], run['results'][0]['step_ms']


def off(real, guess, waited):
    """By which share of a step that took `real` ms the prediction is off, of which `waited` ms of
    waiting for a processor explain nothing, or a part."""
    return max(guess / real - 1, 1 - (guess + waited) / real, 0)


def held(program, case):
    """Whether one training out of three is held."""
    return any(training_held(program, case) for _ in range(TRAININGS))


def training_held(program, case):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        traced(f'{MODELS}/{CASES[case]}', folder)
        said = json.loads((folder / 'said.json').read_text())
        trace = json.loads((folder / 'rank0.json').read_text())
        waited = [json.loads((folder / f'waited{rank}.json').read_text()) for rank in range(2)]
        waits = [1e-6 * sum(ranks) for ranks in zip(*waited)]
        pairs = [predicted(program, step, said, folder) for step in steps_of(trace)]
    if not len(pairs) == len(waits) == STEPS:
        raise collect.Failure(f'{case}: {len(pairs)} steps, and waiting in {len(waits)}')
    whole = sorted((*pair, wait) for pair, wait in zip(pairs, waits) if pair)
    if len(whole) < JUDGED:
        print(f'{case}: {len(pairs) - len(whole)} of {len(pairs)} steps were disturbed')
        return False
    whole = whole[:JUDGED]
    middle = statistics.median(off(*step) for step in whole)
    length = statistics.median(real for real, _, _ in whole)
    errors = ', '.join(f'{100 * (guess / real - 1):+.1f} %' for real, guess, _ in whole)
    share = statistics.median(wait / real for real, _, wait in whole)
    print(f'{case}: {len(said)} buckets, steps of {length:.1f} ms, errors {errors}, '
          f'{100 * share:.1f} % of a step waited for processors, median {100 * middle:.1f} %')
    return middle <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', metavar='PROGRAM')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('cases', metavar='CASE', nargs='*', help='default: all')
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(CASES))
        return 0
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown or not arguments.ddpsim:
        parser.error(f'no case {unknown[0]}' if unknown else '--ddpsim PROGRAM is missing')
    program = pathlib.Path(arguments.ddpsim).resolve()
    torch = importlib.util.find_spec('torch') and importlib.metadata.version('torch')
    if not torch or torch.startswith('1.'):  # before 2 Debian's has no Kineto
        print(f'traces: this Python has {"torch " + torch if torch else "no torch"}',
              file=sys.stderr)
        return 1 if os.environ.get('DDPSIM_TORCH') == 'required' else 77
    try:
        right = [held(program, case) for case in arguments.cases or CASES]
    except (collect.Failure, subprocess.TimeoutExpired) as problem:
        print(f'traces: {problem}', file=sys.stderr)
        return 1
    return 0 if all(right) else 3


if __name__ == '__main__':
    sys.exit(main())
