"""Models and batches on the meta device, without changing what the user holds.

While the user's function makes the model, weights are made on meta; small tables of values (arange,
linspace, tensor), which constructors read back, stay on the CPU. While the step runs, every tensor
is on meta, whatever device the model's code names.
"""
import copy

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

_VALUES = {torch.arange, torch.linspace, torch.logspace, torch.tensor, torch.as_tensor,
           torch.scalar_tensor, torch.eye, torch.range}
_MOVES = {torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.pin_memory}
META = torch.device('meta')


class OnMeta(TorchFunctionMode):
    """Everything is made on the meta device. `making`: while a model is built."""

    def __init__(self, making=False):
        super().__init__()
        self._making = making
        self._constructors = _device_constructors()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in _MOVES:
            return args[0]
        if func in self._constructors:
            if not self._stays(func, args, kwargs):
                kwargs['device'] = META
        elif kwargs.get('device') is not None:
            kwargs['device'] = META
        elif func is torch.Tensor.to:
            args = tuple(META if isinstance(a, (str, torch.device)) else a for a in args)
        elif func is torch.from_numpy or func is torch.frombuffer:
            return func(*args, **kwargs).to(META)
        try:
            return func(*args, **kwargs)
        except RuntimeError as problem:
            if 'same device' not in str(problem) and 'meta' not in str(problem):
                raise
            moved, found = _on_meta((args, kwargs))
            if not found:
                raise
            return func(*moved[0], **moved[1])

    def _stays(self, func, args, kwargs):
        """Scalars stay where they are: code that draws a number to decide reads it back."""
        if self._making and func in _VALUES:
            kwargs['device'] = 'cpu'
            return True
        if func is torch.tensor and args and isinstance(args[0], (int, float, bool)):
            return True
        return bool(args) and kwargs.get('device') is None and (
            args[0] == [] or args[0] == ()) and func in (torch.rand, torch.randn)


def _on_meta(value):
    """Nested arguments with their CPU tensors on meta, and whether there were any."""
    found = False

    def move(item):
        nonlocal found
        if isinstance(item, torch.Tensor) and item.device.type != 'meta' and item.dim() > 0:
            found = True
            return item.to(META)
        if isinstance(item, tuple) and hasattr(item, '_fields'):
            return type(item)(*map(move, item))
        if isinstance(item, (list, tuple)):
            return type(item)(map(move, item))
        if isinstance(item, dict):
            return {key: move(inner) for key, inner in item.items()}
        return item
    return move(value), found


def batch_on_meta(batch):
    """A batch with its tensors on meta; what is not a tensor, list, tuple or dict stays."""
    if hasattr(batch, 'data') and isinstance(getattr(batch, 'data'), dict):  # BatchEncoding
        batch = dict(batch.data)

    def move(item):
        if isinstance(item, torch.Tensor):
            return item.detach().to(META).requires_grad_(item.requires_grad)
        if isinstance(item, tuple) and hasattr(item, '_fields'):
            return type(item)(*map(move, item))
        if isinstance(item, (list, tuple)):
            return type(item)(map(move, item))
        if isinstance(item, dict):
            return {key: move(inner) for key, inner in item.items()}
        return item
    return move(batch)


def model_on_meta(model):
    """The model itself where all of it is on meta, else a copy that is; ties are kept."""
    memo = {}
    for module in model.modules():
        for value in (module._parameters, module._buffers, module.__dict__):
            _add_to_memo(value, memo, 0)
    if not memo:
        return model
    with torch.no_grad():
        moved = copy.deepcopy(model, memo)
    for module in moved.modules():  # a compiled method of the model is still that of the first one
        method = getattr(module.__dict__.get('forward'), '_torchdynamo_orig_callable', None)
        if method is not None:
            module.forward = copy.deepcopy(method, memo)
    return moved


def _add_to_memo(value, memo, depth):
    """Tells deepcopy which tensor on meta stands for each tensor that is not."""
    if isinstance(value, torch.Tensor):
        if value.device.type != 'meta' and id(value) not in memo:
            moved = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype,
                                        device=META)
            if isinstance(value, torch.nn.Parameter):
                moved = torch.nn.Parameter(moved, requires_grad=value.requires_grad)
            memo[id(value)] = moved
    elif depth < 4 and isinstance(value, dict):
        for inner in value.values():
            _add_to_memo(inner, memo, depth + 1)
    elif depth < 4 and isinstance(value, (list, tuple)):
        for inner in value:
            _add_to_memo(inner, memo, depth + 1)
