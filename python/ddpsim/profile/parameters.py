"""The model: which of its parameters take part, as DistributedDataParallel sees them."""
import torch

from .messages import ProfileError, note

DTYPES = {torch.float32: 'fp32', torch.bfloat16: 'bf16', torch.float16: 'fp16'}


class Parameter:
    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor
        self.shape, self.dtype = list(tensor.shape), DTYPES[tensor.dtype]
        self.sparse, self.rows = False, 0


def parameters_of(model):
    """In registration order, a tied one once, under its first name; frozen ones are left out."""
    if not isinstance(model, torch.nn.Module):
        raise ProfileError(f'expected a torch.nn.Module as model, got {type(model).__name__}')
    if isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
        raise ProfileError(
            f'the model is wrapped in {type(model).__name__}, so its passes hold communication: '
            'profile the model inside (model.module)')
    found = []
    for name, tensor in model.named_parameters():
        if not tensor.requires_grad:
            continue
        if tensor.dtype not in DTYPES:
            raise ProfileError(
                f'parameter {name} is {str(tensor.dtype).replace("torch.", "")}; '
                f'known are {", ".join(str(known).replace("torch.", "") for known in DTYPES)}')
        if tensor.numel() == 0:
            note(f'parameter {name} is empty: left out')
            continue
        found.append(Parameter(name, tensor))
    if not found:
        raise ProfileError('no parameter of the model requires a gradient')
    devices = sorted({str(parameter.tensor.device) for parameter in found})
    if len(devices) > 1:
        raise ProfileError(f'parameters lie on {", ".join(devices)}: a rank has one device')
    if found[0].tensor.device.type not in ('cpu', 'cuda'):
        raise ProfileError(f'the model is on {devices[0]}; cpu and cuda can be profiled')
    return found


def buffers_of(model):
    """[(type, tensors, bytes)] of what is not trained but kept alike, a batch norm's statistics:
    rank 0's are broadcast before a forward pass, those of one type together, types in the order
    they first appear."""
    groups = {}
    for _, buffer in model.named_buffers():
        tensors, size = groups.get(buffer.dtype, (0, 0))
        groups[buffer.dtype] = tensors + 1, size + buffer.numel() * buffer.element_size()
    return [(str(dtype).replace('torch.', ''), *group) for dtype, group in groups.items()
            if group[1] > 0]


def accumulator_of(tensor):
    """The autograd node that puts the gradient in place; DistributedDataParallel's hook sits behind
    it too."""
    with torch.enable_grad():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]
