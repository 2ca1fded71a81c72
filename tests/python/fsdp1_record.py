"""What FullyShardedDataParallel of the installed torch sends, of ranks of which this process is
one, as fully_shard_record has it of fully_shard: nothing is sent."""
import contextlib
import warnings

import torch
from torch.distributed.fsdp import BackwardPrefetch, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import _limiter_utils, _runtime_utils
from torch.utils._python_dispatch import TorchDispatchMode

from fully_shard_record import casts

KINDS = {'c10d.allgather_.default': 'all-gather',  # of CPUs: into a list
         'c10d._allgather_base_.default': 'all-gather',
         'c10d._reduce_scatter_base_.default': 'reduce-scatter',
         'c10d.allreduce_.default': 'all-reduce'}


def tensors_in(given):
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (list, tuple)):
        return [each for item in given for each in tensors_in(item)]
    return []


class Recorder(TorchDispatchMode):
    """(kind, unit, bytes of the full buffer, or of an all-reduce's, type) of every collective. In
    `order` the kind of each, among the casts, paddings and divisions of what is sent, and where the
    host waits: 'wait N' for the event of the N-th parameter that was freed in the step. (Events of
    earlier steps have passed.) `most` is how many bytes whole flat parameters of `handles`, and
    casts of their parts, take at a time, as operations see it."""

    def __init__(self, handles):
        super().__init__()
        self.sent, self.order, self.units = [], [], []
        self.handles, self.most = handles, 0

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        keywords = keywords or {}
        flat = [getattr(each.flat_param, name, None) for each in self.handles
                for name in ('_full_param_padded', '_mp_shard')]
        self.most = max(self.most, sum(each.untyped_storage().size() for each in flat
                                       if each is not None))
        unit = self.units[-1] if self.units else None
        kind = KINDS.get(str(operation))
        if kind:
            given = [tensors_in(each) for each in arguments[:1 if kind == 'all-reduce' else 2]]
            full = max(sum(tensor.nbytes for tensor in each) for each in given)
            self.sent.append((kind, unit, full, given[0][0].dtype))
            self.order.append(kind)
        elif unit is not None:
            name = str(operation)
            if casts(operation, arguments, keywords) or (
                    name == 'aten.copy_.default' and arguments[0].dtype != arguments[1].dtype):
                self.order.append('cast')
            elif name.startswith('aten.div_.'):
                self.order.append('divide')
            elif name == 'aten.constant_pad_nd.default':
                self.order.append('pad')
        return operation(*arguments, **keywords)

    @contextlib.contextmanager
    def watching(self, names):
        """While hooks of a unit run, what is sent is that unit's; `names` has these by the number
        of the unit's handle."""
        originals = {}
        freed = {}

        def replace(where, name, function):
            originals[where, name] = getattr(where, name)
            setattr(where, name, function)

        def named(name):
            original = getattr(_runtime_utils, name)

            def call(state, handle, *arguments, **keywords):
                self.units.append(names[id(handle)])
                try:
                    return original(state, handle, *arguments, **keywords)
                finally:
                    self.units.pop()

            replace(_runtime_utils, name, call)

        for name in ('_unshard', '_post_backward_hook'):
            named(name)
        queue = _limiter_utils._FreeEventQueue
        enqueue, dequeue = queue.enqueue, queue.dequeue_if_needed

        def noted_enqueue(queue, event):
            freed[id(event)] = len(freed) + 1, event
            enqueue(queue, event)

        def noted_dequeue(queue):
            event = dequeue(queue)
            if id(event) in freed:
                self.order.append(f'wait {freed[id(event)][0]}')
            return event

        replace(queue, 'enqueue', noted_enqueue)
        replace(queue, 'dequeue_if_needed', noted_dequeue)
        try:
            yield
        finally:
            for (where, name), original in originals.items():
                setattr(where, name, original)


PREFETCHES = {'BACKWARD_PRE': BackwardPrefetch.BACKWARD_PRE,
              'BACKWARD_POST': BackwardPrefetch.BACKWARD_POST, 'none': None}


def step_of_fsdp1(model, batch, loss, units, *, micro_batches=1, no_sync=False,
                  sharding_strategy='FULL_SHARD', backward_prefetch='BACKWARD_PRE', policy=None,
                  **settings):
    """The record of a step of a model that is wrapped here, its submodules `units` first, which has
    done some before, so that it is as all later ones: all of its micro-batches."""
    def wrapped(module):
        return FSDP(module, sharding_strategy=ShardingStrategy[sharding_strategy],
                    backward_prefetch=PREFETCHES[backward_prefetch],
                    mixed_precision=MixedPrecision(**policy) if policy else None,
                    device_id=torch.device('cpu'), **settings)

    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for name in units:
            parent, _, child = name.rpartition('.')
            parent = model.get_submodule(parent)
            made = wrapped(getattr(parent, child))
            names[id(made._handle)] = name
            setattr(parent, child, made)
        model = wrapped(model)
    if model._handle is not None:
        names[id(model._handle)] = ''
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        for micro_batch in range(micro_batches):
            with contextlib.ExitStack() as stack:
                if no_sync and micro_batch + 1 < micro_batches:
                    stack.enter_context(model.no_sync())
                loss(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    recorder = Recorder([each._handle for each in FSDP.fsdp_modules(model) if each._handle])
    for _ in range(3):
        step()
    with recorder.watching(names), recorder:
        step()
    return recorder
