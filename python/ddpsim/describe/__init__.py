"""Describes a training step of any PyTorch model, on no device.

    import ddpsim.describe
    workload = ddpsim.describe.describe(model, batch, loss, optimizer)
    workload.save('my_model.yaml')          # ddpsim run my_model.yaml --vary cluster.device=...

or, from a file with a function that makes the model, `python -m ddpsim.describe my_model.py:make`.
torch is imported when something is described, not before.
"""
from .errors import DescribeError
from .workload import Buffers, Frozen, FrozenParameter, Parameter, Workload

__all__ = ['Buffers', 'DescribeError', 'Frozen', 'FrozenParameter', 'Parameter', 'Workload',
           'check_torch', 'describe']


OLDEST_TORCH = (2, 6)


def check_torch():
    """Says in one line where torch is missing or older than what captures a step."""
    try:
        import torch
    except ImportError:
        raise DescribeError('this Python has no torch, which reads the model: pip install torch '
                            '(its CPU build is enough)') from None
    release = tuple(int(part) for part in torch.__version__.split('.')[:2])
    if release < OLDEST_TORCH:
        raise DescribeError(f'PyTorch {".".join(map(str, OLDEST_TORCH))} or later is needed; this '
                            f'is {torch.__version__.split("+")[0]}')


def describe(model, batch, loss=None, optimizer=None, **settings):
    check_torch()
    from .step import describe as describe_step
    return describe_step(model, batch, loss, optimizer, **settings)
