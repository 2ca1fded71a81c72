"""What the ZeRO strategies send is what the installed torch sends, and what DeepSpeed was recorded
to send (tests/experiments/deepspeed_record.py)."""
import json
import pathlib

import pytest
from describe_models import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from zero_models import made

import ddpsim
from ddpsim.describe import describe

RECORDED = json.loads((pathlib.Path(__file__).parent.parent /
                       'data/zero/deepspeed.json').read_text(encoding='utf-8'))


def mean_square(model, batch):
    return model(batch).square().mean()


def scenario_of(folder, model, batch, ranks, strategy, **training):
    workload = folder / 'workload.json'
    if not workload.exists():
        describe(model, batch, mean_square).save(str(workload))
    scenario = folder / 'scenario.yaml'
    scenario.write_text(json.dumps({
        'workload': {'model': str(workload), 'optimizer': 'sgd'},
        'cluster': {'nodes': 1, 'ranks_per_node': ranks, 'device': 'h100-sxm',
                    'intra_node': 'nvlink4'},
        'compare': [strategy], 'training': {'strategy': strategy, **training}}))
    return str(scenario)


def sent_by_ddpsim(scenario, ranks):
    """[kind, elements of the full buffer] of every collective, in the order of issue."""
    record = ddpsim.schedule(scenario).record
    return [[each['operation'],
             each['bytes'] // 4 * (ranks if each['operation'] == 'all-gather' else 1)]
            for each in record['collectives']]


def name_of(case):
    options = ' '.join(f'{key}={value}' for key, value in case['options'].items())
    return (f"{case['model']} x{case['ranks']} stage {case['stage']} of "
            f"{case['micro_batches']}: {options}")


@pytest.mark.parametrize('model', ['linears', 'odd'])
@pytest.mark.parametrize('stage', [1, 2, 3])
def test_a_step_sends_what_deepspeed_sends(stage, model, tmp_path):
    cases = [each for each in RECORDED['cases']
             if each['stage'] == stage and each['model'] == model]
    assert len(cases) > 10
    wrong = []
    for case in cases:
        scenario = scenario_of(tmp_path, *made(model), case['ranks'], f'zero{stage}',
                               micro_batches=case['micro_batches'],
                               **{f'zero{stage}': {**({'variant': 'deepspeed'} if stage == 1
                                                      else {}), **case['options']}})
        found = sent_by_ddpsim(scenario, case['ranks'])
        if found != case['sent']:
            wrong.append((name_of(case), found, case['sent']))
    assert not wrong, f'{len(wrong)} of {len(cases)}: {wrong[:2]}'


class Broadcasts(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        if str(operation) == 'c10d.broadcast_.default':
            self.sent.append((arguments[2], sum(each.numel() for each in arguments[0])))
        return operation(*arguments, **(keywords or {}))


class Uneven(nn.Module):
    """Parameters of many sizes, several of which are equal."""

    def __init__(self):
        super().__init__()
        sizes = [7, 64, 33, 64, 5, 90, 12]
        self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@pytest.mark.oracle('O12')
@pytest.mark.parametrize('views', [False, True])
@pytest.mark.parametrize('ranks', [2, 3, 5, 16])
def test_updated_parameters_are_broadcast_as_by_zero_redundancy_optimizer(ranks, views, tmp_path):
    torch.manual_seed(1)
    model, batch = Uneven(), torch.randn(4, 7)
    scenario = scenario_of(tmp_path, model, batch, ranks, 'zero1',
                           zero1={'variant': 'torch', 'parameters_as_bucket_view': views})
    dist.init_process_group('fake', rank=0, world_size=ranks, store=FakeStore())
    try:
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.SGD,
                                            parameters_as_bucket_view=views, lr=0.1)
        mean_square(model, batch).backward()
        with Broadcasts() as broadcasts:
            optimizer.step()
    finally:
        dist.destroy_process_group()
    found = [(each['from_rank'], each['bytes'] // 4)
             for each in ddpsim.schedule(scenario).record['collectives']
             if each['operation'] == 'broadcast']
    assert found == broadcasts.sent
    assert {root for root, _ in found} == set(range(ranks if views else min(ranks, 12)))
