"""How long all-reduces take with nothing beside them."""
import statistics
import time

import torch

from .messages import KIB, MIB
from .spread import Spread


def all_reduce_time(job, size, patience):
    """Seconds from the last rank's arrival to the last rank's end, nothing beside it.

    A sample is the mean of several in a row, for a step is a sum
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
        sample = span(job, start, end) / row
        samples.append(sample)
        spent += row * sample
    return Spread(samples)


# Threads that torch's ProcessGroupGloo has for collectives, unless its options say otherwise: so
# many of them are under way at a time. Source: torch 2.13, ProcessGroupGloo::Options.
GLOO_THREADS = 2
LARGEST_STREAMED = 16 * MIB  # of larger ones a stream saves next to nothing


def stream_time(job, size, single, patience):
    """Seconds of each of several all-reduces that are under way together, as DDP's are when they
    queue: what is no transfer of one hides behind the others. `single`: what one takes alone.

    What several take beyond one is theirs. No more than alone, and no less than would do with as
    many links as there are threads.
    """
    count = 9 if size <= MIB else 5
    data = [torch.zeros(size // 4, device=job.device) for _ in range(count)]
    samples, spent = [], 0.0
    while len(samples) < 5 or (len(samples) < 20 and spent < patience):
        job.barrier()
        start = job.clock.mark()
        works = [job.dist.all_reduce(each, async_op=True) for each in data]
        for work in works:
            work.wait()
        end = job.clock.mark()
        job.clock.settle()
        all_of_them = span(job, start, end)
        samples.append((all_of_them - single) / (count - 1))
        spent += all_of_them
    return min(single, max(single / GLOO_THREADS, statistics.median(samples)))


def span(job, start, end):
    """Seconds from the last rank's `start` to the last rank's `end`. Ranks of several machines
    compare no times of day: the shortest span of one is that of the one that arrived last."""
    if job.machines == 1 and job.device.type == 'cpu':
        everyone = job.numbers([start, end])
        return 1e-9 * (max(theirs[1] for theirs in everyone)
                       - max(theirs[0] for theirs in everyone))
    return min(theirs[0] for theirs in job.numbers([job.clock.seconds(start, end)]))


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
    """`measured`, {size: Spread}, in which every size that took over a tenth longer than a larger
    one is measured again, twice at most; the quicker time counts. A link is never slower with fewer
    bytes, but a machine that was busy meanwhile is."""
    measured = dict(measured)
    for _ in range(2):
        for size in sorted(measured, reverse=True):
            larger = [spread.median for other, spread in measured.items() if other > size]
            if larger and min(larger) < 0.9 * measured[size].median:
                measured[size] = min(measured[size], measure(size),
                                     key=lambda spread: spread.median)
    return measured
