"""Clocks. A mark is a moment of the device that computes: a time on a CPU, an event on a GPU, which
nobody waits for until all marks are read."""
import time

import torch


class HostClock:
    mark = staticmethod(time.perf_counter_ns)

    @staticmethod
    def seconds(begin, end):
        return 1e-9 * (end - begin)

    def settle(self):
        """Waits until everything issued has been computed."""


class CudaClock:
    def __init__(self, device):
        self.device = device

    def mark(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    @staticmethod
    def seconds(begin, end):
        return 1e-3 * begin.elapsed_time(end)

    def settle(self):
        torch.cuda.synchronize(self.device)


def clock_of(device):
    return CudaClock(device) if device.type == 'cuda' else HostClock()
