"""The description of a training step: what `describe` returns, and how it is written."""
import json
import os
from dataclasses import dataclass, field
from typing import Optional

from .._files import sealed, write

FORMAT = 'ddpsim.workload/2'


@dataclass(frozen=True)
class Parameter:
    """A tensor that is trained. Its gradient is complete after entry `after` of the backward
    kernels of layer `layer`; `forward` and `backward` are the first and the last entry of that
    layer's passes that its module runs, None where they are not known."""
    name: str
    shape: tuple
    dtype: str
    layer: int = 0
    after: int = 0
    sparse: bool = False
    rows: int = 0
    unused: bool = False
    forward: Optional[tuple] = None
    backward: Optional[tuple] = None


@dataclass(frozen=True)
class Buffers:
    """Buffers of one type, which DDP broadcasts together."""
    tensors: int
    bytes: int


@dataclass(frozen=True)
class Frozen:
    """Tensors of one type that live on the device beside parameters that are trained and buffers:
    parameters that are not trained, and tensors that modules hold as plain attributes."""
    tensors: int
    bytes: int


@dataclass(frozen=True)
class FrozenParameter:
    """A parameter that is not trained, and the index of the layer whose passes take it;
    `forward` and `backward` as of a parameter that is trained."""
    name: str
    shape: tuple
    dtype: str
    layer: int
    forward: Optional[tuple] = None
    backward: Optional[tuple] = None


@dataclass
class Workload:
    """One training step: kernels of forward and backward by layer, parameters and the order in
    which their gradients are complete. `save` writes what `ddpsim run FILE` reads."""
    source: str
    model: str
    batch: int
    layers: list                 # Layer, forward order
    parameters: list             # Parameter, registration order
    arrival: list                # indices of parameters in the order their hooks fire
    buffers: list                # Buffers
    frozen: list = field(default_factory=list)       # Frozen
    frozen_parameters: list = field(default_factory=list)  # FrozenParameter, those among `frozen`
    inputs: int = 0              # bytes of the batch
    collectives: list = field(default_factory=list)  # that the model itself sends
    dtype: str = 'fp32'
    compute: Optional[str] = None
    sequence: Optional[int] = None
    optimizer: Optional[str] = None
    clip_gradients: bool = False
    attention: Optional[str] = None
    release: Optional[str] = None  # of PyTorch, whose choices are meant
    notes: list = field(default_factory=list)
    partial: list = field(default_factory=list)
    training: dict = field(default_factory=dict)  # of a wrapped model: keys for a scenario

    @property
    def forward(self):
        """Kernels in the order they run."""
        return [kernel for layer in self.layers for kernel in layer.forward]

    @property
    def backward(self):
        return [kernel for layer in reversed(self.layers) for kernel in layer.backward]

    @property
    def flops(self):
        return sum(kernel.flops for kernel in self.forward + self.backward)

    def text(self):
        """The description as YAML, `format: ddpsim.workload/2`."""
        return sealed('\n'.join(_lines(self)) + '\n')

    def save(self, path):
        write(os.fspath(path), self.text())

    def __repr__(self):
        elements = sum(_product(p.shape) for p in self.parameters)
        forward, backward = (sum(k.launches for k in kernels)
                             for kernels in (self.forward, self.backward))
        return (f'{self.model}: batch {self.batch}, {len(self.layers)} layers, '
                f'{len(self.parameters)} parameters of {elements:,} elements ({self.dtype}), '
                f'{forward} + {backward} kernels, {self.flops / 1e12:.3g} TFLOP a step')


def _product(sizes):
    result = 1
    for size in sizes:
        result *= size
    return result


def quoted(text):
    """A YAML scalar; double quotes of YAML hold all that JSON's do."""
    plain = text and all(c.isalnum() and c.isascii() or c in '_.-/' for c in text)
    looks_like_text = plain and text[0].isalpha() and text.lower() not in (
        'null', 'true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n')
    return text if looks_like_text else json.dumps(text, ensure_ascii=False)


def _flow(pairs):
    return '{' + ', '.join(f'{key}: {value}' for key, value in pairs) + '}'


def _kernel(kernel):
    pairs = [('op', quoted(kernel.op)), ('kind', kernel.kind)]
    if kernel.gemm:
        sizes = list(kernel.gemm._asdict().items())
        if kernel.along_k != 2 and kernel.kind == 'gemm':
            sizes.append(('along_k', kernel.along_k))
        pairs.append(('gemm', _flow(sizes)))
    if kernel.conv:
        pairs.append(('conv', _flow(_said(kernel.conv))))
    if kernel.attention:
        pairs.append(('attention', _flow(_attention(kernel.attention))))
    pairs += [('type', kernel.type), ('read', kernel.read), ('written', kernel.written),
              ('flops', kernel.flops), ('launches', kernel.launches)]
    if kernel.launches_in_fp32 not in (None, kernel.launches) and kernel.type in ('fp32', 'tf32'):
        pairs.append(('launches_in_fp32', kernel.launches_in_fp32))
    if kernel.operations != 1:
        pairs.append(('operations', kernel.operations))
    if not kernel.tensor_cores:
        pairs.append(('tensor_cores', 'false'))
    if kernel.multiprocessors is not None:
        pairs.append(('multiprocessors', kernel.multiprocessors))
    if kernel.capability is not None:
        pairs.append(('capability', kernel.capability))
    if kernel.pattern:
        pairs.append(('pattern', _flow(_said(kernel.pattern))))
    if kernel.recomputed:
        pairs.append(('recomputed', 'true'))
    if kernel.host is not None:
        pairs.append(('host', f'{kernel.host:.1f} us'))
    if kernel.time is not None:
        pairs.append(('time', f'{1e6 * kernel.time:.3f} us'))
    return _flow(pairs)


def _said(values):
    """Pairs of a tuple's fields, without those that are nothing or false."""
    return [(key, str(value).lower()) for key, value in values._asdict().items() if value]


def _attention(shape):
    one_size = shape.value_size == shape.size
    return [(key, str(value).lower()) for key, value in shape._asdict().items()
            if not (key == 'value_size' and one_size or key == 'masked' and not value)]


def _runs(kernels, index_of):
    """Indices, equal neighbours as [index, count]."""
    runs = []
    for kernel in kernels:
        index = index_of[kernel]
        if runs and runs[-1][0] == index:
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    return '[' + ', '.join(str(i) if count == 1 else f'[{i}, {count}]' for i, count in runs) + ']'


def _parameter(parameter):
    pairs = [('name', quoted(parameter.name)), ('shape', list(parameter.shape)),
             ('dtype', parameter.dtype)]
    if parameter.unused:
        return _flow(pairs + [('unused', 'true')])
    pairs += [('layer', parameter.layer), ('after', parameter.after), *_entries(parameter)]
    if parameter.sparse:
        pairs += [('sparse', 'true'), ('rows', parameter.rows)]
    return _flow(pairs)


def _frozen_parameter(parameter):
    return _flow([('name', quoted(parameter.name)), ('shape', list(parameter.shape)),
                  ('dtype', parameter.dtype), ('layer', parameter.layer), *_entries(parameter)])


def _entries(parameter):
    return [(key, list(getattr(parameter, key))) for key in ('forward', 'backward')
            if getattr(parameter, key)]


def _counted(collectives):
    """Each distinct one once, in order, with how often it is sent."""
    counts = {}
    for each in collectives:
        counts[each] = counts.get(each, 0) + 1
    return counts.items()


def _collective(sent, count):
    pairs = [('op', sent.op), ('pass', sent.phase)]
    if sent.module:  # else the model itself, its loss or the hook of a gradient
        pairs.append(('module', quoted(sent.module)))
    pairs.append(('bytes', sent.bytes))
    if sent.layer is not None:
        pairs += [('layer', sent.layer), ('after', sent.after)]
    return pairs + ([('count', count)] if count > 1 else [])


def _lines(workload):
    yield f'format: {FORMAT}'
    yield 'written_by: ddpsim.describe'
    yield f'source: {json.dumps(workload.source, ensure_ascii=False)}'
    yield f'model: {quoted(workload.model)}'
    yield f'batch: {workload.batch}'
    for key in ('sequence', 'dtype', 'compute', 'optimizer', 'attention'):
        value = getattr(workload, key)
        if value is not None:
            yield f'{key}: {value}'
    if workload.release is not None:
        yield f'release: {json.dumps(workload.release)}'
    yield 'marks_recomputed: true'
    if workload.clip_gradients:
        yield 'clip_gradients: true'
    for key in ('notes', 'partial'):
        lines = getattr(workload, key)
        if lines:
            yield f'{key}:'
            yield from (f'  - {json.dumps(line, ensure_ascii=False)}' for line in lines)
    index_of = {}
    for kernel in workload.forward + workload.backward:
        index_of.setdefault(kernel, len(index_of))
    yield 'kernels:' if index_of else 'kernels: []'
    yield from (f'  - {_kernel(kernel)}' for kernel in index_of)
    yield 'layers:'
    for layer in workload.layers:
        yield f'  - name: {quoted(layer.name)}'
        yield f'    forward: {_runs(layer.forward, index_of)}'
        yield f'    backward: {_runs(layer.backward, index_of)}'
        yield f'    kept: {layer.kept}'
        yield f'    forward_peak: {layer.forward_peak}'
        yield f'    backward_peak: {layer.backward_peak}'
        for key in ('forward_peak', 'backward_peak'):
            in_fp32 = getattr(layer, f'{key}_in_fp32')
            if in_fp32 > getattr(layer, key):
                yield f'    {key}_in_fp32: {in_fp32}'
    yield 'parameters:' if workload.parameters else 'parameters: []'
    yield from (f'  - {_parameter(parameter)}' for parameter in workload.parameters)
    yield f'arrival: {workload.arrival}'
    for key in ('buffers', 'frozen'):
        groups = getattr(workload, key)
        if groups or key == 'buffers':
            yield f'{key}: [' + ', '.join(_flow([('tensors', group.tensors),
                                                 ('bytes', group.bytes)])
                                          for group in groups) + ']'
    if workload.inputs:
        yield f'inputs: {workload.inputs}'
    if workload.frozen_parameters:
        yield 'frozen_parameters:'
        yield from (f'  - {_frozen_parameter(each)}' for each in workload.frozen_parameters)
    if workload.collectives:
        yield 'collectives:'
        yield from (f'  - {_flow(_collective(*each))}'
                    for each in _counted(workload.collectives))
    yield f'end: {FORMAT}'
