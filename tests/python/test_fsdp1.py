"""What strategy fsdp sends under variant fsdp1 is what PyTorch's FullyShardedDataParallel sends:
which collectives, of which units, of how many bytes, of which type, in which order, with which
casts, paddings and divisions, and where the host waits."""
import re
import subprocess

import pytest
from describe_models import torch, value_of
from torch.distributed.device_mesh import init_device_mesh

pytest.importorskip('torch', minversion='2.13')

from fsdp1_record import step_of_fsdp1  # noqa: E402
from fully_shard_record import ranks  # noqa: E402
from shard_models import NAMES, blocks_of, described, made, predicted, sent_by_ddpsim  # noqa: E402

MODELS = ['mlp', 'odd', 'vit', 'llama3', 't5', 'hf gpt2', 'hf llama', 'hf bert']


KINDS = {'all_gather': 'all-gather', 'reduce_scatter': 'reduce-scatter',
         'all_reduce': 'all-reduce', 'Cast': 'cast', 'Scale': 'divide'}


def program_of_ddpsim(program, scenario):
    return subprocess.run([program, 'schedule', scenario, '--program'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def order_in(text):
    """The kinds of all collectives, casts, paddings and divisions, as they are issued, and 'wait N'
    where the host waits for the event of the N-th parameter that is freed: for the last kernel
    before that."""
    order, freed, kernel = [], {}, None
    for line in text[text.index('program of rank'):].splitlines():
        if re.match(r' +-flat( again)?\d+ ', line):
            freed[kernel] = len(freed) + 1
        task = re.match(r' *(\d+)  (host|compute|copy in|gather|scatter|replicate) +(\w+)(.*)',
                        line)
        if not task:
            continue
        number, stream, action, rest = task.groups()
        if stream == 'compute':
            kernel = number
        if stream == 'host' and action == 'Wait':
            order.append(f'wait {freed[re.search(r"; after (.*)", rest)[1]]}')
        elif action == 'Pack' and rest.startswith(' scattered'):
            order.append('pad')
        elif action in KINDS:
            order.append(KINDS[action])
    return order


SIZES = {'fp32': 4, 'bf16': 2, 'fp16': 2}


def most_in(text):
    """The most bytes of whole flat parameters, and of casts of parts, that are there at a time:
    those that stay from step to step too."""
    found = re.findall(r'^  ((?:flat|flat again|cast part)\d+) +\w+, (\d+) (\w+).* life: (\w+)',
                       text, re.M)
    sizes = {name: int(elements) * SIZES[dtype] for name, elements, dtype, _ in found}
    now = most = sum(sizes[name] for name, _, _, life in found if life == 'job')
    for sign, name in re.findall(r'^ +([+-])((?:flat|flat again|cast part)\d+) ', text, re.M):
        now += sizes[name] if sign == '+' else -sizes[name]
        most = max(most, now)
    return most


def check(program, tmp_path, name, count, units=None, policy=None, autocast=None, micro_batches=1,
          no_sync=False, replicas=1, **options):
    """A step is as FullyShardedDataParallel's with these options."""
    model, batch, loss = made(name)
    names = units or blocks_of(model)
    more = {'units': units} if units else {}
    if policy:
        more['mp_policy'] = {key: NAMES[each] for key, each in policy.items()}
    if replicas > 1:
        more['replicate'] = replicas
    scenario = predicted(tmp_path, described(name, autocast), count,
                         micro_batches=micro_batches, no_sync=no_sync,
                         fsdp={'variant': 'fsdp1', **options}, **more)
    with ranks(count):
        mesh = {} if replicas == 1 else {
            'device_mesh': init_device_mesh('cpu', (replicas, count // replicas),
                                            mesh_dim_names=('replicate', 'shard'))}
        step = step_of_fsdp1(model, batch, lambda *a: value_of(*a, loss), names, policy=policy,
                             micro_batches=micro_batches, no_sync=no_sync, **mesh, **options)
    assert sent_by_ddpsim(scenario) == step.sent
    text = program_of_ddpsim(program, scenario)
    assert order_in(text) == step.order
    assert most_in(text) == step.most


STRATEGIES = ['FULL_SHARD', 'SHARD_GRAD_OP']
PREFETCHES = ['BACKWARD_PRE', 'BACKWARD_POST', 'none']


@pytest.mark.one_in(5)
@pytest.mark.parametrize('count', [2, 3, 4, 8])
@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('name', MODELS)
def test_a_step_sends_what_fsdp1_sends(name, strategy, count, program, tmp_path):
    check(program, tmp_path, name, count, sharding_strategy=strategy)


@pytest.mark.one_in(5)
@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('prefetch', PREFETCHES)
@pytest.mark.parametrize('forward', [False, True])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3', 'hf gpt2'])
def test_units_are_gathered_ahead_where_fsdp1_does(name, forward, prefetch, strategy, program,
                                                   tmp_path):
    check(program, tmp_path, name, 3, sharding_strategy=strategy, backward_prefetch=prefetch,
          forward_prefetch=forward)


@pytest.mark.one_in(4)
@pytest.mark.parametrize('count', [2, 3, 4])
@pytest.mark.parametrize('name', MODELS)
def test_original_parameters_are_aligned_as_fsdp1_does(name, count, program, tmp_path):
    check(program, tmp_path, name, count, use_orig_params=True)


@pytest.mark.one_in(5)
@pytest.mark.parametrize('forward', [False, True])
@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('no_sync', [False, True])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf gpt2'])
def test_micro_batches_send_what_fsdp1_sends(name, no_sync, strategy, forward, program, tmp_path):
    check(program, tmp_path, name, 4, micro_batches=3, no_sync=no_sync, forward_prefetch=forward,
          sharding_strategy=strategy)


@pytest.mark.one_in(5)
@pytest.mark.parametrize('settings', [
    {}, {'use_orig_params': True}, {'micro_batches': 2, 'sharding_strategy': 'SHARD_GRAD_OP'}])
@pytest.mark.parametrize('policy', [
    {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
    {'param_dtype': torch.bfloat16},
    {'reduce_dtype': torch.bfloat16},
    {'param_dtype': torch.float32, 'reduce_dtype': torch.float32}])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3', 'hf gpt2'])
def test_mixed_precision_sends_what_fsdp1_sends(name, policy, settings, program, tmp_path):
    autocast = 'bf16' if policy.get('param_dtype') == torch.bfloat16 else None
    count = 2 if 'micro_batches' in settings else 3
    check(program, tmp_path, name, count, policy=policy, autocast=autocast, **settings)


@pytest.mark.one_in(5)
@pytest.mark.parametrize('replicas, count, settings', [
    (2, 4, {}), (2, 8, {}), (4, 8, {}), (3, 6, {}),
    (2, 4, {'micro_batches': 2}), (2, 4, {'micro_batches': 2, 'no_sync': True})])
@pytest.mark.parametrize('strategy', ['HYBRID_SHARD', '_HYBRID_SHARD_ZERO2'])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3'])
def test_replicas_of_parts_send_what_fsdp1_sends(name, strategy, replicas, count, settings,
                                                 program, tmp_path):
    check(program, tmp_path, name, count, replicas=replicas, sharding_strategy=strategy,
          **settings)


@pytest.mark.one_in(5)
@pytest.mark.parametrize('prefetch', PREFETCHES)
@pytest.mark.parametrize('strategy', STRATEGIES)
@pytest.mark.parametrize('count', [2, 3])
@pytest.mark.parametrize('name', ['frozen begin', 'frozen middle', 'spare'])
def test_frozen_units_are_never_reduced_and_unused_parameters_are(name, count, strategy, prefetch,
                                                                  program, tmp_path):
    check(program, tmp_path, name, count, sharding_strategy=strategy, backward_prefetch=prefetch)
