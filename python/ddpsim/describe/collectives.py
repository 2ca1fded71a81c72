"""Collectives that a model itself issues: synchronised batch norms, losses that gather.

While a step is captured, a process group of PyTorch's fake backend stands for that of the training,
so that code which asks torch.distributed.is_initialized() takes the branch it takes there. Nothing
is sent: the capture sees the collectives as the operations of c10d that they are, and writes them
down. DistributedDataParallel's own are not among them; those ddpsim schedules itself.
"""
import contextlib
import logging
import sys
from typing import NamedTuple, Optional

import torch

from .kernels import Kernel
from .tensors import bytes_of, format_of, tensors_in, total_bytes

NAMESPACES = ('c10d', '_c10d_functional', '_c10d_functional_autograd')

NAMES = {'allreduce': 'all_reduce', 'allreduce_coalesced': 'all_reduce',
         'all_reduce_coalesced': 'all_reduce', 'allgather': 'all_gather',
         'allgather_base': 'all_gather', 'allgather_coalesced': 'all_gather',
         'allgather_into_tensor_coalesced': 'all_gather', 'all_gather_into_tensor': 'all_gather',
         'all_gather_into_tensor_coalesced': 'all_gather',
         'all_gather_into_tensor_out': 'all_gather', 'reduce_scatter_base': 'reduce_scatter',
         'reduce_scatter_tensor': 'reduce_scatter', 'reduce_scatter_tensor_out': 'reduce_scatter',
         'reduce_scatter_tensor_coalesced': 'reduce_scatter', 'alltoall': 'all_to_all',
         'alltoall_base': 'all_to_all', 'all_to_all_single': 'all_to_all',
         'recv_any_source': 'recv', 'monitored_barrier': 'barrier'}


class Collective(NamedTuple):
    """One that the model sends: `bytes` are those a rank gives. It stands behind entry `after` of
    its phase in `layer`; None: that is not known."""
    op: str
    phase: str   # 'forward' or 'backward'
    module: str  # path of the module that sends it
    bytes: int
    layer: Optional[int] = None
    after: Optional[int] = None


def placed(sent, layers, places):
    """The collectives with their places: `sent` are pairs of one and the number of launches in its
    phase so far, `places` the layers of the backward pass's launches."""
    forward = [number for number, layer in enumerate(layers) for _ in layer.forward]
    found = []
    for each, launches in sent:
        at = forward if each.phase == 'forward' else places
        if launches == 0:  # before the first kernel: there is nothing that it follows
            found.append(each)
            continue
        layer = at[launches - 1]
        after = sum(place == layer for place in at[:launches]) - 1
        found.append(each._replace(layer=layer, after=after))
    return found


def name_of(func):
    """ddpsim's name of an operation of c10d; None of one that sends nothing."""
    name = func._overloadpacket.__name__.strip('_')
    if name in ('wait_tensor', 'wrap_tensor_autograd'):
        return None
    return NAMES.get(name, name)


def given(func, args, kwargs):
    """Bytes that a rank gives."""
    named = dict(zip((argument.name for argument in func._schema.arguments), args), **kwargs)
    inputs = next((value for name, value in named.items() if name.startswith('input')), args[:1])
    return total_bytes(tensors_in(inputs))


def result_of(func, args, kwargs):
    """What the operation returns here, at once and without sending anything."""
    if func.namespace != 'c10d':
        return func(*args, **kwargs)
    from torch._C._distributed_c10d import FakeWork
    work = FakeWork().boxed()
    return work if len(func._schema.returns) == 1 else (args[0], work)


@contextlib.contextmanager
def one_of(ranks):
    """A process group of so many ranks, of which this one is the first; where there is one already,
    that stays."""
    distributed = torch.distributed
    if ranks < 2 or not distributed.is_available() or distributed.is_initialized():
        yield
        return
    try:
        from torch._C._distributed_c10d import FakeWork  # noqa: F401 (torch 2.7 on)
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except ImportError:
        yield
        return
    logger = logging.getLogger('torch.distributed.distributed_c10d')
    level, excepthook = logger.level, sys.excepthook
    logger.setLevel(logging.ERROR)
    try:
        distributed.init_process_group('fake', rank=0, world_size=ranks, store=FakeStore())
        yield
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
        logger.setLevel(level)
        sys.excepthook = excepthook  # a group puts its rank before every traceback


# --- synchronised batch norms ---

class SynchronisedNorm(torch.autograd.Function):
    """What torch.nn.modules._functions.SyncBatchNorm launches on CUDA. Forward: statistics of this
    rank, one all-gather of mean, deviation and count, a mask of ranks without samples and three
    selections by it (each finds its places first), statistics of all, the result. Backward: two
    sums of this rank, one all-reduce of both, the gradient of the input."""

    @staticmethod
    def forward(ctx, capture, data, weight, bias, ranks):
        channels = data.shape[1]
        data = data if data.is_contiguous() or data.dim() < 4 else data.contiguous(
            memory_format=torch.channels_last if data.dim() == 4 else torch.channels_last_3d)
        wide, kind, moved = 4 * channels, format_of(data.dtype), bytes_of(data)
        row, every = 2 * wide + 4, (2 * wide + 4) * ranks
        capture.launch([Kernel('aten.batch_norm_stats', kind, moved, 2 * wide)])
        capture.launch([Kernel('aten.fill_', 'fp32', 0, 4)])
        capture.launch([Kernel('aten.cat', 'fp32', row, row)])
        capture.sends('all_gather', row)
        capture.launch([Kernel('aten.ge', 'fp32', 4 * ranks, ranks)])
        for _ in range(3):
            capture.launch([Kernel('aten.nonzero', 'fp32', ranks, 8 * ranks, launches=3)])
            capture.launch([Kernel('aten.index', 'fp32', every // 3, every // 3)])
        capture.launch([Kernel('aten.batch_norm_gather_stats_with_counts', 'fp32', every,
                               4 * wide)])
        result = torch.empty_like(data)
        mean, deviation = (data.new_empty(channels, dtype=torch.float32) for _ in range(2))
        capture.launch([Kernel('aten.batch_norm_elemt', kind, moved + 4 * wide, moved)])
        ctx.save_for_backward(data, weight, mean, deviation)
        ctx.capture, ctx.has_bias = capture, bias is not None
        return result

    @staticmethod
    def backward(ctx, gradient):
        data, weight, _, _ = ctx.saved_tensors
        wide, kind, moved = 4 * data.shape[1], format_of(data.dtype), bytes_of(data)
        capture = ctx.capture
        capture.launch([Kernel('aten.batch_norm_backward_reduce', kind, 2 * moved, 4 * wide)])
        to_data = None
        if ctx.needs_input_grad[1]:
            capture.launch([Kernel('aten.cat', 'fp32', 2 * wide, 2 * wide)])
            capture.sends('all_reduce', 2 * wide)
            to_data = torch.empty_like(data)
            capture.launch([Kernel('aten.batch_norm_backward_elemt', kind, 2 * moved + 5 * wide,
                                   moved)])
        return (None, to_data, None if weight is None else torch.empty_like(weight),
                torch.empty_like(weight) if ctx.has_bias else None, None)


def norm_forward_for(capture):
    """SyncBatchNorm.forward as it runs on CUDA, which the meta device is refused."""
    def forward(self, data):
        ranks = (torch.distributed.get_world_size(self.process_group)
                 if torch.distributed.is_available() and torch.distributed.is_initialized() else 1)
        if self.training and ranks > 1:
            self._check_input_dim(data)
            self._check_non_zero_input_channels(data)
            if self.track_running_stats and self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
            return SynchronisedNorm.apply(capture, data, self.weight, self.bias, ranks)
        return torch.nn.modules.batchnorm._BatchNorm.forward(self, data)
    return forward


@contextlib.contextmanager
def synchronised_norms(capture):
    kind = torch.nn.SyncBatchNorm
    kept = kind.forward
    kind.forward = norm_forward_for(capture)
    try:
        yield
    finally:
        kind.forward = kept


# --- in words ---

def in_words(collectives, ranks):
    """A note of what the model sends, or ''."""
    if not collectives:
        return ''
    parts = []
    for phase in ('forward', 'backward'):
        groups = {}
        for each in collectives:
            if each.phase == phase:
                groups.setdefault(each.op, []).append(each.bytes)
        for op, sizes in groups.items():
            least, most = min(sizes), max(sizes)
            size = f'{most:,}' if least == most else f'{least:,} to {most:,}'
            parts.append(f'{len(sizes)} {op} in {phase} of {size} bytes a rank')
    return (f'the model itself sends {", ".join(parts)} (as one of {ranks} ranks): what follows '
            'waits for each')
