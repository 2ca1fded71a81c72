"""Which gradients are complete, after which kernel, and in which order hooks fire."""
import pytest
from describe_models import (SMALL, described_order, example, from_transformers, real_order, torch,
                             value_of)
from torch import nn

from ddpsim.describe import describe

TRANSFORMERS = ['gpt2', 'llama', 'bert', 'vit', 't5', 'mixtral', 'whisper']
# cuDNN completes a recurrent layer's gradients in one node, in an order of its own.
SAME_ON_CPU = [name for name in SMALL if name != 'gru']


@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', SAME_ON_CPU)
def test_hooks_fire_as_in_a_real_step(name):
    model, batch, loss, _ = example(name)
    workload = describe(model, batch, loss)
    assert described_order(workload) == real_order(model, batch, loss)


@pytest.mark.parametrize('kind', ['gru', 'lstm'])
def test_on_a_cpu_recurrent_layers_complete_as_in_a_real_step(kind):
    model, batch, loss, _ = example('gru')
    if kind == 'lstm':
        model.gru = nn.LSTM(16, 16, 2, batch_first=True)
    workload = describe(model, batch, loss, device='cpu')
    assert described_order(workload) == real_order(model, batch, loss)


@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', TRANSFORMERS)
def test_hooks_of_transformers_fire_as_in_a_real_step(name):
    model, batch, loss, _ = from_transformers(name)
    workload = describe(model, batch, loss)
    assert described_order(workload) == real_order(model, batch, loss)


@pytest.fixture
def group_of_two():
    """A process group of two ranks in which nothing is sent."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group('fake', rank=0, world_size=2, store=FakeStore())
    yield
    dist.destroy_process_group()


def indices(text):
    """DDP's log of buckets, "0 1, 2", as lists."""
    return [[int(i) for i in bucket.split()] for bucket in text.split(',') if bucket.strip()]


@pytest.mark.parametrize('name', ['vit', 'unet', 'llama3', 'resnext', 't5', 'mixture'])
def test_buckets_of_a_real_reducer_follow_from_the_order(name, group_of_two):
    """The reducer puts gradients into buckets in the order in which they came in the first step."""
    model, batch, loss, _ = example(name)
    workload = describe(model, batch, loss)
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)

    def nothing(state, bucket):
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done
    ddp.register_comm_hook(None, nothing)
    for _ in range(3):  # the second forward rebuilds the buckets, the third logs them
        value_of(ddp, batch, loss).backward()
    logged = ddp._get_ddp_logging_data()
    order = workload.arrival
    assert [int(i) for i in logged['prev_iteration_grad_ready_order_indices'].replace(
        ',', ' ').split()] == order

    tensors = [p for p in model.parameters() if p.requires_grad]
    cap = int(0.02 * 1024 * 1024)
    buckets, _ = torch.distributed._compute_bucket_assignment_by_size(
        [tensors[i] for i in order], [cap], [False] * len(order), order)
    assert indices(logged['rebuilt_per_bucket_param_indices']) == buckets


def test_a_gradient_is_complete_after_the_kernels_of_its_node():
    """Linear's backward: the input's gradient, the weight's, the bias's; then both hooks."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    workload = describe(model, (torch.randn(2, 8), torch.randint(4, (2,))), nn.CrossEntropyLoss())
    last = workload.layers[2].backward
    assert [k.op for k in last[-3:]] == ['aten.mm', 'aten.mm', 'aten.sum']
    after = {p.name: (p.layer, p.after) for p in workload.parameters}
    assert after['2.weight'] == after['2.bias'] == (2, len(last) - 1)
    # The first layer's input needs no gradient: one product, one sum.
    assert [k.op for k in workload.layers[0].backward] == ['aten.mm', 'aten.sum']
    assert after['0.weight'] == (0, 1)
    assert described_order(workload) == ['2.bias', '2.weight', '0.bias', '0.weight']


class Inner(nn.Module):
    """A parameter beside a module, and one that another module uses in its place."""

    def __init__(self):
        super().__init__()
        self.scale, self.linear = nn.Parameter(torch.ones(8)), nn.Linear(8, 8)
        self.lent = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return torch.tanh(self.linear(x * self.scale)) @ self.lent.weight


def test_a_parameter_is_of_the_kernels_that_its_module_runs():
    model = nn.Sequential(nn.Linear(8, 8), Inner(), nn.Linear(8, 4).requires_grad_(False))
    workload = describe(model, (torch.randn(2, 8), torch.randint(4, (2,))), nn.CrossEntropyLoss())
    layer = workload.layers[1]
    assert [k.op for k in layer.forward] == ['aten.mul', 'aten.addmm', 'aten.tanh', 'aten.mm']
    ran = {p.name: (p.layer, p.forward, p.backward) for p in workload.parameters}
    last = len(layer.backward) - 1
    # Backward: two products; tanh; of the linear layer two products and a sum; of `scale` two
    # products by elements and a sum.
    assert [k.op for k in layer.backward[:6]] == [
        'aten.mm', 'aten.mm', 'aten.tanh_backward', 'aten.mm', 'aten.mm', 'aten.sum']
    for name in ('1.scale', '1.lent.weight'):
        assert ran[name] == (1, (0, 3), (0, last))
    assert ran['1.linear.weight'] == ran['1.linear.bias'] == (1, (1, 1), (3, 5))
    frozen, _ = workload.frozen_parameters
    assert frozen.name == '2.weight' and frozen.forward == (0, 0)
    assert ('shape: [8], dtype: fp32, layer: 1, after: 5, forward: [1, 1], backward: [3, 5]}'
            in workload.text())


def test_a_module_that_runs_in_several_layers_says_no_kernels():
    shared = nn.Linear(8, 8)
    model = nn.Sequential(nn.Linear(8, 8), shared, nn.Linear(8, 8), shared)
    workload = describe(model, torch.randn(2, 8), lambda model, batch: model(batch).sum())
    ran = {p.name: (p.forward, p.backward) for p in workload.parameters}
    assert ran['1.weight'][1] is None
    assert None not in ran['0.weight'] + ran['2.weight']


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.body = nn.Embedding(10, 4), nn.Linear(4, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(self.body(self.table(tokens)))


def tied_step():
    return Tied(), (torch.randint(10, (2, 3)), torch.randint(10, (2, 3))), (
        lambda model, batch: nn.functional.cross_entropy(model(batch[0]).flatten(0, 1),
                                                         batch[1].flatten()))


def test_a_tied_parameter_is_complete_once_after_its_last_use():
    workload = describe(*tied_step())
    names = [p.name for p in workload.parameters]
    assert names == ['table.weight', 'body.weight', 'body.bias']
    assert described_order(workload)[-1] == 'table.weight'
    first = workload.layers[workload.parameters[0].layer]
    assert first.name == 'table'
    assert first.backward[workload.parameters[0].after].op == 'aten.add'  # both uses, added up
    assert sum(k.op == 'aten.add' for k in workload.backward) == 1


def test_frozen_parameters_are_left_out_and_unused_ones_are_said():
    model, batch, loss, _ = example('unused_parameters')
    workload = describe(model, batch, loss)
    by_name = {p.name: p for p in workload.parameters}
    assert not any(name.startswith('frozen') for name in by_name)
    assert [n for n, p in by_name.items() if p.unused] == ['boxes.weight', 'boxes.bias']
    assert sorted(workload.arrival) == [i for i, p in enumerate(workload.parameters)
                                        if not p.unused]


def test_a_sparse_gradient_has_a_row_for_each_index():
    model, batch, loss, _ = example('sparse_embedding')
    table = describe(model, batch, loss).parameters[0]
    assert (table.name, table.sparse, table.rows) == ('items.weight', True, 4 * 3)


def test_later_micro_batches_add_one_kernel_for_each_parameter():
    model, batch, loss, _ = example('vit')
    first, later = (describe(model, batch, loss, later_micro_batch=n) for n in (False, True))
    added = len(later.backward) - len(first.backward)
    assert added == len(first.parameters)
    assert described_order(first) == described_order(later)


@pytest.mark.parametrize('name', SMALL)
def test_backward_keeps_its_order_through_the_layers(name, monkeypatch):
    """Layers from the last to the first hold exactly the kernels as they were launched."""
    from ddpsim.describe import step
    seen = []
    kept = step.cut
    monkeypatch.setattr(step, 'cut', lambda captured, *rest: (seen.append(captured),
                                                              kept(captured, *rest))[1])
    workload = describe(*example(name)[:3])
    assert workload.backward == [launch.kernel for launch in seen[0].backward]
    assert workload.forward == [launch.kernel for launch in seen[0].forward]
