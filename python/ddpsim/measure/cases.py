"""Which single operations are measured, each as the kernel that a workload description would have.

A case is one kernel: `keys` are those of its class (gemm, conv, attention or pattern), `type`,
`read` and `written` as in a description, and `make` prepares its tensors on a device and gives a
function that runs it once. The sizes are those of common networks: transformers of 768 to 4096,
ResNets, EfficientNets and ConvNeXts at 224 pixels.
"""
import itertools
from dataclasses import dataclass, replace
from typing import Callable

import torch
from torch.nn import functional as F

SIZE = {'bf16': 2, 'fp16': 2, 'tf32': 4, 'fp32': 4}
STORED = {'bf16': torch.bfloat16, 'fp16': torch.float16, 'tf32': torch.float32,
          'fp32': torch.float32}
CLASSES = ('gemm', 'conv', 'attention', 'pattern')


@dataclass
class Case:
    kind: str
    shape: dict
    type: str
    read: int
    written: int
    make: Callable  # (device) -> function of no arguments

    def keys(self):
        return {self.kind: self.shape, 'type': self.type, 'read': self.read,
                'written': self.written}


@dataclass
class Extent:
    """How large the cases are."""
    rows: tuple      # of products and norms
    pictures: int
    elements: tuple  # of elementwise kernels: powers of two
    widths: tuple
    row_lengths: tuple  # of norms and softmax
    formats: tuple
    vocabulary: int


# What moves memory is larger than second-level caches: a smaller kernel of a step finds its
# operands there, and a single operation does not.
LARGE = Extent((512, 2048, 8192, 32768), 64, (24, 26, 28),
               ((768, 768), (3072, 768), (768, 3072), (1024, 1024), (4096, 1024), (1024, 4096),
                (2048, 5632), (5632, 2048), (4096, 4096), (14336, 4096), (50304, 1024)),
               (768, 1024, 4096), ('bf16', 'tf32', 'fp32'), 50304)
SMALL = Extent((64, 1024), 2, (12, 16), ((64, 64), (256, 64)), (64,), ('fp32', 'bf16'), 512)


def normal(shape, type, device):
    return torch.randn(shape, device=device, dtype=STORED[type])


# --- products ---

def products(extent):
    for type, rows, (n, k) in itertools.product(extent.formats, extent.rows, extent.widths):
        if 2.0 * rows * n * k > 4e12:
            continue
        yield product('forward', type, rows, n, k)
        yield product('input', type, rows, k, n)
        yield product('weight', type, n, k, rows)


def product(what, type, m, n, k):
    """C [m, n] of A [m, k] and B [k, n], which lie as those of a linear layer's passes do."""
    along = {'forward': 2, 'input': 1, 'weight': 0}[what]

    def make(device):
        a = normal((k, m), type, device).t() if what == 'weight' else normal((m, k), type, device)
        b = normal((n, k), type, device).t() if what == 'forward' else normal((k, n), type, device)
        return lambda: a @ b
    shape = {'m': m, 'n': n, 'k': k} | ({} if along == 2 else {'along_k': along})
    return Case('gemm', shape, type, SIZE[type] * k * (m + n), SIZE[type] * m * n, make)


# --- convolutions: channels, side, outputs, window, stride, groups ---

SHAPES = ((64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 1), (64, 56, 256, 1, 1, 1),
          (256, 56, 64, 1, 1, 1), (256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1),
          (256, 56, 512, 1, 2, 1), (128, 28, 512, 1, 1, 1), (512, 28, 128, 1, 1, 1),
          (128, 28, 128, 3, 1, 1), (512, 28, 256, 1, 1, 1), (256, 28, 256, 3, 2, 1),
          (256, 14, 1024, 1, 1, 1), (1024, 14, 256, 1, 1, 1), (256, 14, 256, 3, 1, 1),
          (512, 7, 2048, 1, 1, 1), (2048, 7, 512, 1, 1, 1), (512, 7, 512, 3, 1, 1),
          (3, 224, 64, 7, 2, 1), (3, 224, 768, 16, 16, 1), (32, 112, 32, 3, 1, 32),
          (96, 112, 96, 3, 2, 96), (144, 56, 144, 3, 1, 144), (240, 28, 240, 5, 1, 240),
          (576, 14, 576, 3, 1, 576), (96, 56, 96, 7, 1, 96), (192, 28, 192, 7, 1, 192),
          (384, 14, 384, 7, 1, 384), (24, 56, 144, 1, 1, 1), (144, 56, 24, 1, 1, 1))
SMALL_SHAPES = ((16, 14, 16, 3, 1, 1), (16, 14, 16, 3, 1, 16))


def copies_layout(type, direction, shape):
    """Does cuDNN copy tensors with channels first to channels last, and run that kernel?"""
    channels, side, _, window, stride, groups = shape
    if type == 'fp32' or groups > 1 or channels % 4:
        return False
    by_picture = window == 1 and stride == 1 and side ** 2 % 4 == 0
    return not by_picture or (type == 'tf32' and direction == 'weight' and side ** 2 < 300)


def convolutions(extent, shapes, copies):
    """`copies`: kernels of tensor cores copy layouts, and have the time of channels last."""
    for type, shape, last, direction in itertools.product(
            extent.formats, shapes, (False, True), ('forward', 'input', 'weight')):
        if direction == 'input' and shape[0] == 3:
            continue  # pictures need no gradient
        measured_last = last or (copies and copies_layout(type, direction, shape))
        yield convolution(type, extent.pictures, shape, direction, last, measured_last)


def convolution(type, pictures, shape, direction, last, measured_last):
    channels, side, outputs, window, stride, groups = shape
    pad = 0 if window == stride else window // 2
    places = (side + 2 * pad - window) // stride + 1
    counts = {'data': pictures * channels * side ** 2, 'result': pictures * outputs * places ** 2,
              'weight': outputs * channels // groups * window ** 2}
    read, written = {'forward': (('data', 'weight'), 'result'),
                     'input': (('result', 'weight'), 'data'),
                     'weight': (('data', 'result'), 'weight')}[direction]

    def make(device):
        layout = torch.channels_last if measured_last else torch.contiguous_format

        def tensor(*sides):
            return normal(sides, type, device).to(memory_format=layout)
        data = tensor(pictures, channels, side, side)
        weight = tensor(outputs, channels // groups, window, window)
        if direction == 'forward':
            return lambda: F.conv2d(data, weight, None, stride, pad, 1, groups)
        gradient = tensor(pictures, outputs, places, places)
        wanted = [direction == 'input', direction == 'weight', False]
        return lambda: torch.ops.aten.convolution_backward(
            gradient, data, weight, None, [stride, stride], [pad, pad], [1, 1], False, [0, 0],
            groups, wanted)
    keys = {'direction': direction, 'pictures': pictures, 'channels': channels,
            'pixels': side ** 2, 'outputs': outputs, 'places': places ** 2, 'window': window ** 2}
    keys |= {'groups': groups} if groups > 1 else {}
    keys |= {'channels_last': True} if last else {}
    return Case('conv', keys, type, SIZE[type] * sum(counts[each] for each in read),
                SIZE[type] * counts[written], make)


# --- attention: batch, heads, length, size, causal ---

ATTENTION = ((8, 16, 1024, 64, True), (32, 16, 256, 64, False), (16, 16, 512, 64, False),
             (32, 12, 512, 64, False), (2, 32, 2048, 64, True), (4, 32, 2048, 128, True),
             (1, 32, 4096, 128, True), (64, 12, 197, 64, False))
BACKENDS = {'flash': 'FLASH_ATTENTION', 'efficient': 'EFFICIENT_ATTENTION',
            'cudnn': 'CUDNN_ATTENTION'}


def attention(extent):
    """The memory-efficient kernel's gradients come with small kernels of their own, which a
    description has by themselves: they are left to the laws."""
    for type, shape, name, backward in itertools.product(
            extent.formats, ATTENTION, BACKENDS, (False, True)):
        if type == 'tf32' or (type == 'fp32' and name != 'efficient'):
            continue
        if backward and name == 'efficient':
            continue
        yield attention_case(type, shape, name, backward)


def attention_case(type, shape, name, backward):
    batch, heads, length, size, causal = shape
    bytes_of_one = SIZE[type] * batch * heads * length * size

    def make(device):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        query, key, value = (normal((batch, heads, length, size), type, device)
                             .requires_grad_(backward) for _ in range(3))

        def forward():
            with sdpa_kernel(getattr(SDPBackend, BACKENDS[name])):
                return F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        if not backward:
            return forward
        result = forward()
        gradient = torch.randn_like(result)
        return lambda: torch.autograd.grad(result, (query, key, value), gradient,
                                           retain_graph=True)
    keys = {'batch': batch, 'heads': heads, 'queries': length, 'keys': length, 'size': size,
            'implementation': name}
    keys |= {'causal': True} if causal else {}
    keys |= {'backward': True} if backward else {}
    read, written = (5, 3) if backward else (3, 1)
    return Case('attention', keys, type, read * bytes_of_one, written * bytes_of_one, make)


# --- what moves memory, where single kernels are one launch ---

def patterns(extent):
    formats = [each for each in extent.formats if each != 'tf32']
    for type, power in itertools.product(formats, extent.elements):
        yield from flat(type, 1 << power)
    for type, rows, columns in itertools.product(formats, extent.rows, extent.row_lengths):
        yield from by_rows(type, rows, columns)
    for rows in extent.rows:
        if rows <= 8192:
            yield rows_case('log_softmax', 'fp32', rows, extent.vocabulary,
                            lambda data: lambda: torch.log_softmax(data, -1))
    for type, (channels, side) in itertools.product(
            formats, ((64, 112), (128, 56), (256, 28)) if extent.pictures > 2 else ((16, 14),)):
        yield max_pool(type, extent.pictures, channels, side)


def pattern(of, type, read, written, make, rows=1, columns=1, **more):
    shape = {'of': of, 'rows': rows, 'columns': columns} | more
    return Case('pattern', shape, type, read, written, make)


def flat(type, count):
    width = SIZE[type]

    def unary(function):
        def make(device):
            data = normal((count,), type, device)
            return lambda: function(data)
        return make

    def add(device):
        one, other = normal((count,), type, device), normal((count,), type, device)
        return lambda: one + other
    yield pattern('elementwise', type, 2 * width * count, width * count, add)
    yield pattern('gelu', type, width * count, width * count, unary(F.gelu))
    yield pattern('sum', type, width * count, width, unary(torch.sum), 1, count)
    if width == 2:
        yield pattern('widening', 'fp32', 2 * count, 4 * count, unary(lambda data: data.float()))


def rows_case(of, type, rows, columns, function, writes=True, **more):
    def make(device):
        return function(normal((rows, columns), type, device))
    size = SIZE[type] * rows * columns
    return pattern(of, type, size, size if writes else 0, make, rows, columns, **more)


def by_rows(type, rows, columns):
    yield rows_case('softmax', type, rows, columns, lambda data: lambda: torch.softmax(data, -1))
    yield rows_case('sum_of_rows', type, rows, columns, lambda data: lambda: data.sum(0), False)

    def forward(data):
        weight = torch.ones(columns, device=data.device, dtype=data.dtype)
        return lambda: F.layer_norm(data, (columns,), weight, weight)
    yield rows_case('layer_norm', type, rows, columns, forward)


def max_pool(type, pictures, channels, side):
    outputs = pictures * channels * ((side + 1) // 2) ** 2
    read = SIZE[type] * pictures * channels * side ** 2

    def make(device):
        data = normal((pictures, channels, side, side), type, device)
        return lambda: F.max_pool2d(data, 3, 2, 1)
    return pattern('max_pool', type, read, outputs * (SIZE[type] + 8), make, outputs, 9)


# --- all of them ---

def usable_formats(device):
    """What the device multiplies on tensor cores, and fp32."""
    if device.type != 'cuda':
        return SMALL.formats
    major = torch.cuda.get_device_capability(device)[0]
    return ('bf16', 'tf32', 'fp32') if major >= 8 else ('fp16', 'fp32')


def cases(device, classes=CLASSES):
    """All of them, the classes in turn, so that a short time measures some of each."""
    cuda = device.type == 'cuda'
    extent = replace(LARGE if cuda else SMALL, formats=usable_formats(device))
    sources = {'gemm': lambda: products(extent),
               'conv': lambda: convolutions(extent, SHAPES if cuda else SMALL_SHAPES, cuda),
               'attention': lambda: attention(extent) if cuda else (),
               'pattern': lambda: patterns(extent)}
    lists = [list(sources[each]()) for each in CLASSES if each in classes]
    longest = max(map(len, lists))
    places = sorted((index * longest / len(some), order, index)
                    for order, some in enumerate(lists) for index in range(len(some)))
    return [lists[order][index] for _, order, index in places]
