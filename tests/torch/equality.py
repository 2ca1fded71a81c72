#!/usr/bin/env python3
"""Whether ddpsim says what torch's DistributedDataParallel does, case by case.

    python equality.py --ddpsim PROGRAM [CASE ...]       with a Python that has torch

--list names the cases, --list-older those in which torch before 2.5 did otherwise: there ddpsim is
given the release of the torch that is asked.

For each case, two real processes train the model for some steps (collect.py); one process profiles
the same model with ddpsim.profile; `ddpsim schedule` says the same steps from that profile,
given the same `training`. Equal must be, in every step: the order in which gradients' hooks fire,
the buckets with their contents, and all collectives, in order, with operation and bytes.

Exit code 0: equal; 3: different, and where is printed; 77: this Python has no torch (1 with
DDPSIM_TORCH=required); 1 or 2: something else went wrong.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import collect

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / 'data' / 'torch_models'
PROFILER = HERE.parents[1] / 'python' / 'ddpsim' / 'profile' / '__main__.py'
MIB = 1 << 20
STEPS = 4

# case: (function of rules.py, or file:function; training in ddpsim's keys, sizes in bytes; the
# first step compared, if that is not the first)
CASES = {
    'mlp': ('mlp', {}),
    'small cap': ('mlp', {'bucket_cap': 2 * MIB}),
    'cap and first bucket': ('mlp', {'bucket_cap': 6 * MIB}),
    'list of caps': ('mlp', {'bucket_caps': [MIB // 2, 2 * MIB, 3 * MIB]}),
    'list of caps and a search': ('partly', {
        'bucket_caps': [MIB // 2, MIB, 3 * MIB], 'find_unused_parameters': True
    }),
    'small bucket last': ('mlp', {'last_bucket_cap': True}),
    'odd sizes': ('odd', {'bucket_cap': 20000}),
    'caps are whole bytes': ('odd', {'bucket_cap': 1048.5}),
    'residual network': ('convnet.py:small', {'bucket_cap': 4 * MIB}),
    'encoder': ('encoder.py:small', {'bucket_cap': 2 * MIB}),
    'recurrent': ('recurrent.py:small', {'bucket_cap': 2 * MIB}),
    'convolution and batch norm': ('convolution', {}),
    'no broadcast of buffers': ('convolution', {'broadcast_buffers': False}),
    'gradients as views': ('convolution', {'gradient_as_bucket_view': True, 'bucket_cap': MIB}),
    'tied weights': ('tied', {}),
    'two types': ('mixed', {'bucket_cap': MIB // 2}),
    'sparse gradients': ('table', {}),
    'unused parameters': ('partly', {'find_unused_parameters': True}),
    'skipped buckets': ('partly', {
        'find_unused_parameters': True, 'skip_all_reduce_unused_params': True,
        'bucket_cap': MIB // 4
    }),
    'batched copies': ('mlp', {'batched_grad_copy': True, 'bucket_cap': 2 * MIB}),
    'batched copies of views': ('convolution', {
        'batched_grad_copy': True, 'gradient_as_bucket_view': True
    }),
    'delayed all-reduce': ('mlp', {
        'delay_all_reduce': {'parameters': ['4.weight', '4.bias'], 'hook': '0.weight'}
    }),
    'mixed precision': ('mlp', {'mixed_precision': {'param': 'bfloat16', 'reduce': 'bfloat16'}}),
    'mixed precision, reduced wide': ('mlp', {
        'mixed_precision': {'param': 'bfloat16', 'reduce': 'float32'}
    }),
    'unused parameters and no_sync': ('partly', {
        'find_unused_parameters': True, 'micro_batches': 2, 'no_sync': True
    }),
    'search in vain': ('tied', {'find_unused_parameters': True, 'bucket_cap': MIB}),
    'two types and a search': ('mixed', {'find_unused_parameters': True, 'bucket_cap': MIB // 2}),
    'static graph': ('mlp', {'static_graph': True}),
    'static graph with batch norm': ('convolution', {'static_graph': True}),
    'static graph with unused parameters': ('partly', {'static_graph': True}),
    'static graph that finds unused parameters': ('partly', {
        'static_graph': True, 'find_unused_parameters': True, 'comm_hook': 'fp16_compress'
    }),
    'no_sync': ('mlp', {'micro_batches': 4, 'no_sync': True}),
    'no_sync with batch norm': ('convolution', {'micro_batches': 3, 'no_sync': True}),
    # torch counts a forward pass as an iteration and rebuilds its buckets within the first step;
    # ddpsim counts a step.
    'accumulation that reduces each time': ('convolution', {'micro_batches': 2}, 3),
    'uneven inputs': ('convolution', {'join': True}),
    'uneven inputs that end early': ('convolution', {
        'join': {'throw_on_early_termination': True, 'divide_by_initial_world_size': False}
    }),
    'uneven inputs and no_sync': ('mlp', {'join': True, 'micro_batches': 2, 'no_sync': True}),
    'uneven inputs and unused parameters': ('partly',
                                            {'join': True, 'find_unused_parameters': True}),
    'allreduce hook': ('mlp', {'comm_hook': 'allreduce'}),
    'fp16_compress': ('mlp', {'comm_hook': 'fp16_compress', 'bucket_cap': 2 * MIB}),
    'fp16_compress and accumulation': ('convolution', {
        'comm_hook': 'fp16_compress', 'micro_batches': 2, 'no_sync': True
    }),
    'zero_step': ('mlp', {'comm_hook': 'zero_step', 'bucket_cap': 2 * MIB}),
    'zero_step with a static graph': ('convolution', {
        'comm_hook': 'zero_step', 'static_graph': True, 'bucket_cap': MIB
    }),
    'zero_step_interleaved': ('small', {'comm_hook': 'zero_step_interleaved'}),
    # One bucket: on Gloo torch's hook waits for its second and third all-reduce on one of the two
    # threads that carry them out, so two buckets at once wait for each other for ever.
    'bf16_compress': ('mlp', {'comm_hook': 'bf16_compress', 'bucket_cap': 2 * MIB}),
    'powersgd': ('small', {'comm_hook': {'powersgd': {'rank': 2, 'start_iteration': 2}}}),
    'powersgd of convolutions': ('narrow',
                                 {'comm_hook': {'powersgd': {'rank': 4, 'start_iteration': 2}}}),
    'powersgd that compresses all it can': ('small', {
        'comm_hook': {'powersgd': {'rank': 1, 'start_iteration': 3, 'min_compression_rate': 0.5}}
    }),
}


# In these, releases before 2.5 gave the first bucket 1 MiB whatever the cap.
OLDER = ('small cap', 'cap and first bucket', 'two types', 'fp16_compress')


# What ddpsim says.

def release():
    """Of the torch asked, as ddpsim's `pytorch` has it."""
    import torch
    version = tuple(int(part) for part in torch.__version__.split('.')[:2])
    return '1.13' if version < (2, 0) else '2.0' if version < (2, 5) else '2.13'


def yaml_of(value):
    """JSON is YAML; sizes want a unit."""
    said = {'pytorch': release(), **value}
    if 'bucket_cap' in said:
        said['bucket_cap'] = f'{said["bucket_cap"]} B'
    if 'bucket_caps' in said:
        said['bucket_caps'] = [f'{size} B' for size in said['bucket_caps']]
    if 'mixed_precision' in said:  # reduced narrow or wide, and divided behind that
        wide = said.pop('mixed_precision')['reduce'] == 'float32'
        said['comm_hook'] = [*([] if wide else [{'cast': 'bf16'}]), 'all_reduce',
                             {'scale': '1/ranks'}]
    return json.dumps(said)


def script_of(model):
    return f'{MODELS}/{model}' if ':' in model else f'{MODELS}/rules.py:{model}'


def said_of(words, folder, timeout, what):
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise collect.Failure(f'{what} took longer than {timeout:g} s') from None
    if done.returncode != 0:
        raise collect.Failure(
            f'{what} failed ({done.returncode}): {(done.stderr or done.stdout).strip()[-500:]}')
    return done.stdout


def write_profile(model, folder, timeout):
    from forks import Fork  # imports torch
    profiler = Fork(
        [PROFILER, '--script',
         script_of(model), '--steps', '4', '--warmup', '1', '--output', '.'], folder=folder)
    try:
        code, out, err = profiler.wait(timeout)
    except subprocess.TimeoutExpired:
        raise collect.Failure(f'ddpsim.profile took longer than {timeout:g} s') from None
    finally:
        profiler.end()
    if code != 0:
        raise collect.Failure(f'ddpsim.profile failed ({code}): {(err or out).strip()[-500:]}')


def predicted(program, model, training, steps, timeout):
    with tempfile.TemporaryDirectory() as folder:
        write_profile(model, folder, timeout)
        (pathlib.Path(folder) / 'scenario.yaml').write_text(
            'workload: {model: workload.yaml}\n'
            'cluster: {device: generic-cpu, launch: sync, ranks_per_node: 2, intra_node: '
            'ethernet-10g}\n'
            f'training: {yaml_of(training)}\n')
        return [
            json.loads(
                said_of([
                    program, 'schedule', 'scenario.yaml', '--set', f'training.iteration={step + 1}',
                    '--json', '-'
                ], folder, timeout, 'ddpsim schedule')) for step in range(steps)
        ]


# Both in the same words.

def words_of(collective):
    operation = collective['operation'].replace('-', '_')
    root = f' from rank {collective.get("from_rank", 0)}' if operation == 'broadcast' else ''
    return f'{operation} {collective["bytes"]} B{root}'


def of_torch(step):
    return {
        'hooks': step['hooks'][-1],  # of the last micro-batch, the one that is always synchronised
        'buckets': [', '.join(bucket) for bucket in step['buckets']],
        'collectives': list(map(words_of, step['collectives']))
    }


def of_ddpsim(step):
    return {'hooks': [hook['parameter'] for hook in step['hooks']],
            'buckets': [', '.join(bucket['parameters']) for bucket in step['buckets']],
            'collectives': list(map(words_of, step['collectives']))}


def differences(torch_steps, ddpsim_steps, first):
    """Lines, each of one difference."""
    both = zip(map(of_torch, torch_steps), map(of_ddpsim, ddpsim_steps), strict=True)
    for number, (theirs, ours) in enumerate(both, 1):
        if number < first:
            continue
        for what in theirs:
            if theirs[what] == ours[what]:
                continue
            if len(theirs[what]) != len(ours[what]):
                yield (f'step {number}, {what}: torch has {len(theirs[what])}, ddpsim '
                       f'{len(ours[what])}')
            for place, (left, right) in enumerate(zip(theirs[what] + ['-'], ours[what] + ['-'])):
                if left != right:
                    yield f'step {number}, {what}[{place}]: torch {left}; ddpsim {right}'
                    break


def compared(program, case, timeout):
    """True if equal; prints what is not."""
    model, training, first = (*CASES[case], 1)[:3]
    real = collect.collected(script_of(model), training, STEPS, timeout)
    lines = list(
        differences(real['steps'], predicted(program, model, training, STEPS, timeout), first))
    count = sum(len(step['collectives']) for step in real['steps'][first - 1:])
    parameters = len(real['parameters'])
    print(f'{case}: ' +
          (f'{len(lines)} differences' if lines else
           f'equal in {STEPS + 1 - first} steps, {parameters} parameters, {count} collectives'))
    for line in lines:
        print('  ' + line)
    return not lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim', metavar='PROGRAM')
    parser.add_argument('--timeout', type=float, default=300, help='seconds for each process')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--list-older', action='store_true')
    parser.add_argument('cases', metavar='CASE', nargs='*', help='default: all')
    arguments = parser.parse_args()
    if arguments.list or arguments.list_older:
        print('\n'.join(CASES if arguments.list else OLDER))
        return 0
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown or not arguments.ddpsim:
        parser.error(f'no case {unknown[0]}' if unknown else '--ddpsim PROGRAM is missing')
    if importlib.util.find_spec('torch') is None:
        print('equality: this Python has no torch', file=sys.stderr)
        return 1 if os.environ.get('DDPSIM_TORCH') == 'required' else 77
    program, equal = pathlib.Path(arguments.ddpsim).resolve(), True
    try:
        for case in arguments.cases or CASES:
            equal = compared(program, case, arguments.timeout) and equal
    except collect.Failure as problem:
        print(f'equality: {case}: {problem}', file=sys.stderr)
        return problem.code
    return 0 if equal else 3


if __name__ == '__main__':
    sys.exit(main())
