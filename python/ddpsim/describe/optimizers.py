"""ddpsim's name of a PyTorch optimizer. Its kernels follow from the name and the parameters."""
from .._user_step import check_optimizer
from .errors import DescribeError

# The names of the optimizers, as in model/workload/optimizer.hpp.
NAMES = ('none', 'sgd', 'sgd-plain', 'adam', 'adamw', 'adamw-fused', 'adamw-loop', 'lamb',
         'adafactor', 'muon', 'rmsprop', 'novograd', 'lion', 'adam-8bit')

# Class names, in small letters, of those whose settings do not matter.
_OF_CLASS = {'fusedadam': 'adamw-fused', 'deepspeedcpuadam': 'adamw-fused',
             'lamb': 'lamb', 'fusedlamb': 'lamb', 'adafactor': 'adafactor', 'muon': 'muon',
             'novograd': 'novograd', 'fusednovograd': 'novograd', 'lion': 'lion',
             'adam8bit': 'adam-8bit', 'adamw8bit': 'adam-8bit', 'pagedadam8bit': 'adam-8bit',
             'pagedadamw8bit': 'adam-8bit'}


def name_of(optimizer, notes):
    """`optimizer` is an object, a class, a name, or None."""
    if optimizer is None:
        notes.append('no optimizer: the step ends with the gradients and updates nothing '
                     '(--optimizer NAME, or make() returns one)')
        return None
    if isinstance(optimizer, str):
        if optimizer not in NAMES:
            raise DescribeError(
                f'optimizer: unknown name "{optimizer}"; known: {", ".join(NAMES)}')
        return optimizer
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    settings = getattr(optimizer, 'param_groups', None) or [getattr(optimizer, 'defaults', {})]
    settings = settings[0]
    name = kind.__name__.lower()
    if name in ('adamw', 'adam'):
        return _adam(name, settings, notes)
    if name in _OF_CLASS:
        return _OF_CLASS[name]
    if name == 'sgd':
        plain = not settings.get('momentum') and not settings.get('weight_decay')
        if not plain and not (settings.get('momentum') and settings.get('weight_decay')):
            notes.append('optimizer described as sgd with both momentum and weight decay')
        return 'sgd-plain' if plain else 'sgd'
    if name == 'rmsprop':
        if settings.get('momentum') or settings.get('centered'):
            notes.append('RMSprop described without momentum, and not centered')
        return 'rmsprop'
    check_optimizer(optimizer, DescribeError)
    notes.append(f'ddpsim knows no optimizer {kind.__name__}: described as adamw')
    return 'adamw'


def _adam(name, settings, notes):
    if settings.get('fused'):
        if name == 'adam':
            notes.append('fused Adam described as fused AdamW, which moves the same bytes')
        return 'adamw-fused'
    if settings.get('foreach') is False:
        if name == 'adam':
            notes.append('Adam in a loop described as AdamW in a loop')
        return 'adamw-loop'
    return name
