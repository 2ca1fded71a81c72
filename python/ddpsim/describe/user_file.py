"""The user's file: FILE.py:FUNCTION, whose function makes what is described."""
import contextlib
import inspect
import os

from .._user_step import checked, hint, imported
from .capture import line_of
from .errors import DescribeError, first_line
from .autocast import autocast_on_meta
from .meta import OnMeta


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
        module = _said_by_user(file, lambda: imported(file, DescribeError))
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
    return checked(place, made, DescribeError)


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
                            + (f' ({line})' if line else '') + hint(problem)) from problem


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
