"""A model that fully_shard wraps: the plain one, and how it is sharded in a scenario's words."""
import copy
import re
from collections import Counter

import torch

from .errors import DescribeError
from .meta import META
from .tensors import stored_as

# The dicts of hooks that a module has.
_HOOKS = ('_forward_pre_hooks', '_forward_hooks', '_backward_pre_hooks', '_backward_hooks',
          '_state_dict_hooks', '_state_dict_pre_hooks', '_load_state_dict_pre_hooks',
          '_load_state_dict_post_hooks')


# What fully_shard keeps in a module, by how its name begins.
_OWN = ('__composable_api', '_is_fsdp_managed_module', '_fsdp_use_orig_params')


def is_sharded(model):
    """Is a module of it wrapped by fully_shard?"""
    return any(_is_wrapped(module) for module in model.modules())


def _is_wrapped(module):
    return any(each.__name__ == 'FSDPModule' for each in type(module).__mro__)


def plain(model):
    """The model as it was before it was wrapped, on meta. The wrapped one is not changed."""
    memo = {}
    for module in model.modules():
        for part in _parameters_of(module):
            info = part._module_info
            registered = info.module._parameters.get(info.param_name)
            if registered is not None:
                memo[id(registered)] = torch.nn.Parameter(
                    torch.empty(part._orig_size, dtype=part.sharded_param.dtype, device=META),
                    requires_grad=registered.requires_grad)
    wrapped = [module for module in model.modules() if _is_wrapped(module)]
    for module in wrapped:  # deepcopy of them is refused
        own = type(module).__mro__[type(module)._orig_cls_mro_index]
        memo[id(module)] = own.__new__(own)
    with torch.no_grad():
        for module in wrapped:
            keys = {key: _without_own(value) if key in _HOOKS else value
                    for key, value in vars(module).items()
                    if not key.startswith(_OWN)}
            vars(memo[id(module)]).update(copy.deepcopy(keys, memo))
        return copy.deepcopy(model, memo)


def _without_own(hooks):
    """The hooks of a dict that are not fully_shard's."""
    kept = type(hooks)()
    for key, hook in hooks.items():
        if not str(getattr(hook, '__module__', '')).startswith('torch.distributed.'):
            kept[key] = hook
    return kept


def _state_of(module):
    return module._get_fsdp_state() if _is_wrapped(module) else None


def _groups_of(state):
    groups = getattr(state, '_fsdp_param_groups', None)
    if groups is None:  # before torch 2.13 a state has one at most
        group = state._fsdp_param_group
        groups = [] if group is None else [group]
    return groups


def _parameters_of(module):
    state = _state_of(module)
    return [part for group in _groups_of(state) for part in group.fsdp_params] if state else []


def training_of(model):
    """The keys of `training:` that shard a model as it is wrapped, and notes."""
    names = {module: name for name, module in model.named_modules()}
    states, notes = [], []
    for module in model.modules():
        state = _state_of(module)
        if state is not None and state not in states:
            states.append(state)
    # The inner ones took their parameters first.
    calls = [(sorted(names[module] for module in _modules_of(state)), state) for state in states]
    calls.sort(key=lambda call: -max(name.count('.') for name in call[0]))
    units = [(modules, state) for modules, state in calls if modules != [''] and _groups_of(state)]
    training: dict = {'strategy': 'fsdp'}
    reshards = Counter(_reshards(state) for _, state in calls if _groups_of(state))
    most = reshards.most_common(1)[0][0] if reshards else 'auto'
    if not units:
        notes.append('fully_shard wraps the model as one unit: a scenario has units of modules, '
                     'and takes the blocks where none are said')
    else:
        training['units'] = _patterns([(modules, _own_settings(state, most))
                                       for modules, state in units], {
            name for module, name in names.items()
            if name and next(module.parameters(), None) is not None})
    if most != 'auto':
        training['reshard_after_forward'] = most
    if any(modules == [''] and _groups_of(state) and _own_settings(state, most)
           for modules, state in calls):
        notes.append('the root unit differs from most in reshard_after_forward or '
                     'unshard_in_backward, and a scenario has no settings of it alone: those of '
                     'most are written')
    if any(getattr(state, f'_states_to_{way}_prefetch', ()) for way in ('forward', 'backward')
           for _, state in calls):
        notes.append('explicit prefetches are not written: a scenario has them as forward_prefetch '
                     'and backward_prefetch, of all units or of single ones')
    group = next((group for _, state in calls for group in _groups_of(state)), None)
    if group is None:
        raise DescribeError('fully_shard wraps a model without parameters')
    if type(group.mesh_info).__name__ == 'HSDPMeshInfo':
        training['replicate'] = group.mesh_info.mesh.size(0)
    policy = {key: stored_as(key, getattr(group.mp_policy, key))
              for key in ('param_dtype', 'reduce_dtype') if getattr(group.mp_policy, key)}
    if policy:
        training['mp_policy'] = policy
    if (held := getattr(group, 'reduce_scatter_max_input_buffers', 1)) > 1:
        training['reduce_scatter_max_input_buffers'] = held
    if getattr(group.mesh_info, 'reduce_scatter_process_group', None) is not None:
        training['separate_reduce_scatter_group'] = True
    if type(group.offload_policy).__name__ == 'CPUOffloadPolicy':
        notes.append('CPUOffloadPolicy is not written: training.offload_policy of a scenario asks '
                     'how fast the copies are and how long the update takes')
    return training, notes


def _own_settings(state, most):
    """What a scenario's entry for the unit says besides its modules, where most reshard so."""
    own = {}
    if (reshard := _reshards(state)) != most:
        own['reshard_after_forward'] = reshard
    if not all(getattr(group, 'unshard_in_backward', True) for group in _groups_of(state)):
        own['unshard_in_backward'] = False
    return own


def _modules_of(state):
    modules = getattr(state, '_modules', ())
    return modules if isinstance(modules, (tuple, list)) else (modules,)


def _reshards(state):
    """'auto', or what it was called with: true, false or a number of ranks."""
    if getattr(state, '_auto_reshard_after_forward', False):
        return 'auto'
    for group in _groups_of(state):
        if (among := group.post_forward_mesh_info) is not None:
            number = among.shard_mesh_size
            return number if number != group.mesh_info.shard_mesh_size else True
    return False


def _patterns(units, names):
    """The units, each with its settings, as a scenario lists them: one pattern for modules that are
    all there are of it."""
    patterns = []

    def add(pattern, own):
        entry = {'modules': pattern, **own} if own else pattern
        if entry not in patterns:
            patterns.append(entry)
    for modules, own in units:
        if len(modules) > 1:
            add('+'.join(modules), own)
            continue
        pattern = re.sub(r'(?<![^.])\d+(?![^.])', '*', modules[0])
        fitting = re.compile(re.escape(pattern).replace(r'\*', '[^.]*') + r'\Z')
        matched = {name for name in names if fitting.match(name)}
        whole = matched <= {each[0] for each, its in units if len(each) == 1 and its == own}
        add(pattern if whole else modules[0], own)
    return patterns
