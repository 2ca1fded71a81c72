"""A kernel, and the call of an operation that launches it."""
from dataclasses import dataclass
from typing import NamedTuple, Optional

from .tensors import format_of, place_of, tensors_in, total_bytes


class Gemm(NamedTuple):
    """C[m x n] += A[m x k] B[k x n], `batch` of them independent."""
    m: int
    n: int
    k: int
    batch: int = 1

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k * self.batch


class Conv(NamedTuple):
    """What a convolution is, beside the product. `direction`: forward, input or weight, of the
    convolution that a transposed one undoes. `window`: elements of it; `pixels` and `places`: of a
    picture that goes in and of one that comes out."""
    direction: str
    pictures: int
    channels: int
    pixels: int
    outputs: int
    places: int
    window: int
    groups: int
    channels_last: bool


class Pattern(NamedTuple):
    """How a kernel that only moves memory goes over it: the name of a law, and its sizes."""
    of: str
    rows: int = 0
    columns: int = 0
    backward: bool = False
    channels_last: bool = False
    inner: int = 0  # of a batch norm: pixels of one picture


FILL = Pattern('fill')


class Attention(NamedTuple):
    """A fused attention kernel; `size` is that of a head's queries and keys, `value_size` that of
    its values. `implementation`: flash, efficient, or default, where the device and the release
    decide whether it is cuDNN's."""
    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    value_size: int
    causal: bool
    backward: bool
    implementation: str = 'default'
    masked: bool = False

    @property
    def flops(self):
        """Two products forward and five backward, not discounted for a causal mask.

        Source: torch/utils/flop_counter.py, sdpa_flop_count and sdpa_backward_flop_count.
        """
        over_keys, over_values = (3, 2) if self.backward else (1, 1)
        return 2 * self.batch * self.heads * self.queries * self.keys * (
            over_keys * self.size + over_values * self.value_size)


@dataclass(frozen=True)
class Kernel:
    """What a device runs for one operation. `read` and `written` are bytes of all launches."""
    op: str
    type: str
    read: int
    written: int
    launches: int = 1
    launches_in_fp32: Optional[int] = None  # where that is another number
    operations: int = 1  # that its launches begin: 0 if it follows another kernel of the same one
    tensor_cores: bool = True  # whether they can multiply it
    multiprocessors: Optional[int] = None  # the fewest of a device that launches it
    capability: Optional[float] = None  # CUDA's compute capability, the least of such a device
    kind: str = 'memory'
    gemm: Optional[Gemm] = None
    along_k: int = 2  # operands of the product that lie along k in memory
    conv: Optional[Conv] = None
    pattern: Optional[Pattern] = None
    host: Optional[float] = None  # microseconds of the host, for all its launches
    attention: Optional[Attention] = None
    recomputed: bool = False  # of the forward pass, and run again in the backward pass
    time: Optional[float] = None  # seconds, measured

    def launched(self, operations, host, recomputed=False):
        """A copy of the kernel as one call launches it (dataclasses.replace is several times
        slower)."""
        made = object.__new__(Kernel)
        made.__dict__.update(self.__dict__, operations=operations, host=host,
                             recomputed=recomputed)
        return made

    @property
    def flops(self):
        shape = self.gemm or self.attention
        return shape.flops if shape else 0


class Call:
    """One call of an operation: its arguments, and the tensors it reads and writes."""

    device = 'cuda'  # whose kernels are asked for, or 'cpu'
    tf32 = None  # which products of fp32 numbers multiply in TF32: None, 'conv' or 'all'
    chosen_attention = None  # flash, efficient or math, if the user chose
    of_autograd = False  # does a formula of autograd call it?

    def __init__(self, func, args, kwargs, result):
        self.func, self.args, self.kwargs, self.result = func, args, kwargs, result
        self.op = f'{func.namespace}.{func._overloadpacket.__name__}'
        self._read = self._written = None

    def __getitem__(self, name):
        """The argument `name`, or its default."""
        for i, argument in enumerate(self.func._schema.arguments):
            if argument.name == name:
                if not argument.kwarg_only and i < len(self.args):
                    return self.args[i]
                return self.kwargs.get(name, argument.default_value)
        raise KeyError(name)

    def _by_use(self):
        """Tensors among the arguments: those that are read, and those that are written."""
        read, written = [], []
        for i, argument in enumerate(self.func._schema.arguments):
            if not argument.kwarg_only and i < len(self.args):
                value = self.args[i]
            elif argument.name in self.kwargs:
                value = self.kwargs[argument.name]
            else:
                continue
            tensors = tensors_in(value)
            if argument.alias_info is not None and argument.alias_info.is_write:
                written += tensors
            if not argument.is_out:
                read += tensors
        return read, written

    @property
    def inputs(self):
        if self._read is None:
            self._read, self._changed = self._by_use()
        return self._read

    @property
    def changed(self):
        """Arguments the operation writes to."""
        return self.inputs is not None and self._changed

    @property
    def outputs(self):
        """All that is written: new results, and arguments that are changed."""
        if self._written is None:
            if self.changed:
                changed = {place_of(tensor) for tensor in self.changed}
                self._written = self.changed + [
                    t for t in tensors_in(self.result) if place_of(t) not in changed]
            else:
                self._written = tensors_in(self.result)
        return self._written

    @property
    def type(self):
        """The format of the first result; where there is none, of the first argument."""
        tensors = self.outputs or self.inputs
        return format_of(tensors[0].dtype) if tensors else 'fp32'

    def memory(self, read=None, written=None, launches=1, op=None, pattern=None):
        """A kernel that moves memory: all tensors of the call once, where nothing else is said."""
        return Kernel(op=op or self.op, type=self.type, launches=launches, pattern=pattern,
                      read=total_bytes(self.inputs) if read is None else read,
                      written=total_bytes(self.outputs) if written is None else written)
