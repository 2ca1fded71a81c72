#!/usr/bin/env python3
"""What DeepSpeed sends in a step, for tests/python/test_zero.py.

Needs deepspeed 0.19 and torch, on processors: pip install deepspeed. Nothing is sent: the process
group is torch's fake one, of which this process is rank 0.

    tests/experiments/deepspeed_record.py tests/data/zero/deepspeed.json
"""
import argparse
import json
import os
import sys
import tempfile

KINDS = {'c10d._allgather_base_.default': 'all-gather',
         'c10d._reduce_scatter_base_.default': 'reduce-scatter',
         'c10d.allreduce_.default': 'all-reduce'}

# (model, ranks, stage, micro-batches, options of zero_optimization)
SECOND = [{'reduce_bucket_size': 5000}, {'reduce_bucket_size': 9000}, {}]
THIRD = [{'stage3_prefetch_bucket_size': ahead, 'stage3_max_reuse_distance': again,
          'stage3_param_persistence_threshold': stay, 'reduce_bucket_size': bucket}
         for ahead, again, stay, bucket in [
             (0, 0, 0, 5000), (0, 10000, 0, 9000), (0, 0, 100, 9000), (5000, 0, 0, 9000),
             (9000, 10000, 0, 5000), (5000, 0, 100, 500_000_000), (100_000, 0, 0, 9000)]]
CASES = [(model, ranks, stage, micro_batches, {**options, 'overlap_comm': overlaps})
         for model in ('linears', 'odd')
         for ranks in (2, 3)
         for stage, all_options in ((1, SECOND), (2, SECOND), (3, THIRD))
         for options in all_options
         for overlaps in (False, True)
         for micro_batches in ((1, 3) if ranks == 2 else (1,))]


def recorded(number):
    """The collectives of one case: [kind, elements of the full buffer]. To be called once in a
    process."""
    model, ranks, stage, micro_batches, options = CASES[number]
    os.environ.update(DS_ACCELERATOR='cpu', LOCAL_RANK='0', RANK='0', WORLD_SIZE=str(ranks),
                      MASTER_ADDR='localhost', MASTER_PORT='29511')
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode

    import deepspeed
    sys.path.append(os.path.join(os.path.dirname(__file__), '..', 'python'))
    from zero_models import made

    dist.init_process_group('fake', rank=0, world_size=ranks, store=FakeStore())
    sent = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
            kind = KINDS.get(str(operation))
            if kind:
                tensors = arguments[0] if kind == 'all-reduce' else arguments[:2]
                sent.append([kind, max(each.numel() for each in tensors)])
            return operation(*arguments, **(keywords or {}))

    network, batch = made(model)
    engine, *_ = deepspeed.initialize(model=network, config={
        'train_micro_batch_size_per_gpu': len(batch),
        'gradient_accumulation_steps': micro_batches,
        'optimizer': {'type': 'SGD', 'params': {'lr': 0.1}},
        'zero_allow_untested_optimizer': True,
        'zero_optimization': {'stage': stage, **options}})

    def step():
        for _ in range(micro_batches):
            engine.backward(engine(batch).square().mean())
            engine.step()

    step()
    step()
    with Recorder():
        step()
    return {'deepspeed': deepspeed.__version__, 'torch': torch.__version__, 'sent': sent}


def in_a_process_of_its_own(number):
    with tempfile.NamedTemporaryFile('r+', suffix='.json') as file:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with open(file.name, 'w', encoding='utf-8') as output:
                    json.dump(recorded(number), output)
                status = 0
            finally:
                os._exit(status)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f'case {number} failed: {CASES[number]}')
        return json.load(file)


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('output', help='a JSON file')
    given = arguments.parse_args()
    os.environ['DS_ACCELERATOR'] = 'cpu'
    import deepspeed  # noqa: F401: once for all cases
    cases, versions = [], {}
    for number, (model, ranks, stage, micro_batches, options) in enumerate(CASES):
        record = in_a_process_of_its_own(number)
        versions = {name: record[name] for name in ('deepspeed', 'torch')}
        cases.append({'model': model, 'ranks': ranks, 'stage': stage,
                      'micro_batches': micro_batches, 'options': options, 'sent': record['sent']})
        print(f'\r{number + 1} of {len(CASES)}', end='', file=sys.stderr, flush=True)
    with open(given.output, 'w', encoding='utf-8') as output:
        output.write(json.dumps({
            'source': 'tests/experiments/deepspeed_record.py', **versions,
            'sent': 'kind, and elements of the full buffer, of every collective of a third step'},
            indent=1)[:-2] + ',\n "cases": [\n')
        output.write(',\n'.join('  ' + json.dumps(each) for each in cases) + '\n]}\n')


if __name__ == '__main__':
    main()
