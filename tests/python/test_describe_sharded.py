"""A model that fully_shard wraps is described as it was before, and its description says how it is
sharded: a scenario with that sends what the wrapped model sends."""
import json

import pytest
from describe_models import torch, value_of

pytest.importorskip('torch', minversion='2.13')
from torch.distributed.fsdp import (  # noqa: E402
    CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard)

from fully_shard_record import ranks, recorded_step  # noqa: E402
from test_fully_shard import made, on_mesh, sent_by_ddpsim  # noqa: E402

import ddpsim  # noqa: E402
from ddpsim.describe import describe  # noqa: E402

MIXED = {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32}
CASES = {
    'blocks': ([['transformer.h.0'], ['transformer.h.1']], {}, {'units': ['transformer.h.*']}),
    'one of two': ([['transformer.h.1']], {}, {'units': ['transformer.h.1']}),
    'together': ([['transformer.h.0', 'transformer.h.1'], ['transformer.ln_f']],
                 {'reshard_after_forward': True},
                 {'units': ['transformer.h.0+transformer.h.1', 'transformer.ln_f'],
                  'reshard_after_forward': True}),
    'not resharded': ([['transformer.h.0'], ['transformer.h.1']],
                      {'reshard_after_forward': False},
                      {'units': ['transformer.h.*'], 'reshard_after_forward': False}),
    'mixed': ([['transformer.h.0'], ['transformer.h.1']],
              {'mp_policy': MixedPrecisionPolicy(**MIXED)},
              {'units': ['transformer.h.*'],
               'mp_policy': {'param_dtype': 'bf16', 'reduce_dtype': 'fp32'}}),
    'replicas': ([['transformer.h.0'], ['transformer.h.1']], {'mesh': (2, 2)},
                 {'units': ['transformer.h.*'], 'replicate': 2}),
}


def without_notes(workload):
    return [line for line in workload.text().splitlines() if not line.startswith('  - "')
            and not line.startswith('end: ')]


@pytest.mark.parametrize('case', CASES)
def test_a_wrapped_model_is_described_as_the_plain_one(case, tmp_path):
    calls, settings, training = CASES[case]
    model, batch, loss = made('hf gpt2')
    policy = settings.get('mp_policy')
    plain = describe(model, batch, loss, autocast='bf16' if policy else None)
    assert plain.training == {}
    with ranks(4):
        settings = dict(settings)
        if 'mesh' in settings:
            settings['mesh'] = on_mesh(*settings['mesh'])
        for call in calls:
            fully_shard([model.get_submodule(name) for name in call], **settings)
        fully_shard(model, **settings)
        wrapped = describe(model, batch, loss)
        assert without_notes(wrapped) == without_notes(plain)
        assert wrapped.training == {'strategy': 'fsdp', **training}
        assert any(note.startswith('fully_shard wraps the model: write `training: {strategy: fsdp')
                   for note in wrapped.notes)
        sent = recorded_step(model, batch, lambda *a: value_of(*a, loss)).sent
        again = describe(model, batch, loss)  # which has gathered parameters by now
        assert again.text() == wrapped.text()
    wrapped.save(str(tmp_path / 'workload.yaml'))
    (tmp_path / 'scenario.yaml').write_text(json.dumps({
        'workload': {'model': str(tmp_path / 'workload.yaml')},
        'cluster': {'nodes': 1, 'ranks_per_node': 4, 'device': 'h100-sxm',
                    'intra_node': 'nvlink4'},
        'compare': ['fsdp'], 'training': wrapped.training}))
    planned = sent_by_ddpsim(str(tmp_path / 'scenario.yaml'))
    assert [(kind, size, type) for kind, _, size, type in planned] == [
        (kind, size, type) for kind, _, size, type in sent]


def test_hooks_of_ones_own_stay_and_the_wrapped_model_is_left_as_it_is():
    model, batch, loss = made('mlp')
    seen = []
    model[0].register_forward_hook(lambda *a: seen.append('own'))
    with ranks(2):
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        names = [type(module).__name__ for module in model.modules()]
        workload = describe(model, batch, loss)
        assert seen == ['own']
        assert [type(module).__name__ for module in model.modules()] == names
        assert workload.training == {'strategy': 'fsdp', 'units': ['*']}


def test_one_unit_and_units_that_differ_are_told():
    model, batch, loss = made('mlp')
    with ranks(2):
        fully_shard(model)
        workload = describe(model, batch, loss)
        assert workload.training == {'strategy': 'fsdp'}
        assert any('as one unit' in note for note in workload.notes)
    model, batch, loss = made('mlp')
    with ranks(4):
        layers = list(model)[:-1]
        for number, layer in enumerate(layers):
            fully_shard(layer, reshard_after_forward=True if number else 2)
        fully_shard(model, reshard_after_forward=False)
        layers[0].set_modules_to_forward_prefetch(layers[1:])
        workload = describe(model, batch, loss)
    assert workload.training['reshard_after_forward'] is True
    named = [name for name, layer in model.named_children() if list(layer.parameters())]
    assert workload.training['units'] == [
        {'modules': '0', 'reshard_after_forward': 2}, *named[1:-1]]
    assert any('the root unit differs' in note for note in workload.notes)
    assert any('explicit prefetches are not written' in note for note in workload.notes)
    ddpsim.run({'workload': {'model': workload}, 'cluster': {
        'device': 'h100-sxm', 'ranks_per_node': 4, 'intra_node': 'nvlink4'},
        'training': workload.training, 'compare': ['fsdp']})


def test_offload_and_a_group_of_its_own_are_told():
    model, batch, loss = made('mlp')
    with ranks(2):
        for layer in model:
            fully_shard(layer, offload_policy=CPUOffloadPolicy(pin_memory=False))
        fully_shard(model, offload_policy=CPUOffloadPolicy(pin_memory=False))
        model.set_separate_reduce_scatter_group()
        workload = describe(model, batch, loss)
    assert workload.training['separate_reduce_scatter_group'] is True
    assert any('CPUOffloadPolicy is not written' in note for note in workload.notes)
