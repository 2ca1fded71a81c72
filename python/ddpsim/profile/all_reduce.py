"""How long all-reduces take with nothing beside them."""
import statistics
import time

import torch

from .messages import KIB, MIB
from .spread import Spread


def all_reduce_time(job, size, patience):
    """Seconds from the last rank's arrival to the last rank's end, nothing beside it.

    With a clock of their own each, ranks compare no times of day: the shortest span of a rank is
    that of the one that arrived last. A sample is the mean of several in a row, for a step is a sum
    of calls: Gloo's, that wake threads, take a fraction of a millisecond or several, and what they
    take on average counts. The median of such samples leaves out what befell the machine once.
    """
    data = torch.zeros(size // 4, device=job.device)
    job.dist.all_reduce(data)
    samples, spent = [], 0.0
    row = 8 if job.backend != 'gloo' or size <= MIB else 2
    while len(samples) < 5 or (len(samples) < 40 and spent < patience):
        job.barrier()
        if job.device.type == 'cuda':
            job.dist.all_reduce(data)  # whoever comes last has come
        start = job.clock.mark()
        for _ in range(row):
            job.dist.all_reduce(data)
        end = job.clock.mark()
        job.clock.settle()
        if job.machines == 1 and job.device.type == 'cpu':
            everyone = job.numbers([start, end])
            last_begin = max(theirs[0] for theirs in everyone)
            sample = 1e-9 * (max(theirs[1] for theirs in everyone) - last_begin) / row
        else:
            sample = min(theirs[0] for theirs in job.numbers([job.clock.seconds(start, end)])) / row
        samples.append(sample)
        spent += row * sample
    return Spread(samples)


def issue_time(job):
    """Seconds the host spends on issuing an all-reduce."""
    data = [torch.zeros(16 * KIB, device=job.device) for _ in range(8)]
    samples = []
    for _ in range(4):
        job.barrier()
        works = []
        for each in data:
            begin = time.perf_counter()
            works.append(job.dist.all_reduce(each, async_op=True))
            samples.append(time.perf_counter() - begin)
        for work in works:
            work.wait()
        job.clock.settle()
    return job.mean(statistics.median(samples))


def without_disturbance(measured, measure):
    """The same {size: Spread}, but sizes that take over a tenth longer than a larger one are
    measured again, twice at most, and the quicker counts: a link does not do that, a machine that
    was busy meanwhile does."""
    measured = dict(measured)
    for _ in range(2):
        for size in sorted(measured, reverse=True):
            larger = [spread.median for other, spread in measured.items() if other > size]
            if larger and min(larger) < 0.9 * measured[size].median:
                measured[size] = min(measured[size], measure(size),
                                     key=lambda spread: spread.median)
    return measured
