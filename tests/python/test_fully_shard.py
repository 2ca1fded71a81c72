"""What strategy fsdp sends is what PyTorch's fully_shard sends: which collectives, of which units,
of how many bytes, in which order."""
import json
import re

import pytest
from describe_models import example, from_transformers, torch, value_of
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

import ddpsim
from ddpsim.describe import describe

pytest.importorskip('torch', minversion='2.13')
from fully_shard_record import ranks, sent_by_fully_shard  # noqa: E402


class Odd(nn.Module):
    """Sizes that no number of ranks divides, and a parameter beside its module's children."""

    def __init__(self, inside, outside):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, inside))
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return torch.tanh(self.linear(x * self.scale))


def mean_square(model, batch):
    return model(batch).square().mean()


def made(name):
    """(model, batch, loss)"""
    torch.manual_seed(1)
    if name == 'mlp':
        layers = [nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)]
        return nn.Sequential(*layers), torch.randn(8, 64), mean_square
    if name == 'odd':
        return nn.Sequential(Odd(5, 7), Odd(7, 3), nn.Linear(3, 2)), torch.randn(4, 5), mean_square
    if name.startswith('hf '):
        return from_transformers(name[3:])[:3]
    return example(name)[:3]


def block_of(name):
    """What parameters share up to the first number in their names."""
    found = re.match(r'(?:.*?\.)??\d+(?=\.)', name)
    return found.group() if found else ''


def blocks_of(model):
    names = [block_of(name) for name, _ in model.named_parameters()]
    return [name for name in dict.fromkeys(names) if name]


def sent_by_ddpsim(tmp_path, model, batch, loss, count, **training):
    """(kind, unit, bytes of the full buffer) of every collective of a step."""
    workload = tmp_path / 'workload.json'
    describe(model, batch, loss).save(str(workload))
    scenario = tmp_path / 'scenario.yaml'
    scenario.write_text(json.dumps({
        'workload': {'model': str(workload)},
        'cluster': {'nodes': 1, 'ranks_per_node': count, 'device': 'h100-sxm',
                    'intra_node': 'nvlink4'},
        'compare': ['fsdp'], 'training': {'strategy': 'fsdp', **training}}))
    shards = count // training.get('replicate', 1)
    record = ddpsim.schedule(str(scenario)).record
    units = [block_of(unit['parameters'][0]) for unit in record['buckets']]
    return [(each['operation'], units[each['bucket']],
             each['bytes'] * (shards if each['operation'] == 'all-gather' else 1))
            for each in record['collectives'] if each['bucket'] is not None]


MODELS = ['mlp', 'odd', 'vit', 'llama3', 't5', 'hf gpt2', 'hf llama', 'hf bert']


@pytest.mark.parametrize('reshard', ['auto', True, False])
@pytest.mark.parametrize('name', MODELS)
def test_a_step_sends_what_fully_shard_sends(name, reshard, tmp_path):
    for count in (2, 3, 4, 8):
        model, batch, loss = made(name)
        predicted = sent_by_ddpsim(tmp_path, model, batch, loss, count,
                                   reshard_after_forward=reshard)
        with ranks(count):
            settings = {} if reshard == 'auto' else {'reshard_after_forward': reshard}
            sent = sent_by_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                       [[name] for name in blocks_of(model)], **settings)
        assert predicted == sent


@pytest.mark.parametrize('no_sync', [False, True])
@pytest.mark.parametrize('name', ['mlp', 'llama3', 'hf gpt2'])
def test_micro_batches_send_what_fully_shard_sends(name, no_sync, tmp_path):
    model, batch, loss = made(name)
    predicted = sent_by_ddpsim(tmp_path, model, batch, loss, 4, micro_batches=3, no_sync=no_sync)
    with ranks(4):
        sent = sent_by_fully_shard(model, batch, lambda *a: value_of(*a, loss),
                                   [[name] for name in blocks_of(model)], micro_batches=3,
                                   no_sync=no_sync)
    assert predicted == sent


@pytest.mark.parametrize('replicas, shards', [(2, 2), (2, 4), (4, 2)])
@pytest.mark.parametrize('name', ['mlp', 'odd', 'llama3'])
def test_replicas_of_shards_send_what_fully_shard_sends(name, replicas, shards, tmp_path):
    count = replicas * shards
    model, batch, loss = made(name)
    for synced in ({}, {'micro_batches': 2}, {'micro_batches': 2, 'no_sync': True}):
        predicted = sent_by_ddpsim(tmp_path, model, batch, loss, count, replicate=replicas,
                                   **synced)
        fresh, _, _ = made(name)
        with ranks(count):
            mesh = init_device_mesh('cpu', (replicas, shards),
                                    mesh_dim_names=('replicate', 'shard'))
            sent = sent_by_fully_shard(fresh, batch, lambda *a: value_of(*a, loss),
                                       [[name] for name in blocks_of(fresh)], mesh=mesh, **synced)
        assert predicted == sent
