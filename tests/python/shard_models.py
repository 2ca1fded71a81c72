"""Models that are sharded, as torch has them and as a scenario does, and what ddpsim sends of them.

What is compared: which collectives are issued, of which units, of how many bytes, of which type, in
which order, and which casts and divisions stand among them."""
import functools
import json
import re

from describe_models import example, from_transformers, torch
from torch import nn

import ddpsim
from ddpsim.describe import describe


class Odd(nn.Module):
    """Sizes that no number of ranks divides, and a parameter beside its module's children."""

    def __init__(self, inside, outside):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, inside))
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return torch.tanh(self.linear(x * self.scale))


class Spare(nn.Module):
    """A layer that its module does not use beside one that it does."""

    def __init__(self, width):
        super().__init__()
        self.spare = nn.Linear(3, 7)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.tanh(self.linear(x))


class Adapter(nn.Module):
    """A frozen layer with a trained one of low rank beside it."""

    def __init__(self, width, dtype=torch.float32):
        super().__init__()
        self.base = nn.Linear(width, width, dtype=dtype).requires_grad_(False)
        self.down = nn.Linear(width, 4, bias=False)
        self.up = nn.Linear(4, width, bias=False)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.up(self.down(x)))


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
    if name == 'adapters':
        layers = [Adapter(30) for _ in range(4)]
        return nn.Sequential(*layers, nn.Linear(30, 5)), torch.randn(4, 30), mean_square
    if name == 'spare':
        return nn.Sequential(*[Spare(9) for _ in range(4)]), torch.randn(4, 9), mean_square
    if name == 'frozen begin':
        layers = [nn.Sequential(nn.Linear(20, 20), nn.Tanh()) for _ in range(6)]
        for layer in layers[:3]:
            layer.requires_grad_(False)
        return nn.Sequential(*layers), torch.randn(4, 20), mean_square
    if name == 'frozen middle':
        layers = [nn.Sequential(nn.Linear(20, 20), nn.Tanh()) for _ in range(6)]
        for layer in layers[2:4]:
            layer.requires_grad_(False)
        return nn.Sequential(*layers), torch.randn(4, 20), mean_square
    if name.startswith('hf '):
        return from_transformers(name[3:])[:3]
    return example(name)[:3]


@functools.lru_cache(maxsize=None)
def described(name, autocast=None):
    """The description of a model of this module."""
    model, batch, loss = made(name)
    return describe(model, batch, loss, autocast=autocast)


def block_of(name):
    """What parameters share up to the first number in their names."""
    found = re.match(r'(?:.*?\.)??\d+(?=\.)', name)
    return found.group() if found else ''


def blocks_of(model):
    names = [block_of(name) for name, _ in model.named_parameters()]
    return [name for name in dict.fromkeys(names) if name]


TYPES = {'Float': torch.float32, 'BFloat16': torch.bfloat16, 'Half': torch.float16}
NAMES = {torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}


def predicted(tmp_path, description, count, **training):
    """A scenario under fsdp of what is described, of that many ranks."""
    workload = tmp_path / 'workload.json'
    description.save(str(workload))
    scenario = tmp_path / 'scenario.yaml'
    scenario.write_text(json.dumps({
        'workload': {'model': str(workload)},
        'cluster': {'nodes': 1, 'ranks_per_node': count, 'device': 'h100-sxm',
                    'intra_node': 'nvlink4'},
        'compare': ['fsdp'], 'training': {'strategy': 'fsdp', **training}}))
    return str(scenario)


def unit_of(collective):
    """The name of its unit, which is '' of the root."""
    name = collective['what'][len(collective['operation']) + 1:]
    return '' if name == 'the root' else name


def sent_by_ddpsim(scenario):
    """(kind, unit, bytes of the full buffer, or of an all-reduce's, type) of every collective of a
    step."""
    record = ddpsim.schedule(scenario).record
    events = json.loads(ddpsim.run(scenario, trace=True).trace)['traceEvents']
    kernels = [each for each in events
               if each.get('cat') == 'kernel' and each['name'].startswith('nccl')]
    first_rank = min(each['pid'] for each in kernels)
    kernels = sorted((each for each in kernels if each['pid'] == first_rank),
                     key=lambda each: each['args']['correlation'])
    collectives = [each for each in record['collectives'] if each.get('unit') is not None]
    assert len(collectives) == len(kernels)
    return [(each['operation'], unit_of(each),
             each['bytes'] * (kernel['args']['Group size']
                              if each['operation'] == 'all-gather' else 1),
             TYPES[kernel['args']['dtype']])
            for each, kernel in zip(collectives, kernels)]


def order_of_ddpsim(scenario):
    """The kinds of all collectives, casts and divisions, as they are issued. Tasks stand in a table
    that breaks long names behind their first words."""
    order = []
    report = ddpsim.schedule(scenario, tasks=True).report()
    for what in re.findall(r'^\d+ +(\S.*?)  +\S', report, re.MULTILINE):
        words = what.split()
        if 'cast' in words[:2]:
            order.append('cast')
        elif words[0] == 'divide':
            order.append('divide')
        elif words[0] in ('all-gather', 'reduce-scatter', 'all-reduce') and 'copy-' not in what:
            order.append(words[0])
    return order
