"""What fully_shard of the installed torch sends, of ranks of which this process is one.

Nothing is sent: the process group is torch's fake one. What counts is which collectives are issued,
in which order, of which unit, of how many bytes and of which type; and which kernels cast what is
sent, or divide it."""
import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


def on_mesh(replicas, shards):
    return init_device_mesh('cpu', (replicas, shards), mesh_dim_names=('replicate', 'shard'))


def casts(operation, arguments, keywords):
    """Is it a kernel that writes what it reads in another type?"""
    if str(operation) == 'aten._foreach_copy_.default':
        return arguments[0][0].dtype != arguments[1][0].dtype
    return (str(operation) == 'aten._to_copy.default'
            and keywords.get('dtype', arguments[0].dtype) != arguments[0].dtype)


def storages(tree):
    """Of the tensors in what an operation takes or gives, by the memory that they lie in."""
    return {each.untyped_storage()._cdata for each in tree_leaves(tree)
            if isinstance(each, torch.Tensor)}


def bytes_of(tensors):
    """Of the memory that they lie in, each piece once."""
    pieces = {each.untyped_storage()._cdata: each.untyped_storage().size()
              for each in tensors if each is not None}
    return sum(pieces.values())


class Recorder(TorchDispatchMode):
    """(kind, unit, bytes of the full buffer, or of an all-reduce's, type) of every collective, and
    in `order` the kind of each among the casts and divisions of what is sent. A unit is named by
    its module; the root's is ''."""

    def __init__(self, model=None):
        super().__init__()
        self.sent, self.order, self.units = [], [], []
        self.model, self.most = model, {}
        self.made_on, self.pools = {}, {}  # of memory the stream it was made on; of kinds, all

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if self.model is not None:
            self.note_memory()
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
        result = operation(*arguments, **keywords)
        if self.model is not None:
            for each in storages(result) - storages((arguments, keywords)):
                self.made_on[each] = torch.cpu.current_stream()
        return result

    def note_memory(self):
        """The most bytes that fully_shard holds at a time, by kind, as operations see it, and which
        streams are current where it is made."""
        states = [module._get_fsdp_state() for module in self.model.modules()
                  if isinstance(module, FSDPModule)]
        held = [group for state in states for group in state._fsdp_param_groups]
        parameters = [each for group in held for each in group.fsdp_params]
        context = held[0].comm_ctx
        gathers = [group._all_gather_result for group in held if group._all_gather_result]
        if context.all_gather_state:
            gathers.append(context.all_gather_state.all_gather_result)
        whole = [getattr(each, '_unsharded_param', None) for each in parameters]
        now = {
            'parameters': [t for each in parameters
                           for t in (each._sharded_param_data, *each.all_gather_outputs,
                                     getattr(each, '_sharded_post_forward_param_data', None))],
            'gathered': [each.all_gather_output for each in gathers],
            'scattered': [each.reduce_scatter_input for each in context.reduce_scatter_states],
            'gradients': [each.grad for each in whole if each is not None] + [
                each.unsharded_accumulated_grad for each in parameters] + [
                each.sharded_param.grad._local_tensor for each in parameters
                if each.sharded_param.grad is not None]}
        for kind, tensors in now.items():
            self.most[kind] = max(self.most.get(kind, 0), bytes_of(tensors))
        names = {context.all_gather_copy_in_stream: 'copy in',
                 context.all_gather_stream: 'gather', context.reduce_scatter_stream: 'scatter',
                 context.all_reduce_stream: 'replicate'}
        now['parts of gradients'] = [each.sharded_param.grad._local_tensor for each in parameters
                                     if each.sharded_param.grad is not None]
        for kind in ('gathered', 'scattered', 'parts of gradients'):
            made = {self.made_on[each] for each in storages(now[kind]) if each in self.made_on}
            self.pools.setdefault(kind, set()).update(names.get(each, 'compute') for each in made)

    @contextlib.contextmanager
    def naming_units(self):
        """While the hooks of a unit run, what is sent is that unit's."""
        originals = {}
        for name in ('unshard', 'post_backward'):
            original = originals[name] = getattr(groups.FSDPParamGroup, name)

            def named(group, *arguments, original=original, **keywords):
                self.units.append(group._module_fqn.split(',')[0])
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


def recorded_step(model, batch, loss, *, micro_batches=1, no_sync=False,
                  reshard_after_backward=True, requires_all_reduce='every', memory=False):
    """The record of a step of a model that is wrapped, which has done one before: all of its
    micro-batches."""
    recorder = Recorder(model if memory else None)

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
                        requires_all_reduce='every', reduce_scatter_max_input_buffers=1, own=None,
                        memory=False, **settings):
    """The same of a model that is wrapped here. `own` is, by a unit's first module, what a
    scenario's `units` says of it alone."""
    own = own or {}
    for unit in units:
        mine = {key: value for key, value in own.get(unit[0], {}).items()
                if key == 'reshard_after_forward'}
        fully_shard([model.get_submodule(name) for name in unit], **{**settings, **mine})
    fully_shard(model, **settings)
    names = [unit[0] for unit in units]
    wrapped = [model.get_submodule(name) for name in names]
    # Units behind a block's are those inside of it, though their calls come before the block's.
    depths([module for module in model.modules() if module in wrapped], forward_prefetch,
           backward_prefetch)
    set_own(wrapped, names, own)
    model.set_reduce_scatter_max_input_buffers(reduce_scatter_max_input_buffers)
    return recorded_step(model, batch, loss, micro_batches=micro_batches, no_sync=no_sync,
                         reshard_after_backward=reshard_after_backward,
                         requires_all_reduce=requires_all_reduce, memory=memory)
