"""How long an operation keeps the device busy.

On a GPU, by events around it. Before each of them the second-level cache is flushed, by writing a
large buffer, as often as the host needs to enqueue the operation: when the device comes to the
operation all its kernels are enqueued, and no time of the host is measured. The events themselves
take some microseconds, which are taken off: those of a kernel that does nothing, less the time such
a kernel is known to take.
"""
import statistics
import time

import torch

REPEATS = 7
FEWEST_REPEATS = 3         # of what takes long
LONG = 0.3                 # seconds of repeats
WARM_UP = 3
FLUSHED = 256 << 20        # bytes: more than any second-level cache has
NO_WORK = 1.2e-6           # seconds that a kernel of next to no work takes: machine.cpp


def enough(times):
    return len(times) >= REPEATS or (len(times) >= FEWEST_REPEATS and sum(times) > LONG)


class GpuClock:
    def __init__(self, device):
        self.device = device
        self.buffer = torch.empty(FLUSHED, dtype=torch.uint8, device=device)
        self.flush_time = min(self._between(self.buffer.zero_) for _ in range(WARM_UP))
        self.events = 0.0
        one = torch.zeros(1, device=device)
        self.events = max(0.0, self.time(one.zero_) - NO_WORK)

    def time(self, function):
        """Seconds, the median of some."""
        host = self._warm_up(function)
        flushes = 1 + int(2 * host / max(self.flush_time, 1e-6))
        times = []
        while not enough(times):
            for _ in range(flushes):
                self.buffer.zero_()
            times.append(self._between(function))
        return max(statistics.median(times) - self.events, 1e-8)

    def _warm_up(self, function):
        """The host's time of a call, after the first ones."""
        for _ in range(WARM_UP):
            torch.cuda.synchronize(self.device)
            begin = time.perf_counter()
            function()
            host = time.perf_counter() - begin
        torch.cuda.synchronize(self.device)
        return host

    def _between(self, function):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3


class CpuClock:
    def __init__(self, device):
        self.buffer = torch.zeros(16 << 20, dtype=torch.uint8)

    def time(self, function):
        for _ in range(WARM_UP):
            function()
        times = []
        while not enough(times):
            self.buffer.add_(1)
            begin = time.perf_counter()
            function()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)


def clock_of(device):
    return GpuClock(device) if device.type == 'cuda' else CpuClock(device)
