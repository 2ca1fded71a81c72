"""Which kernels CUDA launches for an operation: one table, from operations to rules."""
import torch

from . import attention, convolutions, cpu, memory, products
from .foreach import multi_tensor_launches
from .memory import elementwise

RULES = {**memory.RULES, **products.RULES, **convolutions.RULES, **attention.RULES, **cpu.RULES}


def launches_nothing(call):
    """Views, and what only takes memory."""
    return (call.func.is_view or call.op in memory.FREE
            or torch.Tag.inplace_view in call.func.tags)


def kernels_of(call):
    """The kernels of one call; None if there is no rule for it.

    Elementwise operations carry PyTorch's tag `pointwise`; an operation in place that has no tag of
    its own follows the one that is not in place.
    """
    rule = RULES.get(call.op)
    if rule is None and call.op.startswith('aten._foreach_'):
        return [call.memory(launches=multi_tensor_launches(call))]
    if rule is None and call.op.endswith('_'):
        rule = RULES.get(call.op[:-1])
    if rule is None and is_elementwise(call.func):
        rule = elementwise
    return None if rule is None else rule(call)


def is_elementwise(func):
    if torch.Tag.pointwise in func.tags:
        return True
    name = func._overloadpacket.__name__
    if func.namespace == 'aten' and name.endswith('_'):
        plain = getattr(torch.ops.aten, name[:-1], None)
        return plain is not None and any(
            torch.Tag.pointwise in getattr(plain, overload).tags for overload in plain.overloads())
    return False
