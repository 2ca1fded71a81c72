"""Operations of a captured step as they can run again: alone, on real tensors of a CPU.

A capture sees tensors without values. An `Operation` keeps of one call what decides its time: which
operation, the shapes, strides and types of its tensors, which of them share memory, its other
arguments, and which of its inputs a processor's cache still holds when it begins. `Recorder` makes
the list of a step; `Operation.arguments()` makes real tensors for one of its entries.
"""
from typing import Any, NamedTuple

import torch

from .errors import DescribeError
from .tensors import tensors_in


class Place(NamedTuple):
    """A tensor among the arguments: a view of the call's memory number `storage`."""
    shape: tuple
    stride: tuple
    offset: int
    dtype: torch.dtype
    storage: int


class Operation(NamedTuple):
    """What one call needs to run again. Equal operations take the same time."""
    func: Any
    args: tuple        # as the call had them, a Place for each tensor
    kwargs: tuple      # (name, value)
    storages: tuple    # bytes of each piece of memory
    warm: tuple        # of each: does a cache hold it when the call begins?
    written: tuple     # numbers of the pieces that the call changes
    resident: bool = False  # all memory of the step is in a cache, that of results too

    def arguments(self, generator=None):
        """(args, kwargs, memory): real tensors on the CPU, with values as any step may have them,
        and the flat pieces of memory behind them."""
        memory = [None] * len(self.storages)
        bounds = iter(_bounds(self))

        def real(value):
            if isinstance(value, Place):
                bound, size = next(bounds), self.storages[value.storage]
                elements = size // value.dtype.itemsize
                if memory[value.storage] is None:
                    memory[value.storage] = torch.zeros(size, dtype=torch.uint8)
                    _fill(_flat(memory[value.storage], value.dtype, elements), bound, generator)
                return _flat(memory[value.storage], value.dtype, elements).as_strided(
                    value.shape, value.stride, value.offset)
            if isinstance(value, tuple) and value and value[0] is _LIST:
                return [real(inner) for inner in value[1:]]
            return value
        args = _with_workspace(self.func, tuple(real(value) for value in self.args))
        kwargs = {name: real(value) for name, value in self.kwargs}
        return args, kwargs, memory

    def regions(self):
        """(number of a piece of memory, first byte, one past the last) of each tensor that the call
        is given: of a large piece it may see a small part."""
        for place in _places(self):
            last = sum((size - 1) * stride for size, stride in zip(place.shape, place.stride))
            if 0 not in place.shape:
                yield (place.storage, place.offset * place.dtype.itemsize,
                       (place.offset + last + 1) * place.dtype.itemsize)


def _with_workspace(func, args):
    """What oneDNN's forward pass leaves for this backward pass, in place of the last argument."""
    if func is not torch.ops.aten.mkldnn_rnn_layer_backward.default:
        return args
    data, weights, states = args[0], args[1:5], args[5:7]
    reverse, mode, hidden, layers, biased, train, two_ways, batch_sizes, batch_first = args[13:22]
    forward = torch.ops.aten.mkldnn_rnn_layer(data, *weights, *states, reverse, batch_sizes, mode,
                                              hidden, layers, biased, two_ways, batch_first, train)
    return *args[:-1], forward[3]


def _flat(memory, dtype, elements):
    return memory[:elements * dtype.itemsize].view(dtype)


_LIST = 'list'  # marks a tuple that was a list


def _places(operation):
    def inside(value):
        if isinstance(value, Place):
            yield value
        elif isinstance(value, tuple) and value and value[0] is _LIST:
            for inner in value[1:]:
                yield from inside(inner)
    for value in (*operation.args, *(value for _, value in operation.kwargs)):
        yield from inside(value)


def _fill(tensor, bound, generator):
    """Numbers between 0.1 and 1, of which no operation makes infinite or denormal ones; indices
    below `bound`."""
    if tensor.numel() == 0:
        return
    if tensor.is_floating_point():
        tensor.uniform_(0.1, 1, generator=generator)
    elif tensor.dtype is torch.bool:
        tensor.copy_(torch.rand(tensor.shape, generator=generator) < 0.9)
    else:
        tensor.copy_(torch.randint(bound, tensor.shape, generator=generator))


def _bounds(operation):
    """Below what integers stay, for each tensor: rows of the table an index points into."""
    name = operation.func._overloadpacket.__name__
    places = list(_places(operation))
    shape = places[0].shape if places else ()
    bound = 2
    if name in ('embedding', 'index_select', 'gather', 'scatter', 'scatter_', 'scatter_add',
                'scatter_add_', 'index_add_', 'index_add'):
        dim = 0 if name == 'embedding' else operation.args[1]
        bound = shape[dim] if shape else 2
    elif name == 'embedding_dense_backward':
        bound = operation.args[2]
    elif name.startswith('nll_loss'):
        data = places[1] if 'backward' in name else places[0]
        bound = data.shape[1] if len(data.shape) > 1 else data.shape[0]
    elif name.startswith('max_pool2d') and 'backward' in name:
        bound = places[1].shape[-1] * places[1].shape[-2]
    elif name in ('index', 'index_put', 'index_put_', '_index_put_impl_'):
        indices = [i for i, value in enumerate(operation.args[1][1:]) if isinstance(value, Place)]
        return [2, *(shape[i] for i in indices), *[2] * (len(places) - 1 - len(indices))]
    return [max(1, bound)] * len(places)


class Recorder:
    """Takes each call of a step, in order. `cache`: bytes that a processor's caches hold. Memory
    that was touched so many bytes ago or less is taken to be there still; all of it, where all that
    the step ever holds is no more: one step finds what the last one left."""

    def __init__(self, cache):
        self._operations = []
        self._cache = cache
        self._held = 0      # bytes of all memory of the step, none of it given back meanwhile
        self._moved = 0
        self._touched = {}  # storage -> bytes that were moved until it was last read or written

    def add(self, call, kernels):
        """The number of the call in `operations`. No tensor of the call is held on to: autograd
        copies a gradient that anyone else holds."""
        memory = _Memory(self._moved - self._cache, self._touched)
        args = tuple(memory.kept(value) for value in call.args)
        kwargs = tuple((name, memory.kept(value)) for name, value in sorted(call.kwargs.items()))
        changed = sorted(memory.numbers[_storage_of(tensor)] for tensor in call.changed)
        self._moved += sum(kernel.read + kernel.written for kernel in kernels)
        self._held += sum(size for storage, size in zip(memory.numbers, memory.sizes)
                          if storage not in self._touched)
        made = {}
        for tensor in tensors_in((call.args, call.kwargs, call.result)):
            if tensor.layout is torch.strided:
                self._touched[_storage_of(tensor)] = self._moved
                made[_storage_of(tensor)] = tensor.untyped_storage().nbytes()
        self._held += sum(size for storage, size in made.items() if storage not in memory.numbers)
        self._operations.append(Operation(call.func, args, kwargs, tuple(memory.sizes),
                                          tuple(memory.warm), tuple(dict.fromkeys(changed))))
        return len(self._operations) - 1

    @property
    def operations(self):
        if self._held > self._cache:
            return self._operations
        return [each._replace(warm=(True,) * len(each.warm), resident=True)
                for each in self._operations]


class _Memory:
    """The pieces of memory of one call, numbered as they come."""

    def __init__(self, since, touched):
        self.numbers, self.sizes, self.warm = {}, [], []
        self._since, self._touched = since, touched

    def kept(self, value):
        """The value, with a Place for each tensor."""
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided:
                raise DescribeError('measure: an operation on a sparse tensor is not measured')
            storage = _storage_of(value)
            if storage not in self.numbers:
                self.numbers[storage] = len(self.sizes)
                self.sizes.append(value.untyped_storage().nbytes())
                self.warm.append(self._touched.get(storage, self._since - 1) >= self._since)
            return Place(tuple(value.shape), value.stride(), value.storage_offset(), value.dtype,
                         self.numbers[storage])
        if isinstance(value, (list, tuple)):
            return (_LIST, *(self.kept(inner) for inner in value))
        return torch.device('cpu') if isinstance(value, torch.device) else value


def _storage_of(tensor):
    return tensor.untyped_storage()._cdata


def cache_bytes():
    """What the last level of this machine's caches holds, as the kernel says; 32 MiB where it
    does not."""
    try:
        with open('/sys/devices/system/cpu/cpu0/cache/index3/size', encoding='ascii') as file:
            return int(file.read().strip().rstrip('K')) << 10
    except (OSError, ValueError):
        return 32 << 20
