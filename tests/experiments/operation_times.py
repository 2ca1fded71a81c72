"""Times of single operations on this machine's CPU, in the state of caches that a step has.

Each operation is run by itself on memory of its own. Before it is timed, memory that is twice as
large as the caches is read, the same operation runs on other memory, so that its code is
there, and those of its inputs are read that the step touched shortly before.

Where the last level of caches holds all of a step, its operations find everything there: then all
inputs are read before, and results go to memory that was written just before.
"""
import time

import torch

from ddpsim.describe.operations import cache_bytes


_WARMING = 3     # runs that bring an operation's code into the caches
_SMALL_CACHES = 8 << 20  # bytes that are more than a core's own caches hold
_LONG = 500_000  # nanoseconds of a run beside which its code counts for nothing


class Bench:
    """The distinct ones of `operations`, made ready to run. `round` measures each once."""

    def __init__(self, operations, seed=0):
        self._index_of = {}
        self._number = [self._index_of.setdefault(_key(op), len(self._index_of))
                        for op in operations]
        distinct = dict(zip(map(_key, operations), operations)).values()
        generator = torch.Generator().manual_seed(seed)
        self._ready = [_Ready(operation, generator) for operation in distinct]
        self._flushed = torch.ones(2 * cache_bytes() // 4)
        self._resident = torch.ones(_SMALL_CACHES // 4)
        self.samples = [[] for _ in self._ready]  # seconds

    def __len__(self):
        return len(self._ready)

    def round(self):
        with torch.no_grad():
            for ready, samples in zip(self._ready, self.samples):
                samples.append(ready.timed(self._resident if ready.operation.resident
                                           else self._flushed))

    def seconds(self, statistic):
        """One number for each operation of the step."""
        each = [statistic(samples) for samples in self.samples]
        return [each[number] for number in self._number]


def _key(operation):
    """Equal for operations that take the same time."""
    return repr(operation)


class _Ready:
    """An operation with two sets of arguments: one warms its code, the other is timed."""

    def __init__(self, operation, generator):
        self.operation = operation
        self._first = operation.arguments(generator)
        self._timed = operation.arguments(generator)
        memory = self._timed[2]
        self._warm = [memory[number][begin:end:64] for number, begin, end in operation.regions()
                      if operation.warm[number]]
        self._before = [(memory[number], memory[number].clone()) for number in operation.written]

    def timed(self, flushed):
        """Seconds that one run takes."""
        func = self.operation.func
        for memory, values in self._before:
            memory.copy_(values)
        flushed.sum()
        args, kwargs, _ = self._first
        for _ in range(_WARMING):
            begin = time.perf_counter_ns()
            kept = func(*args, **kwargs)  # holds its memory, so that the timed run takes other
            if time.perf_counter_ns() - begin > _LONG:
                break
        if self.operation.resident:
            kept = None  # the timed run takes its memory, which is in the caches
        args, kwargs, _ = self._timed
        for lines in self._warm:
            lines.sum()
        begin = time.perf_counter_ns()
        result = func(*args, **kwargs)
        end = time.perf_counter_ns()
        kept = result = None
        return (end - begin) * 1e-9
