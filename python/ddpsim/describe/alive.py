"""Memory that a captured step holds: each piece of it from the operation that makes it to its last
reference, as PyTorch's allocator on a device would count it.

Tensors of the meta device have storages without memory, which autograd, modules and the user's code
hold and let go as they do on a device: what is alive after every operation is what a device would
hold. An allocator gives whole multiples of 512 bytes (c10/cuda/CUDACachingAllocator.cpp,
kMinBlockSize).
"""
import weakref

import torch

from .tensors import tensors_in

GRAIN = 512


def rounded(size):
    return -(-size // GRAIN) * GRAIN


class Alive:
    """`held`: bytes alive now, beside what was there before the step. `settled`: bytes of gradients
    that have become those of parameters, which are counted there and no longer in `held`."""

    def __init__(self, there):
        self.held = 0
        self.settled = 0
        self._pieces = {}  # storage -> (weak reference, bytes)
        self._there = {storage_of(tensor) for tensor in there if tensor.layout is torch.strided}

    def add(self, result):
        """The results of an operation."""
        for tensor in tensors_in(result):
            try:
                storage = tensor.untyped_storage()
            except (NotImplementedError, RuntimeError):  # a sparse tensor
                continue
            key = storage._cdata
            if key in self._pieces or key in self._there:
                continue
            size = rounded(storage.nbytes())
            self._pieces[key] = (weakref.ref(storage, lambda _, key=key: self._gone(key)), size)
            self.held += size

    def settle(self, gradient):
        """A gradient is a parameter's from now on."""
        try:
            key = storage_of(gradient)
        except (NotImplementedError, RuntimeError):
            return
        if key in self._pieces:
            size = self._pieces.pop(key)[1]
            self._there.add(key)
            self.held -= size
            self.settled += size

    def _gone(self, key):
        self.held -= self._pieces.pop(key, (None, 0))[1]


def storage_of(tensor):
    return tensor.untyped_storage()._cdata
