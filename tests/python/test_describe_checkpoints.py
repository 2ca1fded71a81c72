"""Activation checkpoints under autocast: a block runs again in backward in the autocast that it ran
in first. Real steps on the CPU decide; CUDA has the same rules for the operations in them."""
import copy
from collections import Counter

import pytest
from describe_models import from_transformers, torch, value_of
from test_describe_cpu import READ_BACK, Seen, looks
from test_describe_cpu import made as example_or_transformers
from torch import nn
from torch.utils.checkpoint import checkpoint

from ddpsim.describe import describe

WAYS = pytest.mark.parametrize('reentrant', [None, False, True])


class Blocks(nn.Module):
    """Two blocks, checkpointed unless `reentrant` is None."""

    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.ReLU())
            for _ in range(2))
        self.last = nn.Linear(8, 8)

    def forward(self, x):
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(
                block, x, use_reentrant=self.reentrant)
        return self.last(x)


def made(reentrant):
    torch.manual_seed(1)
    return Blocks(reentrant), torch.randn(4, 8, requires_grad=True)


def in_autocast(**settings):
    """A loss that uses the last layer's weights twice."""
    def loss(model, batch):
        with torch.autocast('cpu', dtype=torch.bfloat16, **settings):
            return model.last(model(batch)).float().sum()
    return loss


def described_operations(model, batch, loss):
    kept = []

    def measure(operations):
        kept.extend(operations)
        return [1e-6] * len(operations)
    describe(model, batch, loss, device='cpu', measure=measure)
    return [(str(op.func), looks((op.args, dict(op.kwargs)))) for op in kept]


def real_operations(model, batch, loss):
    with Seen() as seen:
        loss(model, batch).backward()
    return seen.operations


def products(operations):
    return [each for each in operations if 'mm' in each[0]]


def counted(operations):
    """The arguments of one operation are cast one after the other, in an order that is the
    compiler's."""
    return Counter(map(str, operations))


@pytest.mark.one_in(2)
@WAYS
@pytest.mark.parametrize('cache', [True, False])
def test_checkpoints_under_autocast_run_what_a_real_step_runs(reentrant, cache):
    loss = in_autocast(cache_enabled=cache)
    described, real = (operations(*made(reentrant), loss)
                       for operations in (described_operations, real_operations))
    assert products(described) == products(real)
    assert counted(described) == counted(real)
    # Six products forward, two for each of them in backward, and both of each block again: the ReLU
    # needs the result of the second.
    again = {None: 0, False: 4, True: 4}[reentrant]
    assert [tensors[-1][2] for _, tensors in products(described)] == [torch.bfloat16] * (
        6 + 12 + again)
    casts = sum('_to_copy' in name for name, _ in described)
    without = sum('_to_copy' in name for name, _ in described_operations(
        *made(reentrant), in_autocast(cache_enabled=not cache)))
    assert (casts < without) == cache


# A UNet's group norms keep their statistics in fp32 where weights are, which meta tensors do not.
@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', [
    'vit', 't5', 'llama3', 'resnext', 'gru', 'mixture', 'dlrm', 'transformers:bert',
    'transformers:vit'])
def test_autocast_for_a_cpu_casts_what_a_real_step_casts(name):
    model, batch, loss, _ = example_or_transformers(name)

    def in_16_bits(model, batch):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            return value_of(model, batch, loss).float()
    described = described_operations(model, batch, in_16_bits)
    real = [each for each in real_operations(model, batch, in_16_bits)
            if not each[0].startswith(READ_BACK)]
    assert products(described) == products(real)
    assert counted(described) == counted(real)


def test_code_that_asks_which_autocast_it_is_in_is_told():
    told = []

    def asking(model, batch):
        told.append((torch.is_autocast_enabled(batch.device.type),
                     torch.get_autocast_dtype(batch.device.type)))
        with torch.autocast('cuda', enabled=False):
            told.append((torch.is_autocast_enabled(),))
        return model(batch).sum()
    functions = torch.is_autocast_enabled, torch.get_autocast_dtype
    describe(*made(None), asking, autocast=torch.bfloat16)
    assert told == [(True, torch.bfloat16), (False,)]
    assert (torch.is_autocast_enabled, torch.get_autocast_dtype) == functions


class Functions(nn.Module):
    """A block that is no module call where it is checkpointed: functions of tensors alone."""

    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
        self.weight = nn.Parameter(torch.randn(16, 8))

    def forward(self, x):
        def block(x):
            return (x @ self.weight.T).sin() @ self.weight
        x = self.first(x)
        x = block(x) if self.reentrant is None else checkpoint(
            block, x, use_reentrant=self.reentrant)
        return self.last(x)


def counted_twice(workload):
    return sum(kernel.flops for kernel in workload.backward if kernel.recomputed)


@pytest.mark.parametrize('reentrant', [False, True])
@pytest.mark.parametrize('model', [Blocks, Functions])
def test_kernels_that_run_again_are_marked_and_no_others(model, reentrant):
    def described(reentrant):
        torch.manual_seed(1)
        return describe(model(reentrant), torch.randn(4, 8, requires_grad=True),
                        lambda model, x: model(x).sum())
    plain, again = described(None), described(reentrant)
    assert not any(kernel.recomputed for kernel in plain.forward + plain.backward + again.forward)
    assert counted_twice(again) > 0
    assert again.flops - counted_twice(again) == plain.flops
    assert ', recomputed: true' in again.text() and ', recomputed: true' not in plain.text()
    assert '\nmarks_recomputed: true\n' in plain.text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize('reentrant', [False, True])
@pytest.mark.parametrize('name', ['gpt2', 'llama', 'bert'])
def test_a_checkpointed_transformer_has_the_model_flops_of_the_plain_one(name, reentrant):
    model, batch, _, _ = from_transformers(name)
    plain = describe(model, batch)
    model.gradient_checkpointing_enable({'use_reentrant': reentrant})
    again = describe(model, batch)
    assert again.flops > plain.flops
    assert again.flops - counted_twice(again) == plain.flops


def calculations(kernels):
    """Products and attentions, counted, with their formats."""
    return Counter((k.op, k.type, k.gemm, k.attention) for k in kernels if k.gemm or k.attention)


# In each of two blocks; without re-entry Llama's last product does not run again, whose result is
# only added to something.
@pytest.mark.one_in(2)
@pytest.mark.parametrize('name, reentrant, in_block', [
    ('gpt2', False, 5), ('gpt2', True, 5), ('llama', False, 7), ('llama', True, 8),
    ('bert', False, 7), ('bert', True, 7)])
def test_blocks_of_transformers_run_again_with_the_kernels_of_the_forward_pass(name, reentrant,
                                                                               in_block):
    model, batch, _, _ = from_transformers(name)
    plain = describe(model, batch, autocast=torch.bfloat16)
    model.gradient_checkpointing_enable({'use_reentrant': reentrant})
    described = describe(model, batch, autocast=torch.bfloat16)
    assert calculations(described.forward) == calculations(plain.forward)
    again = calculations(described.backward) - calculations(plain.backward)
    assert again.total() == 2 * in_block
    assert again <= calculations(plain.forward)
    assert not calculations(plain.backward) - calculations(described.backward)
    assert {kind for _, kind, _, _ in again} == {'bf16'}
