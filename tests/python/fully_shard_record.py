"""What fully_shard of the installed torch sends, of ranks of which this process is one.

Nothing is sent: the process group is torch's fake one. What counts is which collectives are issued,
in which order, of which unit, of how many bytes and of which type; and which kernels cast what is
sent, or divide it."""
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {'c10d._allgather_base_.default': 'all-gather',
         'c10d._reduce_scatter_base_.default': 'reduce-scatter',
         'c10d.allreduce_.default': 'all-reduce'}


@contextlib.contextmanager
def ranks(count):
    """This process is rank 0 of so many."""
    dist.init_process_group('fake', rank=0, world_size=count, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def casts(operation, arguments, keywords):
    """Is it a kernel that writes what it reads in another type?"""
    if str(operation) == 'aten._foreach_copy_.default':
        return arguments[0][0].dtype != arguments[1][0].dtype
    return (str(operation) == 'aten._to_copy.default'
            and keywords.get('dtype', arguments[0].dtype) != arguments[0].dtype)


class Recorder(TorchDispatchMode):
    """(kind, unit, bytes of the full buffer, or of an all-reduce's, type) of every collective, and
    in `order` the kind of each among the casts and divisions of what is sent. A unit is named by
    its module; the root's is ''."""

    def __init__(self):
        super().__init__()
        self.sent, self.order, self.units = [], [], []

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        keywords = keywords or {}
        kind = KINDS.get(str(operation))
        if kind:
            tensors = arguments[0] if kind == 'all-reduce' else arguments[:2]
            full = max(each.nbytes for each in tensors)
            unit = self.units[-1] if self.units else None
            self.sent.append((kind, unit, full, tensors[0].dtype))
            self.order.append(kind)
        elif self.units and casts(operation, arguments, keywords):
            self.order.append('cast')
        elif self.units and str(operation).startswith('aten.div_.'):
            self.order.append('divide')
        return operation(*arguments, **keywords)

    @contextlib.contextmanager
    def naming_units(self):
        """While the hooks of a unit run, what is sent is that unit's."""
        originals = {}
        for name in ('unshard', 'post_backward'):
            original = originals[name] = getattr(groups.FSDPParamGroup, name)

            def named(group, *arguments, original=original, **keywords):
                self.units.append(group._module_fqn)
                try:
                    return original(group, *arguments, **keywords)
                finally:
                    self.units.pop()

            setattr(groups.FSDPParamGroup, name, named)
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(groups.FSDPParamGroup, name, original)


def depths(wrapped, forward_prefetch=0, backward_prefetch=0):
    """Each unit's lists of so many units behind it, and before it."""
    for i, module in enumerate(wrapped):
        if forward_prefetch:
            module.set_modules_to_forward_prefetch(wrapped[i + 1:i + 1 + forward_prefetch])
        if backward_prefetch:
            first = max(0, i - backward_prefetch)
            module.set_modules_to_backward_prefetch(wrapped[first:i][::-1])


def set_own(wrapped, names, own):
    """Of units with settings of their own, those that setters of modules take. `own` is a unit's
    entry of a scenario."""
    for module, name in zip(wrapped, names):
        settings = own.get(name, {})
        if not settings.get('unshard_in_backward', True):
            module.set_unshard_in_backward(False)
        for key in ('forward_prefetch', 'backward_prefetch'):
            if key in settings:
                lists = [wrapped[names.index(each)] for each in settings[key]]
                getattr(module, f'set_modules_to_{key}')(lists)


def step_of_fully_shard(model, batch, loss, units, *, micro_batches=1, no_sync=False,
                        reshard_after_backward=True, forward_prefetch=0, backward_prefetch=0,
                        requires_all_reduce='every', own=None, **settings):
    """The record of a step that has done one before: all of its micro-batches. `own` is, by a
    unit's first module, what a scenario's `units` says of it alone."""
    own = own or {}
    for unit in units:
        mine = {key: value for key, value in own.get(unit[0], {}).items()
                if key == 'reshard_after_forward'}
        fully_shard([model.get_submodule(name) for name in unit], **{**settings, **mine})
    fully_shard(model, **settings)
    names = [unit[0] for unit in units]
    wrapped = [model.get_submodule(name) for name in names]
    depths(wrapped, forward_prefetch, backward_prefetch)
    set_own(wrapped, names, own)
    recorder = Recorder()

    def step():
        for micro_batch in range(micro_batches):
            is_last = micro_batch + 1 == micro_batches
            model.set_requires_gradient_sync(not no_sync or is_last)
            model.set_reshard_after_backward(reshard_after_backward or is_last)
            model.set_requires_all_reduce(requires_all_reduce == 'every' or is_last)
            loss(model, batch).backward()

    step()
    model.zero_grad()
    with recorder.naming_units(), recorder:
        step()
    return recorder
