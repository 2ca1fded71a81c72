"""--fused: what a compiler could save at most.

A chain is a run of kernels that only move memory, between products and completed gradients. Its
ends count: it becomes one kernel that reads what the first reads and writes what the last writes.
"""
from dataclasses import replace


def fuse(layers, completed, places):
    """Fuses chains in place. Returns, per backward launch, its new index in its layer."""
    for layer in layers:
        layer.forward = _chains(layer.forward, set())[0]
    closed = {launches - 1 for _, launches in completed}
    by_layer = {}
    for number, place in enumerate(places):
        by_layer.setdefault(place, []).append(number)
    index_of = [0] * len(places)
    for place, numbers in by_layer.items():
        ends = {i for i, number in enumerate(numbers) if number in closed}
        layers[place].backward, indices = _chains(layers[place].backward, ends)
        for number, index in zip(numbers, indices):
            index_of[number] = index
    return index_of


def _chains(kernels, ends):
    """Kernels with chains as one; and, of each kernel, the index of the one it became."""
    fused, indices, open_ = [], [], False
    for i, kernel in enumerate(kernels):
        if open_ and kernel.kind == 'memory':
            fused[-1] = replace(fused[-1], op='fused', written=kernel.written, launches=1,
                                operations=1, pattern=None)
        else:
            fused.append(kernel)
        indices.append(len(fused) - 1)
        open_ = kernel.kind == 'memory' and i not in ends
    return fused, indices
