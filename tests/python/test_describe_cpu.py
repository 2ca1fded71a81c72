"""Descriptions for a CPU, held against the operations that real steps run there."""
import pytest
from describe_models import SMALL, example, from_transformers, torch, value_of
from torch.utils._python_dispatch import TorchDispatchMode

from ddpsim.describe import DescribeError, describe, rules
from ddpsim.describe.kernels import Call
from ddpsim.describe.operations import Place

# A real step also reads two numbers back where it makes one-hot vectors, which takes no kernel.
READ_BACK = 'aten._local_scalar_dense'


class Seen(TorchDispatchMode):
    """Operations of a real step, with shapes, strides and types of all their tensors."""

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        call = Call(func, args, kwargs or {}, result)
        if func.namespace not in ('prim', 'profiler') and not rules.launches_nothing(call):
            self.operations.append((str(func), looks((args, kwargs or {}))))
        return result


def looks(value):
    """Shape, stride and type of each tensor among arguments, in order. A dimension of one element
    has no stride that matters."""
    found = []
    if isinstance(value, (torch.Tensor, Place)):
        stride = value.stride() if isinstance(value, torch.Tensor) else value.stride
        if getattr(value, 'layout', torch.strided) is torch.strided:
            steps = (0 if size == 1 else step for size, step in zip(value.shape, stride))
            found.append((tuple(value.shape), tuple(steps), value.dtype))
    elif isinstance(value, dict):
        for _, inner in sorted(value.items()):
            found += looks(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            found += looks(inner)
    return found


def made(name):
    if ':' not in name:
        return example(name)
    model, batch, loss, optimizer = from_transformers(name.split(':')[1])
    return model, batch, loss, optimizer


def recorded(model, batch, loss):
    """The operations of the description, and the description with a microsecond for each."""
    kept = []

    def measure(operations):
        kept.extend(operations)
        return [1e-6] * len(operations)
    workload = describe(model, batch, loss, device='cpu', measure=measure)
    return kept, workload


@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', [n for n in SMALL if n != 'sparse_embedding'] + [
    'transformers:bert', 'transformers:vit'])
def test_a_description_for_a_cpu_has_the_operations_of_a_real_step_in_their_order(name):
    model, batch, loss, _ = made(name)
    operations, _ = recorded(model, batch, loss)
    with Seen() as seen:
        value_of(model, batch, loss).backward()
    real = [each for each in seen.operations if not each[0].startswith(READ_BACK)]
    described = [(str(op.func), looks((op.args, dict(op.kwargs)))) for op in operations]
    assert len(described) > 15
    assert described == real


def without_workspace(operations):
    """What oneDNN keeps of a forward pass is opaque bytes, of a size that is estimated."""
    return [(name, [look for look in tensors if look[2] is not torch.uint8])
            for name, tensors in operations]


LSTMS = [{}, {'bidirectional': True}, {'num_layers': 2, 'bias': False, 'dropout': 0.5},
         {'num_layers': 2, 'bidirectional': True, 'batch_first': True}]


@pytest.mark.parametrize('settings', LSTMS)
def test_an_lstm_is_one_operation_of_onednn_for_each_layer_and_direction(settings):
    torch.manual_seed(1)
    model, batch = torch.nn.LSTM(8, 16, **settings), torch.randn(5, 2, 8)

    def loss(model, batch):
        return model(batch)[0].sum()
    operations, workload = recorded(model, batch, loss)
    with Seen() as seen:
        loss(model, batch).backward()
    described = [(str(op.func), looks((op.args, dict(op.kwargs)))) for op in operations]
    assert without_workspace(described) == without_workspace(seen.operations)
    layers = settings.get('num_layers', 1) * (2 if settings.get('bidirectional') else 1)
    assert sum('mkldnn_rnn_layer.default' in name for name, _ in described) == layers
    backward = next(op for op in operations if 'rnn_layer_backward' in str(op.func))
    args, kwargs, _ = backward.arguments()
    assert len(backward.func(*args, **kwargs)) == 7  # it runs again, on memory of its own
    # The input weights with all inputs, and in each of 5 steps the states with theirs.
    first = [tuple(k.gemm) for k in workload.forward if k.gemm][:2]
    samples = 5 if settings.get('batch_first') else 2
    assert first == [(10, 64, 8, 1), (samples, 64, 16, 1)]


def test_kernels_share_the_time_of_their_operation_and_all_times_are_there():
    model, batch, loss, _ = example('resnext')
    operations, workload = recorded(model, batch, loss)
    total = sum(kernel.time for kernel in workload.forward + workload.backward)
    assert total == pytest.approx(1e-6 * len(operations))
    assert len(workload.forward + workload.backward) > len(operations)  # two of some
    assert ' us}' in workload.text()


@pytest.mark.parametrize('name', ['unet', 'mixture', 't5', 'gru', 'llama3'])
def test_each_operation_runs_again_on_tensors_of_its_own(name):
    model, batch, loss, _ = example(name)
    operations, _ = recorded(model, batch, loss)
    with torch.no_grad():
        for operation in operations:
            args, kwargs, _ = operation.arguments()
            assert looks((args, kwargs)) == looks((operation.args, dict(operation.kwargs)))
            result = operation.func(*args, **kwargs)
            for tensor in (result if isinstance(result, tuple) else (result,)):
                if isinstance(tensor, torch.Tensor):
                    assert tensor.device.type == 'cpu'


def with_cache(monkeypatch, size):
    monkeypatch.setattr('ddpsim.describe.step.cache_bytes', lambda: size)


def test_where_caches_hold_the_step_all_of_it_is_warm(monkeypatch):
    with_cache(monkeypatch, 1 << 40)
    model, batch, loss, _ = example('vit')
    operations, _ = recorded(model, batch, loss)
    assert all(op.resident and all(op.warm) for op in operations)
    with_cache(monkeypatch, 1 << 10)
    operations, _ = recorded(model, batch, loss)
    assert not any(op.resident for op in operations)


def test_only_what_an_operation_sees_is_read_before_it(monkeypatch):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(8, 4))

        def forward(self, batch):
            return self.w[2:6].sigmoid().sum()
    operations, _ = recorded(Half(), torch.zeros(1), lambda model, batch: model(batch))
    sigmoid = next(op for op in operations if 'sigmoid.default' in str(op.func))
    assert sigmoid.storages == (8 * 4 * 4,)
    assert list(sigmoid.regions()) == [(0, 2 * 4 * 4, 6 * 4 * 4)]


def test_an_operation_is_warm_that_follows_closely_and_cold_at_first(monkeypatch):
    with_cache(monkeypatch, 256 << 10)  # less than the step holds
    model, batch, loss, _ = example('vit')
    operations, _ = recorded(model, batch, loss)
    first = next(op for op in operations if 'convolution' in str(op.func))
    assert first.warm == (False, False, False)  # pictures, weight and bias
    second = next(op for op in operations if 'native_layer_norm' in str(op.func))
    assert second.warm == (True, False, False)


def test_only_a_cpu_is_measured():
    model, batch, loss, _ = example('vit')
    with pytest.raises(DescribeError, match='measure: operations are measured on a CPU'):
        describe(model, batch, loss, measure=lambda operations: [])
