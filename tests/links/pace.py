#!/usr/bin/env python3
"""How fast this machine's processors compute, and whether at one pace, which steal time (steal.py) does not tell.

A virtual machine's processor may share a physical core with another's: what it computes takes longer while that one has
work, and nothing is counted as stolen. One such machine made 100,000 additions in 2.4 or in 4.0 ms, for 0.2 to 8 s at a
time; what is timed there is predicted badly minutes later (tests/links/results/2026-11-22-tuned-torch-small-batches.md).

    tests/links/pace.py [SECONDS]

Prints one line. Exit code: 0; 3 if the pace changes.
"""
import multiprocessing
import os
import sys
import time

ADDITIONS = 100_000
CHANGES = 1.25  # the 90th percentile over the 10th: of one pace at most 1.1, of the machine above 1.7


def additions(processor, seconds):
    """Seconds of each loop of ADDITIONS on that processor, for so many seconds."""
    os.sched_setaffinity(0, {processor})
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start, total = time.perf_counter(), 0
        for number in range(ADDITIONS):
            total += number
        times.append(time.perf_counter() - start)
    return times


def measure(seconds=20):
    """(a sentence, whether each processor has one pace), with all of them at work."""
    processors = sorted(os.sched_getaffinity(0))
    with multiprocessing.Pool(len(processors)) as pool:
        times = [sorted(of_one) for of_one in pool.starmap(additions, [(each, seconds) for each in processors], chunksize=1)]
    at = [[of_one[int(share * (len(of_one) - 1))] for of_one in times] for share in (0.1, 0.9)]
    steady = all(high <= CHANGES * low for low, high in zip(*at))
    return (f'{ADDITIONS} additions take {1e3 * min(at[0]):.2f} to {1e3 * max(at[1]):.2f} ms (p10 to p90, every processor at '
            f'once): ' + ('one pace' if steady else 'the pace changes, and what is timed with it')), steady


if __name__ == '__main__':
    sentence, one_pace = measure(float(sys.argv[1]) if len(sys.argv) > 1 else 20)
    print(sentence)
    sys.exit(0 if one_pace else 3)
