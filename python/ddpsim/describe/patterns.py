"""How a kernel that only moves memory goes over it, which decides how fast it is.

A `Pattern` names the law and its sizes: rows and columns of a softmax, channels of a batch norm. A
kernel without one reads and writes whole tensors as they lie, at the memory's rate. Which kernels
of PyTorch are slower than that: TensorIterator's that convert between formats or go over tensors
that lie differently do not read several elements at once (torch 2.13, aten/src/ATen/native/cuda/
CUDALoops.cuh); measured on an H200 (tests/data/h200).
"""
from .kernels import Pattern
from .results import lies_last

GELU = ('aten.gelu', 'aten.gelu_backward')


def of_elementwise(call):
    """None for a plain one."""
    if call.op in GELU:
        return Pattern('gelu', backward=call.op.endswith('backward'))
    results = call.outputs
    if not results:
        return None
    result = results[0]
    sizes = {result.dtype.itemsize} if result.is_floating_point() else set()
    alike = True
    for tensor in call.inputs:
        if tensor.numel() > 1:
            if tensor.is_floating_point():
                sizes.add(tensor.dtype.itemsize)
            alike = alike and lie_alike(tensor, result)
    if len(sizes) > 1:
        if not is_copy(call):
            return Pattern('mixed')
        if result.dtype.itemsize == max(sizes):
            return Pattern('widening')
    return None if alike else Pattern('strided')


def is_copy(call):
    return call.op in ('aten._to_copy', 'aten.copy_', 'aten.clone')


def lie_alike(tensor, result):
    return (tensor.shape == result.shape and tensor.stride() == result.stride()
            or tensor.is_contiguous() and result.is_contiguous()
            and tensor.numel() == result.numel())


def reduced_dims(call):
    """The dimensions a reduction adds up, None for all."""
    names = {argument.name for argument in call.func._schema.arguments}
    dims = call['dim'] if 'dim' in names else None
    if dims is None or dims == []:
        return None
    data = call.inputs[0]
    return {dim % max(1, data.dim()) for dim in (dims if isinstance(dims, (list, tuple))
                                                 else [dims])}


def of_reduction(call):
    """To one number; over rows, whose columns are kept; or along the rows that are kept. Which of
    the latter two: whether elements that lie beside each other are added up."""
    data = call.inputs[0]
    dims = reduced_dims(call)
    if dims is None or len(dims) == data.dim():
        return Pattern('sum', 1, data.numel())
    reduced = 1
    for dim in dims:
        reduced *= data.shape[dim]
    kept = data.numel() // max(1, reduced)
    sizes = [(stride, dim) for dim, stride in enumerate(data.stride()) if data.shape[dim] > 1]
    if kept <= 1 or not sizes:
        return Pattern('sum', 1, data.numel())
    if min(sizes)[1] in dims:
        return Pattern('reduce', kept, reduced)
    return Pattern('sum_of_rows', reduced, kept)


def along(call, name, backward=False):
    """Rows of a softmax."""
    data = call.inputs[0]
    columns = data.shape[call['dim']] if data.dim() else 1
    return Pattern(name, data.numel() // max(1, columns), columns, backward)


def gathered(call):
    """Rows that are taken from a table."""
    result = call.outputs[0]
    width = result.shape[-1] if result.dim() else 1
    if call.op in ('aten.embedding', 'aten.index_select', 'aten._embedding_bag'):
        return Pattern('gather', result.numel() // max(1, width), width)
    source = call.inputs[0]
    if call.op == 'aten.gather' or not call.func._overloadpacket.__name__.endswith('index'):
        return Pattern('gather', result.numel(), 1)
    indices = sum(index is not None for index in call['indices'])
    width = 1
    for size in source.shape[indices:]:
        width *= size
    return Pattern('gather', result.numel() // max(1, width), width)


def of_batch_norm(name, data, backward=False):
    channels = data.shape[1] if data.dim() > 1 else data.numel()
    return Pattern(name, channels, data.numel() // max(1, channels), backward, lies_last(data),
                   data.shape[2:].numel() if data.dim() > 2 else 0)


def pooled(call, name, result, backward=False):
    """Outputs, and the elements of a window of each."""
    data = call['self']
    if 'kernel_size' in {argument.name for argument in call.func._schema.arguments}:
        sizes = call['kernel_size']
        sizes = sizes if isinstance(sizes, (list, tuple)) else [sizes]
        rank = 3 if '3d' in call.op else 1 if '1d' in call.op else 2
        window = 1
        for size in (list(sizes) * rank)[:rank]:
            window *= size
    else:
        window = max(1, data.numel() // max(1, result.numel()))
    return Pattern(name, result.numel(), window, backward, lies_last(data))
