"""Repeats of a measurement."""
import statistics

from .files import milliseconds


class Spread:
    def __init__(self, samples):
        ordered = sorted(samples)
        at = lambda share: ordered[round(share * (len(ordered) - 1))]
        self.median, self.repeats = statistics.median(ordered), len(ordered)
        self.low, self.high = at(0.1), at(0.9)

    def text(self):
        return (
            f'time: {milliseconds(self.median)}, low: {milliseconds(self.low)}, high: '
            f'{milliseconds(self.high)}, '
            f'repeats: {self.repeats}')
