"""Sizes of tensors as a device moves them."""
import torch

from .errors import DescribeError

# How ddpsim spells the formats that gradients and matrix products come in.
FORMATS = {torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}
# Formats of tensors that are stored, sent and updated; for those that FORMATS lacks, no device of
# the catalogue has a rate.
STORED = {**FORMATS, torch.float64: 'fp64', torch.complex64: 'complex64',
          torch.complex128: 'complex128', torch.float8_e4m3fn: 'fp8_e4m3',
          torch.float8_e5m2: 'fp8_e5m2'}


def format_of(dtype):
    """How a device multiplies numbers of a type, in ddpsim's words. Those it has no word for are
    known by one of equal width; `UNLIKE` says of which that is not true."""
    if dtype in FORMATS:
        return FORMATS[dtype]
    return 'bf16' if dtype.itemsize <= 2 else 'fp32'


# Real products of fp32 numbers that stand for one product of numbers of the type.
UNLIKE = {torch.float64: 1, torch.complex64: 4, torch.complex128: 4}


def stored_as(name, dtype):
    """ddpsim's name of the format a parameter has, its gradient too."""
    if dtype not in STORED:
        raise DescribeError(f'{name}: parameters of type {shown_type(dtype)} are not described; '
                            f'known: {", ".join(map(shown_type, STORED))}')
    return STORED[dtype]


def shown_type(dtype):
    return str(dtype).removeprefix('torch.')


def bytes_of(tensor):
    """Bytes of a tensor in memory. An expanded dimension, whose stride is 0, is stored once."""
    if tensor.layout is not torch.strided:
        return bytes_of(tensor._values()) + bytes_of(tensor._indices())
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        if size == 0:
            return 0
        if stride != 0:
            elements *= size
    return elements * tensor.element_size()


def place_of(tensor):
    """Equal for tensors that are the same memory seen in the same way."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.dtype,
            tuple(tensor.shape), tensor.stride())


def total_bytes(tensors):
    """Bytes of several tensors; one that is listed twice is moved once."""
    return sum(bytes_of(tensor) for tensor in {place_of(t): t for t in tensors}.values())


def tensors_in(values, found=None):
    """Every tensor in nested lists, tuples and dicts, in order."""
    found = [] if found is None else found
    if isinstance(values, torch.Tensor):
        found.append(values)
    elif isinstance(values, (list, tuple)):
        for value in values:
            tensors_in(value, found)
    elif isinstance(values, dict):
        for value in values.values():
            tensors_in(value, found)
    return found
