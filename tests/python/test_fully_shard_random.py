"""Strategy fsdp against PyTorch's fully_shard on random networks under random settings: which
collectives a step sends, of which units, of how many bytes, of which type, in which order."""
import random

import pytest
from describe_models import torch, value_of
from torch import nn

from ddpsim.describe import describe

pytest.importorskip('torch', minversion='2.13')
from torch.distributed.fsdp import MixedPrecisionPolicy  # noqa: E402

from fully_shard_record import on_mesh, ranks, step_of_fully_shard  # noqa: E402
from shard_models import NAMES, mean_square, predicted, sent_by_ddpsim  # noqa: E402


class Residual(nn.Module):
    """x + f(x), or x f(x), with a parameter beside it."""

    def __init__(self, inner, width, multiplies):
        super().__init__()
        self.inner, self.multiplies = inner, multiplies
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = self.inner(x) * self.gain
        return x * y if self.multiplies else x + y


class Branches(nn.Module):
    """The sum of two modules of the same input."""

    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right

    def forward(self, x):
        return torch.tanh(self.left(x)) + self.right(x)


def layer(dice, width, out):
    kind = dice.choice(['linear', 'bare', 'normed', 'two', 'branches'])
    if kind == 'linear':
        return nn.Linear(width, out)
    if kind == 'bare':
        return nn.Sequential(nn.Linear(width, out, bias=False), nn.ReLU())
    if kind == 'normed':
        return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, out))
    if kind == 'two':
        inside = dice.randint(3, 40)
        return nn.Sequential(nn.Linear(width, inside), nn.Tanh(), nn.Linear(inside, out))
    return Branches(nn.Linear(width, out), nn.Linear(width, out, bias=False))


def network(dice):
    """A chain of blocks, of sizes that few numbers of ranks divide."""
    width, blocks = dice.randint(3, 50), []
    first = width
    for _ in range(dice.randint(2, 7)):
        if dice.random() < 0.4:
            blocks.append(Residual(layer(dice, width, width), width, dice.random() < 0.5))
        else:
            out = dice.randint(3, 50)
            blocks.append(layer(dice, width, out))
            width = out
    if dice.random() < 0.25:  # a block without gradients, anywhere
        dice.choice(blocks).requires_grad_(False)
    model = nn.Sequential(*blocks, nn.Linear(width, dice.randint(2, 9)))
    return model, torch.randn(dice.randint(2, 6), first)


def units_of(dice, model):
    """Some blocks, some of them together; what is left is the root's."""
    names, units = [str(i) for i in range(len(model))], []
    while names:
        first = names.pop(0)
        if dice.random() < 0.2:
            continue
        if names and dice.random() < 0.25:
            units.append([first, names.pop(0)])
        else:
            units.append([first])
    return units or [['0']]


def settings_of(dice, shards):
    divisors = [each for each in range(2, shards + 1) if shards % each == 0]
    choices = {
        'reshard_after_forward': [True, False, dice.choice(divisors)],
        'forward_prefetch': [1, 2], 'backward_prefetch': [1, 2],
        'reshard_after_backward': [False],
        'micro_batches': [2, 3]}
    given = {key: dice.choice(values) for key, values in choices.items() if dice.random() < 0.4}
    if 'micro_batches' in given and dice.random() < 0.5:
        given['no_sync'] = True
    return given


@pytest.mark.oracle('O1')
@pytest.mark.one_in(2)
@pytest.mark.parametrize('seed', range(40))
def test_random_networks_send_what_fully_shard_sends(seed, tmp_path):
    dice = random.Random(seed)
    torch.manual_seed(seed)
    model, batch = network(dice)
    units = units_of(dice, model)
    replicas, shards = dice.choice([(1, 2), (1, 3), (1, 4), (2, 2)])
    training = settings_of(dice, shards)
    policy = dice.choice([{}, {}, {'reduce_dtype': torch.bfloat16},
                          {'param_dtype': torch.bfloat16, 'reduce_dtype': torch.float32},
                          {'param_dtype': torch.bfloat16}])
    more = {'units': ['+'.join(each) for each in units], 'replicate': replicas}
    if policy:
        more['mp_policy'] = {key: NAMES[each] for key, each in policy.items()}
    autocast = NAMES[policy['param_dtype']] if 'param_dtype' in policy else None
    description = describe(model, batch, mean_square, autocast=autocast)
    scenario = predicted(tmp_path, description, replicas * shards, **training, **more)
    with ranks(replicas * shards):
        further = {'mp_policy': MixedPrecisionPolicy(**policy)} if policy else {}
        if replicas > 1:
            further['mesh'] = on_mesh(replicas, shards)
        step = step_of_fully_shard(model, batch, lambda *a: value_of(*a, mean_square), units,
                                   **training, **further)
    assert sent_by_ddpsim(scenario) == step.sent
