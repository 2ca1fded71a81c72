"""What all-reduces and the computation beside them cost each other."""
import statistics
import time

import torch



def computation_time(job, compute):
    """Seconds of one computation, nothing beside it, and how much longer the slowest rank takes
    than the mean: in the median of samples as long as a step, for what evens out within a step
    delays nobody."""
    def sample(count):
        job.barrier()
        begin = job.clock.mark()
        for _ in range(count):
            compute()
        end = job.clock.mark()
        job.clock.settle()
        return [theirs[0] / count for theirs in job.numbers([job.clock.seconds(begin, end)])]
    sample(1)
    count = max(1, round(0.4 / statistics.fmean(sample(1))))
    everyone = [sample(count) for _ in range(5)]
    means = [statistics.fmean(times) for times in everyone]
    return statistics.median(means), statistics.median(
        max(times) / mean for times, mean in zip(everyone, means))


def moments_of_places(job, compute):
    """Seconds from the computation's begin to each of its places, as rank 0 has them: for everyone,
    so that all issue at the same places."""
    marks = []
    begin = job.clock.mark()
    compute(lambda _: marks.append(job.clock.mark()))
    job.clock.settle()
    count = -int(job.most(-len(marks)))
    return job.numbers([job.clock.seconds(begin, mark) for mark in marks[:count]])[0]


def spread_places(moments, alone, each, least, most):
    """[computation][place] where to issue all-reduces that take `each`, so that none comes before
    the last has ended with some time to spare: in as many computations in a row as hold `least` of
    them, but no more than `most`."""
    chosen, free, count = [], 0.0, 0
    while count < least and len(chosen) < most:
        row = set()
        for place, moment in enumerate(moments):
            moment += len(chosen) * alone
            if moment >= free:
                row.add(place)
                free = moment + 1.5 * each
                count += 1
        chosen.append(row)
    # The last one too has computation beside it.
    return chosen + [set()] * int(1 + 1.5 * each / alone)


ROUNDS, MOST_ROUNDS = 9, 45  # of computation with all-reduces beside it and without


def longest_beside(budget, rounds=ROUNDS):
    """Seconds a computation may take at most for `budget` to hold so many rounds of it twice, once
    with all-reduces beside it."""
    return budget / (2.2 * rounds)


def compute_slowdown(job, compute, alone, size, each, budget):
    """How much longer computation takes while an all-reduce, which takes `each`, runs beside it;
    None if the budget does not suffice to say: longest_beside(budget) bounds `alone`.

    They are issued from within the computation, one by one, as hooks of DistributedDataParallel do:
    beside a stream of them each costs less, for its threads are awake. Ranks wait for the slowest,
    so the slowest counts. Compared is with the computations before and behind, so that a steady
    drift of the machine costs nothing.
    """
    places = spread_places(moments_of_places(job, compute), alone, each, 24,
                           int(longest_beside(budget) / alone))
    count = sum(len(row) for row in places)
    if count == 0 or len(places) * alone > 2 * longest_beside(budget):
        return None
    buffers = [torch.zeros(size // 4, device=job.device) for _ in range(min(count, 8))]

    def computed(issued):
        works = []

        def at(row):
            def issue(place):
                if place in row:
                    works.append(
                        job.dist.all_reduce(buffers[len(works) % len(buffers)], async_op=True))
            return issue
        job.barrier()
        begin = job.clock.mark()
        for row in places:
            compute(at(row if issued else ()))
        end = job.clock.mark()
        for work in works:
            work.wait()
        job.clock.settle()
        return job.most(job.clock.seconds(begin, end))
    once = len(places) * alone
    rounds = max(ROUNDS, min(MOST_ROUNDS, int(longest_beside(budget, 1) / once)))
    losses, before = [], computed(False)
    for _ in range(rounds):
        slow, behind = computed(True), computed(False)
        losses.append((slow - (before + behind) / 2) / count)
        before = behind
    return 1.0 / (1.0 - min(0.99, max(0.0, statistics.median(losses) / each)))


def busy_time(job, size, count):
    """Seconds from issuing `count` all-reduces at once to the end of the last, while this rank
    computes."""
    data = [torch.zeros(size // 4, device=job.device) for _ in range(min(count, 8))]
    extent = 160 if job.device.type == 'cpu' else 4096
    matrix = torch.randn(extent, extent, device=job.device)
    out = torch.empty(extent, extent, device=job.device)
    samples = []
    for _ in range(7):
        job.barrier()
        # Multiplications of a tenth of a millisecond, and a look after each.
        if job.device.type == 'cpu':
            begin = time.perf_counter()
            while time.perf_counter() - begin < 0.01:
                torch.mm(matrix, matrix, out=out)
            begin = time.perf_counter()
            works = [
                job.dist.all_reduce(data[index % len(data)], async_op=True)
                for index in range(count)
            ]
            while not works[-1].is_completed():
                torch.mm(matrix, matrix, out=out)
            passed = time.perf_counter() - begin
        else:  # kernels for long enough, and a stream of its own that waits for the all-reduces
            for _ in range(2000):
                torch.mm(matrix, matrix, out=out)
            begin = job.clock.mark()
            works = [
                job.dist.all_reduce(data[index % len(data)], async_op=True)
                for index in range(count)
            ]
            aside = torch.cuda.Stream(job.device)
            with torch.cuda.stream(aside):
                for work in works:
                    work.wait()
                end = job.clock.mark()
            job.clock.settle()
            passed = job.clock.seconds(begin, end)
        for work in works:
            work.wait()
        job.clock.settle()
        samples.append(job.mean(passed))
    return statistics.median(samples)


def beside_compute(job, size, budget, idle):
    """(seconds of each all-reduce of a stream beside computation, seconds until the stream's first
    is taken up).

    What several take beyond one is theirs alone; what is left of the first is the way to the thread
    that runs it: on a CPU it has to be woken while others compute.
    """
    count = max(2, min(8, int(budget / 7 / idle) - 1))
    one, several = busy_time(job, size, 1), busy_time(job, size, count)
    each = (several - one) / (count - 1)
    return max(each, idle), max(0.0, one - max(each, idle))
