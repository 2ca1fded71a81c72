"""What strategy fsdp sends is what PyTorch's fully_shard sends: which collectives, of which units,
of how many bytes, of which type, in which order, and with which casts and divisions."""
import copy
import json

import course_model
import pytest
from describe_models import torch, value_of
from torch import nn

import ddpsim

pytest.importorskip('torch', minversion='2.13')
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy  # noqa: E402

from fully_shard_record import on_mesh, ranks, step_of_fully_shard  # noqa: E402
from shard_models import (  # noqa: E402
    NAMES, blocks_of, described, made, order_of_ddpsim, predicted, sent_by_ddpsim)


MODELS = ['mlp', 'odd', 'vit', 'llama3', 't5', 'hf gpt2', 'hf llama', 'hf bert']


def reshards(value):
    """fully_shard's keyword of a scenario's value."""
    return {} if value == 'auto' else {'reshard_after_forward': value}


@pytest.mark.oracle('O1', 'O2')
@pytest.mark.one_in(7)
@pytest.mark.parametrize('count', [2, 3, 4, 8])
@pytest.mark.parametrize('reshard', ['auto', True, False])
@pytest.mark.parametrize('name', MODELS)
def test_a_step_sends_what_fully_shard_sends(name, reshard, count, tmp_path):
    model, batch, loss = made(name)
    scenario = predicted(tmp_path, described(name), count, reshard_after_forward=reshard)
    with ranks(count):
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)], **reshards(reshard))
    assert sent_by_ddpsim(scenario) == step.sent


@pytest.mark.oracle('O6')
@pytest.mark.one_in(2)
@pytest.mark.parametrize('no_sync', [False, True])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf gpt2'])
def test_micro_batches_send_what_fully_shard_sends(name, no_sync, tmp_path):
    model, batch, loss = made(name)
    scenario = predicted(tmp_path, described(name), 4, micro_batches=3, no_sync=no_sync)
    with ranks(4):
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)], micro_batches=3,
                                   no_sync=no_sync)
    assert sent_by_ddpsim(scenario) == step.sent


def check_mixed(tmp_path, name, policy, count, replicas=1, **training):
    """A step is as fully_shard's with that MixedPrecisionPolicy. Models are described under
    autocast to the type of parameters, which is what a scenario takes for their passes."""
    model, batch, loss = made(name)
    types = {key: NAMES[each] for key, each in policy.items()}
    autocast = types.get('param_dtype')
    description = described(name, None if autocast == 'fp32' else autocast)
    scenario = predicted(tmp_path, description, count, mp_policy=types, replicate=replicas,
                         **training)
    shards = count // replicas
    with ranks(count):
        mesh = {} if replicas == 1 else {'mesh': on_mesh(replicas, shards)}
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)],
                                   mp_policy=MixedPrecisionPolicy(**policy), **mesh, **training)
    assert sent_by_ddpsim(scenario) == step.sent
    assert order_of_ddpsim(scenario) == step.order


@pytest.mark.oracle('O5')
@pytest.mark.one_in(5)
@pytest.mark.parametrize('count', [2, 3])
@pytest.mark.parametrize('policy', [
    {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
    {'param_dtype': torch.bfloat16},
    {'reduce_dtype': torch.bfloat16},
    {'param_dtype': torch.float32, 'reduce_dtype': torch.float32}])
@pytest.mark.parametrize('name', MODELS)
def test_mixed_precision_sends_what_fully_shard_sends(name, policy, count, tmp_path):
    check_mixed(tmp_path, name, policy, count)


@pytest.mark.oracle('O5')
@pytest.mark.one_in(3)
@pytest.mark.parametrize('which', ['param_dtype', 'reduce_dtype'])
@pytest.mark.parametrize('count', [2, 3, 4, 6, 8])
def test_fp16_is_divided_where_fully_shard_divides_it(count, which, tmp_path):
    check_mixed(tmp_path, 'mlp', {which: torch.float16}, count)


@pytest.mark.oracle('O5', 'O6')
@pytest.mark.one_in(5)
@pytest.mark.parametrize('no_sync', [False, True])
@pytest.mark.parametrize('policy', [
    {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
    {'param_dtype': torch.bfloat16}])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf gpt2'])
def test_micro_batches_of_mixed_precision(name, policy, no_sync, tmp_path):
    check_mixed(tmp_path, name, policy, 4, micro_batches=3, no_sync=no_sync)


@pytest.mark.oracle('O3')
@pytest.mark.one_in(4)
@pytest.mark.parametrize('synced', [{}, {'micro_batches': 2},
                                    {'micro_batches': 2, 'no_sync': True}])
@pytest.mark.parametrize('replicas, shards', [(2, 2), (2, 4), (4, 2)])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3'])
def test_replicas_of_shards_send_what_fully_shard_sends(name, replicas, shards, synced, tmp_path):
    count = replicas * shards
    model, batch, loss = made(name)
    scenario = predicted(tmp_path, described(name), count, replicate=replicas, **synced)
    with ranks(count):
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)],
                                   mesh=on_mesh(replicas, shards), **synced)
    assert sent_by_ddpsim(scenario) == step.sent


@pytest.mark.oracle('O3', 'O5')
@pytest.mark.one_in(4)
@pytest.mark.parametrize('replicas, shards', [(2, 2), (2, 4), (4, 2)])
@pytest.mark.parametrize('policy', [
    {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
    {'param_dtype': torch.bfloat16},
    {'param_dtype': torch.float16}])
def test_replicas_of_mixed_precision(policy, replicas, shards, tmp_path):
    check_mixed(tmp_path, 'mlp', policy, replicas * shards, replicas)


def check_settings(tmp_path, name, count, units=None, own=None, autocast=None, policy=None,
                   mesh=None, offloads=False, **training):
    """A step is as fully_shard's of those settings, of `training:` and of single units."""
    model, batch, loss = made(name)
    names = units or blocks_of(model)
    of_units = [{'modules': '+'.join(each) if isinstance(each, list) else each,
                 **(own or {}).get(each[0] if isinstance(each, list) else each, {})}
                for each in names]
    more = {'units': of_units} if units or own else {}
    if policy:
        more['mp_policy'] = {key: NAMES[each] for key, each in policy.items()}
    if mesh:
        more['replicate'] = mesh[0]
    if offloads:
        more['offload_policy'] = {'copies': '25 GB/s', 'update': '9 ms'}
    scenario = predicted(tmp_path, described(name, autocast), count, **training, **more)
    with ranks(count):
        further = {'mp_policy': MixedPrecisionPolicy(**policy)} if policy else {}
        if mesh:
            further['mesh'] = on_mesh(*mesh)
        if offloads:
            further['offload_policy'] = CPUOffloadPolicy(pin_memory=False)
        step = step_of_fully_shard(
            model, batch, lambda *a: value_of(*a, loss),
            [each if isinstance(each, list) else [each] for each in names], own=own, **training,
            **further)
    assert sent_by_ddpsim(scenario) == step.sent
    if policy:
        assert order_of_ddpsim(scenario) == step.order


@pytest.mark.oracle('O4')
@pytest.mark.one_in(3)
@pytest.mark.parametrize('count, among', [(4, 2), (8, 2), (8, 4), (4, 4)])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3', 'hf gpt2', 't5'])
def test_parameters_are_shared_among_neighbours_behind_forward(name, count, among, tmp_path):
    check_settings(tmp_path, name, count, reshard_after_forward=among)


@pytest.mark.oracle('O4', 'O6')
def test_neighbours_with_micro_batches_replicas_and_mixed_precision(tmp_path):
    policy = {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32}
    for no_sync in (False, True):
        check_settings(tmp_path, 'mlp', 4, reshard_after_forward=2, micro_batches=3,
                       no_sync=no_sync)
        check_settings(tmp_path, 'llama3', 4, reshard_after_forward=2, micro_batches=3,
                       no_sync=no_sync, autocast='bf16', policy=policy)
    check_settings(tmp_path, 'mlp', 8, reshard_after_forward=2, mesh=(2, 4))


@pytest.mark.oracle('O1')
@pytest.mark.one_in(2)
@pytest.mark.parametrize('reshard', [True, False, 2])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf bert'])
def test_units_are_resharded_each_as_it_says(name, reshard, tmp_path):
    blocks = blocks_of(made(name)[0])
    own = {blocks[0]: {'reshard_after_forward': False}, blocks[-1]: {'reshard_after_forward': 2}}
    check_settings(tmp_path, name, 4, own=own, reshard_after_forward=reshard)


@pytest.mark.oracle('O10')
@pytest.mark.one_in(4)
@pytest.mark.parametrize('forward, backward', [(1, 0), (2, 0), (0, 1), (0, 2), (3, 3)])
@pytest.mark.parametrize('reshard', [True, False])
@pytest.mark.parametrize('name', ['mlp', 'vit', 'llama3', 'hf gpt2'])
def test_prefetches_are_sent_where_fully_shard_sends_them(name, reshard, forward, backward,
                                                          tmp_path):
    check_settings(tmp_path, name, 2, reshard_after_forward=reshard, forward_prefetch=forward,
                   backward_prefetch=backward)


@pytest.mark.oracle('O10')
def test_lists_of_prefetches_may_be_any(tmp_path):
    blocks = blocks_of(made('mlp')[0])
    for own in ({blocks[0]: {'forward_prefetch': [blocks[3]]}},
                {blocks[0]: {'forward_prefetch': [blocks[2], blocks[1]]},
                 blocks[2]: {'forward_prefetch': [blocks[1], blocks[0]]}},
                {blocks[5]: {'backward_prefetch': [blocks[3]]}},
                {blocks[4]: {'backward_prefetch': [blocks[5], blocks[0]]}}):
        for reshard in (True, 2):
            check_settings(tmp_path, 'mlp', 4, own=own, reshard_after_forward=reshard)


@pytest.mark.oracle('O6')
@pytest.mark.one_in(3)
@pytest.mark.parametrize('reshard', [True, False])
@pytest.mark.parametrize('no_sync', [False, True])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf gpt2'])
def test_micro_batches_that_keep_whole_parameters(name, no_sync, reshard, tmp_path):
    check_settings(tmp_path, name, 4, reshard_after_forward=reshard, micro_batches=3,
                   no_sync=no_sync, reshard_after_backward=False)


@pytest.mark.oracle('O1')
def test_an_embedding_that_is_not_gathered_in_backward(tmp_path):
    units = ['embed', *blocks_of(made('llama3')[0]), ['norm', 'head']]
    own = {'embed': {'unshard_in_backward': False}, 'norm': {'reshard_after_forward': False}}
    for count in (2, 3):
        check_settings(tmp_path, 'llama3', count, units=units, own=own)


def units_inside(model, inner):
    """Those modules inside of each block that has them, then the block itself."""
    modules = dict(model.named_modules())
    return [unit for block in blocks_of(model)
            for unit in [*(f'{block}.{each}' for each in inner if f'{block}.{each}' in modules),
                         block]]


@pytest.mark.oracle('O1')
@pytest.mark.one_in(7)
@pytest.mark.parametrize('count, synced', [(2, {}), (4, {}),
                                           (2, {'micro_batches': 2, 'no_sync': True})])
@pytest.mark.parametrize('reshard', ['auto', True, False, 2])
@pytest.mark.parametrize('name, inner', [
    ('odd', ['linear']), ('vit', ['attention', 'mlp']), ('llama3', ['attention', 'mlp']),
    ('llama3', ['mlp']), ('t5', ['attention', 'cross', 'mlp']), ('adapters', ['down', 'up'])])
def test_units_inside_blocks_are_gathered_where_their_modules_run(name, inner, reshard, count,
                                                                  synced, tmp_path):
    units = units_inside(made(name)[0], inner)
    assert len(units) > len(blocks_of(made(name)[0]))
    check_settings(tmp_path, name, count, units=units, **synced, **reshards(reshard))


@pytest.mark.oracle('O1')
def test_every_linear_layer_may_be_a_unit(tmp_path):
    inner = ['attention.q_proj', 'attention.k_proj', 'attention.v_proj', 'attention.o_proj',
             'mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj']
    check_settings(tmp_path, 'llama3', 2, units=units_inside(made('llama3')[0], inner))


@pytest.mark.oracle('O1')
@pytest.mark.parametrize('reshard', ['auto', True, False])
def test_units_inside_blocks_of_a_model_of_the_catalogue(reshard, tmp_path):
    """cs336, whose model is here in PyTorch, too."""
    torch.manual_seed(1)
    model = course_model.LanguageModel(100, 16, width=64, layers=3, heads=4, inner=128)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    tokens = torch.randint(100, (2, 16))
    settings = reshards(reshard)
    scenario = tmp_path / 'scenario.yaml'
    for inner in (['attn', 'ffn'], ['ffn'], ['attn.q_proj', 'attn.k_proj', 'attn.v_proj',
                                             'attn.output_proj', 'ffn.w1', 'ffn.w2', 'ffn.w3']):
        units = units_inside(model, inner)
        scenario.write_text(json.dumps({
            'workload': {'model': {'family': 'cs336', 'layers': 3, 'd_model': 64, 'd_ff': 128,
                                   'heads': 4, 'vocabulary': 100}, 'batch': 2, 'sequence': 16},
            'cluster': {'nodes': 1, 'ranks_per_node': 4, 'device': 'h100-sxm',
                        'intra_node': 'nvlink4'},
            'compare': ['fsdp'],
            'training': {'strategy': 'fsdp', 'units': units, **settings}}))
        with ranks(4):
            step = step_of_fully_shard(copy.deepcopy(model), (tokens, tokens), course_model.loss,
                                       [[each] for each in units], **settings)
        assert sent_by_ddpsim(str(scenario)) == step.sent


MIXED = {'autocast': 'bf16',
         'policy': {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32}}


@pytest.mark.oracle('O7')
@pytest.mark.one_in(5)
@pytest.mark.parametrize('count, settings', [
    *((count, reshards(reshard)) for count in (2, 3, 4) for reshard in ('auto', True, False)),
    (4, reshards(2)), (4, {'micro_batches': 2, 'no_sync': True}), (2, MIXED)])
@pytest.mark.parametrize('name', ['adapters', 'frozen begin', 'frozen middle', 'unused_parameters'])
def test_frozen_parameters_are_gathered_and_never_reduced(name, count, settings, tmp_path):
    check_settings(tmp_path, name, count, **settings)


@pytest.mark.oracle('O5')
@pytest.mark.one_in(3)
@pytest.mark.parametrize('settings', [{}, MIXED])
@pytest.mark.parametrize('reshard', [True, 2])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3', 'adapters'])
def test_what_is_offloaded_is_cast_parameter_by_parameter(name, reshard, settings, tmp_path):
    check_settings(tmp_path, name, 4, offloads=True, reshard_after_forward=reshard, **settings)


@pytest.mark.oracle('O3')
def test_replicas_may_all_reduce_the_last_micro_batch_alone(tmp_path):
    for policy in ({'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
                   {'param_dtype': torch.bfloat16}, {'param_dtype': torch.float16}):
        check_settings(tmp_path, 'mlp', 4, mesh=(2, 2), micro_batches=3,
                       autocast=NAMES[policy['param_dtype']], policy=policy,
                       requires_all_reduce='last')
    for name in ('odd', 'llama3'):
        check_settings(tmp_path, name, 8, mesh=(2, 4), micro_batches=2,
                       requires_all_reduce='last')


def most_by_ddpsim(scenario):
    """The most bytes of parameters with gathers, of gradients, and of inputs of reduce-scatters."""
    memory = ddpsim.run(scenario).record['results'][0]['memory']
    return [memory[f'{kind}_bytes'] for kind in ('parameters', 'gradients', 'buckets')]


@pytest.mark.oracle('O8')
@pytest.mark.one_in(5)
@pytest.mark.parametrize('settings', [
    {'reshard_after_forward': True}, {'reshard_after_forward': False}, {},
    {'reshard_after_forward': 2}, {'reduce_scatter_max_input_buffers': 2},
    {'reshard_after_forward': True, 'forward_prefetch': 2, 'backward_prefetch': 2}])
@pytest.mark.parametrize('name, inner', [
    ('mlp', []), ('odd', []), ('llama3', []), ('hf gpt2', []), ('hf bert', []),
    ('llama3', ['attention', 'mlp'])])
def test_it_holds_what_fully_shard_holds(name, inner, settings, tmp_path):
    model, batch, loss = made(name)
    units = units_inside(model, inner)
    scenario = predicted(tmp_path, described(name), 4, units=units, **settings)
    with ranks(4):
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in units], memory=True, **settings)
    most = step.most
    assert most_by_ddpsim(scenario) == [most['parameters'] + most['gathered'], most['gradients'],
                                        most['scattered']]


@pytest.mark.oracle('O8')
@pytest.mark.parametrize('mesh, policy, gradients', [
    (None, None, 'scatter'), (None, {'param_dtype': torch.bfloat16}, 'scatter'),
    ((2, 2), None, 'scatter'), ((2, 2), {'param_dtype': torch.bfloat16}, 'replicate')])
def test_gathers_and_parts_of_gradients_have_pools_of_their_own(mesh, policy, gradients):
    """What ddpsim's pools of memory rest on: the stream that is current where memory is made."""
    model, batch, loss = made('mlp')
    settings = {'mp_policy': MixedPrecisionPolicy(**policy)} if policy else {}
    with ranks(4):
        if mesh:
            settings['mesh'] = on_mesh(*mesh)
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)], memory=True, **settings)
    assert step.pools == {'gathered': {'copy in'}, 'scattered': {'compute'},
                          'parts of gradients': {gradients}}
