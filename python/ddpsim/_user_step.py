"""A training step as a user hands it to `describe` and `profile`: a function in a file that makes
(model, batch, loss, optimizer), and how the loss is called. One convention for both; each raises
errors of its own type, `error`, whose text is one line. torch is imported on use.
"""
from __future__ import annotations

import importlib.util
import inspect
import os
import sys

EXPECTED = 'expected (model, batch), (model, batch, loss) or (model, batch, loss, optimizer)'

# For --help of both.
LOSS = """\
The loss is a function of (model, batch) that returns one number, or one of torch.nn (such as
CrossEntropyLoss() or torch.nn.functional.mse_loss), which is called with the output of
model(*batch[:-1]) and with batch[-1]. It may be left out where the model returns its own, as
transformers' models do for a batch that is a dict with "labels". Return the bare model, not one in
DistributedDataParallel."""

_CALLED = ('the loss is called as loss(model, batch) and returns one number; one of torch.nn is '
           'called as loss(model(inputs), targets) for a batch (inputs, targets)')
_BARE = 'return the bare model, not one in DistributedDataParallel'


def imported(file, error):
    """The module that a file holds, whose folder is on sys.path."""
    folder, name = os.path.split(os.path.abspath(file))
    sys.path.insert(0, folder)
    specification = importlib.util.spec_from_file_location(os.path.splitext(name)[0], file)
    if specification is None or specification.loader is None:
        raise error(f'{file}: expected a Python file, one whose name ends in .py')
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(specification.name, module)
    specification.loader.exec_module(module)
    return module


def checked(place, made, error):
    """(model, batch, loss, optimizer) of what the function at `place` returned; the last two may be
    None."""
    import torch
    if not isinstance(made, (tuple, list)) or not 2 <= len(made) <= 4:
        got = f'{len(made)} values' if isinstance(made, (tuple, list)) else type(made).__name__
        raise error(f'{place}: {EXPECTED}, got {got}')
    model, batch, loss, optimizer = (*made, None, None)[:4]
    if not isinstance(model, torch.nn.Module):
        raise error(
            f'{place}: {EXPECTED}; the model is a {type(model).__name__}, not a torch.nn.Module')
    if type(model).__name__ == 'DistributedDataParallel':
        raise error(f'{place}: {_BARE}')
    loss_function(loss, [], error)
    check_optimizer(optimizer, error)
    return model, batch, loss, optimizer


def check_optimizer(optimizer, error):
    """An object, a class or a name; what is none, such as a scheduler of learning rates, is an
    error."""
    import torch
    if optimizer is None or isinstance(optimizer, str) or hasattr(optimizer, 'param_groups'):
        return
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    if issubclass(kind, torch.optim.Optimizer):
        return
    raise error(f'the optimizer is a {kind.__name__}, which has no param_groups: return the '
                'optimizer itself, as torch.optim.AdamW(model.parameters()) makes it')


def hint(problem):
    """What to add to the text of an exception of the user's function."""
    return f'; {_BARE}' if 'process group has not been initialized' in str(problem) else ''


def loss_function(loss, notes, error):
    """`loss` as a function of (model, batch): see LOSS."""
    if loss is None:
        return _own_loss(notes, error)
    if not callable(loss):
        raise error(f'loss is a {type(loss).__name__}, not a function of (model, batch)')
    import torch
    if (isinstance(loss, torch.nn.Module)
            or (getattr(loss, '__module__', None) or '').startswith('torch.nn')):
        return _loss_of_torch(loss, error)
    try:
        inspect.signature(loss).bind(None, None)
    except TypeError:
        raise error(f'loss takes {inspect.signature(loss)}; {_CALLED}') from None
    except ValueError:  # a signature that cannot be read
        pass
    return _Explained(loss, error)


def _output_of(model, batch):
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def _loss_of_torch(loss, error):
    def with_target(model, batch):
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise error('loss: a loss of torch.nn needs a batch (inputs, targets)')
        return loss(_output_of(model, tuple(batch[:-1])), batch[-1])
    return with_target


def _own_loss(notes, error):
    def own(model, batch):
        import torch
        output = _output_of(model, batch)
        value = output.get('loss') if isinstance(output, dict) else getattr(output, 'loss', output)
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            return value
        found = [tensor for tensor in _tensors_in(value if value is not None else
                                                  list(output.values())) if tensor.requires_grad]
        if not found:
            raise error('loss: none is given, and the model returns none')
        stand_in = "no loss is given: the sum of the model's first output stands for it"
        if stand_in not in notes:
            notes.append(stand_in)
        return found[0].sum()
    return own


def _tensors_in(value):
    """Every tensor in nested lists, tuples and dicts, in order."""
    import torch
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(each)


class _Explained:
    """A loss of the user's own. Where it fails before the model has run, it may expect other
    arguments than it is given: the error says which these are."""

    def __init__(self, loss, error):
        self.loss, self.error = loss, error

    def __call__(self, model, batch):
        began = []
        watch = model.register_forward_pre_hook(lambda *_: began.append(True))
        try:
            return self.loss(model, batch)
        except (TypeError, AttributeError) as problem:
            if began:
                raise
            said = str(problem).strip().splitlines() or ['']
            raise self.error(f'loss: {self._place(problem)}{type(problem).__name__}: {said[0]}; '
                             f'{_CALLED}') from problem
        finally:
            watch.remove()

    def _place(self, problem):
        """file:line of the loss, or nothing."""
        code, trace = getattr(self.loss, '__code__', None), problem.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is code:
                return f'{_shown(code.co_filename)}:{trace.tb_lineno}: '
            trace = trace.tb_next
        return ''


def _shown(file):
    """A path as a user would type it."""
    relative = os.path.relpath(file)
    return file if relative.startswith('..') else relative
