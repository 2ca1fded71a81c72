#!/usr/bin/python3
"""What torch's DistributedDataParallel really does with a model, step by step, as JSON.

    collect.py --script FILE:FUNCTION [--training JSON] [--steps N] [--output FILE]

starts two processes (Gloo, loopback), each of which makes the model as scripts for
ddpsim.profile do, wraps it as `training` says (ddpsim's own keys, see KEYS), and trains N
steps. Said of rank 0:

    {"torch": version, "ranks": 2,
     "parameters": [name, ...],                    in registration order, a tied one once
     "construction": [collective, ...],            issued while DDP was made
     "steps": [{"hooks": [[name, ...], ...],       [micro-batch] in the order gradients' hooks fired
                "rebuilt": whether DDP has rebuilt its buckets by then,
                "buckets": [[name, ...], ...],     contents, in launch order
                "collectives": [collective, ...]}]}

A collective is {"operation", "bytes", "type"} and, of a broadcast, "from_rank", in the order
issued. Nothing can be missed: DDP is given a process group that writes down every call, from Python
or C++, and hands it on to Gloo's; only a sparse gradient's all-reduce stands as the three
all-gathers Gloo makes of it. Both ranks must say the same, or it is an error, as is a collective
other than those known. Exit code 0; 1 if a rank fails or takes longer than --timeout; 2 for bad
input; 77 without torch.
"""
import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

KEYS = ('bucket_cap', 'bucket_caps', 'last_bucket_cap', 'micro_batches', 'no_sync',
        'find_unused_parameters', 'skip_all_reduce_unused_params', 'static_graph',
        'gradient_as_bucket_view', 'batched_grad_copy', 'broadcast_buffers', 'comm_hook', 'join',
        'delay_all_reduce', 'mixed_precision')
ZERO_HOOKS = {
    'zero_step': 'hook_with_zero_step', 'zero_step_interleaved': 'hook_with_zero_step_interleaved'
}


class Failure(Exception):
    """In one line."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


# One rank.

def made_by(script):
    file, _, function = script.rpartition(':')
    specification = importlib.util.spec_from_file_location('model', file)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, function)()


def recorder(backend):
    """A process group that writes down what is asked of it, and lets `backend` do it."""
    import torch.distributed as dist

    class Recorder(dist.ProcessGroup):
        def __init__(self):
            super().__init__(backend.rank(), backend.size())
            self.calls = []

        def note(self, operation, tensor, **more):
            if tensor.is_sparse:
                return self.note_sparse(tensor.coalesce())
            self.calls.append({
                'operation': operation, 'bytes': tensor.numel() * tensor.element_size(),
                'type': str(tensor.dtype).replace('torch.', ''), **more
            })

        def note_sparse(self, tensor):
            """An all-reduce that Gloo makes of all-gathers (ProcessGroupGloo.cpp,
            AsyncSparseAllreduceWork): nine numbers of shape, then indices and values. It does so
            inside, where they cannot be written down."""
            self.calls.append({'operation': 'all_gather', 'bytes': 9 * 8, 'type': 'int64'})
            self.note('all_gather', tensor.indices())
            self.note('all_gather', tensor.values())

        def taken(self):
            calls, self.calls = self.calls, []
            return calls

        def allreduce(self, tensors, options):
            self.note('all_reduce', tensors[0])
            return backend.allreduce(tensors, options)

        def broadcast(self, tensors, options):
            self.note('broadcast', tensors[0], from_rank=options.rootRank)
            return backend.broadcast(tensors, options)

        def allgather(self, outputs, inputs, options):
            self.note('all_gather', inputs[0])
            return backend.allgather(outputs, inputs, options)

        def getBackendName(self):
            # At the name of Gloo, DDP's logger would take it for Gloo's own object.
            return 'recorder'

        # Whatever else DDP might ask for is to be noticed, not passed over.
        def __getattr__(self, name):
            raise AttributeError(f'the recording process group has no {name}')
    return Recorder()


def register_hook(model, hook):
    """`comm_hook` as ddpsim writes it: a name, or {name: {settings}}."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    name, settings = (hook, {}) if isinstance(hook, str) else next(iter(hook.items()))
    plain = {
        'allreduce': default_hooks.allreduce_hook,
        'fp16_compress': default_hooks.fp16_compress_hook,
        # By another name: DDP refuses its own without NCCL, and Gloo adds bfloat16 well.
        'bf16_compress': lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket)
    }
    if name in plain:
        model.register_comm_hook(None, plain[name])
    elif name == 'powersgd':  # torch's batched one fails its own assertion on every input
        torchs = {'rank': 'matrix_approximation_rank', 'start_iteration': 'start_powerSGD_iter',
                  'error_feedback': 'use_error_feedback'}
        state = powerSGD_hook.PowerSGDState(
            None, **{torchs.get(key, key): value for key, value in settings.items()})
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name in ZERO_HOOKS:
        model.register_comm_hook(None, zero_hook(model, ZERO_HOOKS[name]))
    else:
        raise Failure(f'comm hook {name} is not known here', 2)


def zero_hook(model, maker):
    """torch's hook, which wants NCCL: Gloo may carry out in another order on each rank what
    callbacks of several buckets issue, so of interleaved updates one bucket at a time goes well."""
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
    optimizer = dist.optim.ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.SGD, overlap_with_ddp=True, lr=1e-3)
    backend, dist.get_backend = dist.get_backend, lambda group: dist.Backend.NCCL
    try:
        return getattr(ddp_zero_hook, maker)(default_hooks.allreduce_hook, model, optimizer)
    finally:
        dist.get_backend = backend


def wrapped(model, training):
    """(DDP, contents of its first buckets as indices)"""
    import torch.distributed as dist
    made, reducer = [], dist.Reducer

    def watched(parameters, buckets, *rest):
        made.append([list(bucket) for bucket in buckets])
        return reducer(parameters, buckets, *rest)
    cap = {'bucket_cap_mb': training['bucket_cap'] / (1 << 20)} if 'bucket_cap' in training else {}
    if 'bucket_caps' in training:
        cap['bucket_cap_mb_list'] = [size / (1 << 20) for size in training['bucket_caps']]
    dist.Reducer = watched
    try:
        ddp = dist_ddp(model, cap, training)
    finally:
        dist.Reducer = reducer
    if 'comm_hook' in training:
        register_hook(ddp, training['comm_hook'])
    return ddp, made[0]


def dist_ddp(model, cap, training):
    from torch.nn.parallel import DistributedDataParallel
    same = {
        key: training[key] for key in ('find_unused_parameters', 'skip_all_reduce_unused_params',
                                       'static_graph', 'gradient_as_bucket_view',
                                       'batched_grad_copy', 'broadcast_buffers')
        if key in training
    }
    if 'delay_all_reduce' in training:
        delayed, named = training['delay_all_reduce'], dict(model.named_parameters())
        same['delay_all_reduce_named_params'] = [
            (name, named[name]) for name in delayed['parameters']
        ]
        same['param_to_hook_all_reduce'] = named[delayed['hook']]
    if 'mixed_precision' in training:
        same['mixed_precision'] = narrow(**training['mixed_precision'])
    return DistributedDataParallel(model, **cap, **same)


def narrow(param, reduce):
    """DDP's mixed precision, which asks an accelerator for streams and events; on a CPU, where all
    is done in order, they may be nothing."""
    import torch
    from torch.nn.parallel.distributed import _MixedPrecision

    class Nothing:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def record(self, *_, **__):
            pass
        wait = wait_stream = record
    torch.Stream = torch.Event = Nothing
    torch.accelerator.current_stream = Nothing
    return _MixedPrecision(param_dtype=getattr(torch, param), reduce_dtype=getattr(torch, reduce))


def rebuilt_buckets(ddp):
    # The log is written before a forward pass rebuilds, so one step late.
    ddp.logger.set_runtime_stats_and_log()
    log = ddp._get_ddp_logging_data()
    return [[int(index) for index in bucket.split()]
            for bucket in log['rebuilt_per_bucket_param_indices'].split(',')]


def accumulator_of(tensor):
    return tensor.expand_as(tensor).grad_fn.next_functions[0][0]


def rank_main(arguments):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    training = json.loads(arguments.training)
    timeout = datetime.timedelta(seconds=arguments.timeout)
    dist.Backend.register_backend(
        'recorder', lambda store, rank, size, timeout: recorder(
            dist.ProcessGroupGloo(store, rank, size, timeout=timeout)))
    dist.init_process_group('recorder', timeout=timeout)
    group = dist.distributed_c10d._get_default_group()

    if training.get('last_bucket_cap'):
        os.environ['DDP_SET_LAST_BUCKET_CAP'] = '1'
    torch.manual_seed(0)
    made = made_by(arguments.script)
    model, batch, loss = made[:3]
    optimizer = made[3] if len(made) > 3 else torch.optim.SGD(model.parameters(), lr=1e-3)
    parameters = [(name, tensor) for name, tensor in model.named_parameters()
                  if tensor.requires_grad]
    names, fired = [name for name, _ in parameters], []
    # They live as long as somebody holds them.
    accumulators = [accumulator_of(tensor) for _, tensor in parameters]
    group.taken()
    ddp, buckets = wrapped(model, training)
    for name, accumulator in zip(names, accumulators):
        accumulator.register_hook(lambda *_, name=name: fired[-1].append(name))
    if 'mixed_precision' in training:  # hooks are those of narrow copies, and call this
        fire = ddp._fire_reducer_autograd_hook
        ddp._fire_reducer_autograd_hook = lambda index, *_: fire(
            fired[-1].append(names[index]) or index)
    said = {'torch': torch.__version__, 'ranks': dist.get_world_size(), 'parameters': names,
            'construction': group.taken(), 'steps': []}
    micro_batches = training.get('micro_batches', 1)
    uneven = contextlib.ExitStack()
    if training.get('join'):
        uneven.enter_context(
            ddp.join(**(training['join'] if isinstance(training['join'], dict) else {})))
    for _ in range(arguments.steps):
        fired.clear()
        for parameter in model.parameters():
            parameter.grad = None
        for micro_batch in range(micro_batches):
            fired.append([])
            silent = training.get('no_sync', False) and micro_batch + 1 < micro_batches
            with ddp.no_sync() if silent else contextlib.nullcontext():
                loss(ddp, batch).backward()
        if training.get('comm_hook') not in tuple(ZERO_HOOKS):
            optimizer.step()
        said['steps'].append({
            'hooks': [list(each) for each in fired], 'rebuilt': ddp._has_rebuilt_buckets,
            'collectives': group.taken()
        })
    rebuilt = rebuilt_buckets(ddp) if said['steps'][-1]['rebuilt'] else None
    delayed = training.get('delay_all_reduce', {}).get('parameters', [])
    reduced = [name for name in names if name not in delayed]
    for step in said['steps']:
        step['hooks'] = [[name for name in hooks if name in reduced] for hooks in step['hooks']]
        step['buckets'] = [[reduced[index] for index in bucket]
                           for bucket in (rebuilt if step['rebuilt'] else buckets)]
        step['buckets'] += [delayed] if delayed else []  # they are reduced together
    pathlib.Path(arguments.output, f'{dist.get_rank()}.json').write_text(json.dumps(said))
    uneven.close()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # nobody waits for threads of the process group


# All of it.

def collected(script, training, steps=4, timeout=300):
    """What rank 0 saw; rank 1 must have seen the same."""
    from forks import two_ranks  # imports torch, for both at once
    unknown = sorted(set(training) - set(KEYS))
    if unknown:
        raise Failure(f'training: {unknown[0]} is not known here', 2)
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended = two_ranks([
                os.path.abspath(__file__), '--script', script, '--training',
                json.dumps(training), '--steps', steps, '--timeout', timeout, '--output', folder,
                '--rank'
            ], timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f'{script}: the ranks took longer than {timeout:g} s') from None
        for rank, (code, out, err) in enumerate(ended):
            if code != 0:
                lines = (out + err).strip().splitlines() or ['no word']
                raise Failure(f'{script}: rank {rank} failed ({code}):\n' + '\n'.join(lines[-30:]))
        results = [
            json.loads(pathlib.Path(folder, f'{rank}.json').read_text()) for rank in range(2)
        ]
    if any(result != results[0] for result in results):
        raise Failure(f'{script}: the ranks differ')
    return results[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--script', required=True, metavar='FILE:FUNCTION')
    parser.add_argument('--training', default='{}', metavar='JSON')
    parser.add_argument('--steps', type=int, default=4)
    parser.add_argument('--timeout', type=float, default=300)
    parser.add_argument('--output', metavar='FILE')
    parser.add_argument('--rank', action='store_true', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if importlib.util.find_spec('torch') is None:
        print('collect: this Python has no torch', file=sys.stderr)
        return 77
    if arguments.rank:
        return rank_main(arguments)
    try:
        said = collected(arguments.script, json.loads(arguments.training), arguments.steps,
                         arguments.timeout)
    except (Failure, json.JSONDecodeError) as problem:
        print(f'collect: {problem}', file=sys.stderr)
        return getattr(problem, 'code', 2)
    text = json.dumps(said, indent=1) + '\n'
    if arguments.output:
        pathlib.Path(arguments.output).write_text(text)
    else:
        print(text, end='')
    return 0


if __name__ == '__main__':
    sys.exit(main())
