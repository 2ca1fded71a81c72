"""The user's file: FILE.py:FUNCTION, whose function makes what is described."""
import contextlib
import importlib.util
import inspect
import os
import sys

import torch

from .capture import line_of
from .errors import DescribeError, first_line
from .autocast import autocast_on_meta
from .meta import OnMeta

EXPECTED = 'expected (model, batch), (model, batch, loss) or (model, batch, loss, optimizer)'


def made_by(place, batch=None):
    """(model, batch, loss, optimizer) as the user's function returns them, made on the meta
    device. `batch` is handed to a function that takes an argument of that name."""
    file, colon, function = place.rpartition(':')
    if not colon or os.path.sep in function:
        file, function = place, 'make'
    if not os.path.isfile(file):
        raise DescribeError(
            f'{file}: no such file; expected FILE:FUNCTION such as my_model.py:make')
    with OnMeta(making=True), autocast_on_meta(), _fused_optimizers_on_meta():
        module = _said_by_user(file, lambda: _imported(file))
        make = getattr(module, function, None)
        if not callable(make):
            raise DescribeError(f'{file}: has no function {function}{_functions_of(module)}')
        settings = {}
        if batch is not None:
            if 'batch' not in inspect.signature(make).parameters:
                raise DescribeError(f'--batch: {place} takes no argument "batch"; give it one, as '
                                    f'in def {function}(batch=8)')
            settings['batch'] = batch
        made = _said_by_user(f'{place}()', lambda: make(**settings))
    if isinstance(made, torch.nn.Module) or not isinstance(made, (tuple, list)) or not (
            2 <= len(made) <= 4):
        got = f'{len(made)} values' if isinstance(made, (tuple, list)) else type(made).__name__
        raise DescribeError(f'{place}: {EXPECTED}, got {got}')
    model, data, loss, optimizer = (*made, None, None)[:4]
    if not isinstance(model, torch.nn.Module):
        raise DescribeError(
            f'{place}: {EXPECTED}; the model is a {type(model).__name__}, not a torch.nn.Module')
    return model, data, loss, optimizer


def _imported(file):
    folder, name = os.path.split(os.path.abspath(file))
    sys.path.insert(0, folder)
    specification = importlib.util.spec_from_file_location(os.path.splitext(name)[0], file)
    if specification is None or specification.loader is None:
        raise DescribeError(f'{file}: expected a Python file, one whose name ends in .py')
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(specification.name, module)
    specification.loader.exec_module(module)
    return module


def _functions_of(module):
    own = [name for name, value in vars(module).items()
           if inspect.isfunction(value) and value.__module__ == module.__name__]
    return f'; it has {", ".join(own)}' if own else ''


def _said_by_user(where, action):
    """Errors in the user's code are the user's, in one line."""
    try:
        return action()
    except (DescribeError, KeyboardInterrupt):
        raise
    except SystemExit as problem:
        raise DescribeError(f'{where} called sys.exit({problem.code})') from None
    except BaseException as problem:
        line = line_of(problem)
        raise DescribeError(f'{where} raised {type(problem).__name__}: {first_line(problem)}'
                            + (f' ({line})' if line else '')) from problem


@contextlib.contextmanager
def _fused_optimizers_on_meta():
    """Fused optimizers refuse parameters on meta; here they are only named."""
    from torch.optim import adam, adamw, sgd
    places = [(module, name) for module in (adam, adamw, sgd)
              for name in ('_get_fused_kernels_supported_devices',) if hasattr(module, name)]
    from torch.utils import _foreach_utils
    places.append((_foreach_utils, '_get_fused_kernels_supported_devices'))
    kept = [(module, name, getattr(module, name)) for module, name in places]
    for module, name, function in kept:
        setattr(module, name, lambda function=function: [*function(), 'meta'])
    try:
        yield
    finally:
        for module, name, function in kept:
            setattr(module, name, function)
