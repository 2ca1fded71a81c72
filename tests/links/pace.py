#!/usr/bin/env python3
"""Whether this machine's processors compute at one pace, which steal time does not tell.

A virtual machine's processor may share a physical core with another's: what it computes then takes
longer while that one has work, and nothing is counted as stolen (steal.py). One machine made
100,000 additions in 2.4 or in 4.0 ms, for 0.2 to 8 s at a time, and steps timed there were
mispredicted by 16 % in the median (docs/accuracy.md). Other programs at work look the same. A
machine that is slow throughout does not show.

    tests/links/pace.py --seconds 20

Prints one line. Exit code: 0; 3 if the pace changes or processors differ.
"""
import argparse
import concurrent.futures
import os
import sys
import time

ADDITIONS = 100_000
# The 90th percentile of a processor over its 10th, and the slowest processor's median over the
# fastest's: where runs came out well at most 1.15, on the machine above 1.7.
CHANGES = 1.25


def additions(processor, seconds):
    """Seconds of each loop of ADDITIONS on that processor, for so many seconds; sorted."""
    os.sched_setaffinity(0, {processor})
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start, total = time.perf_counter(), 0
        for number in range(ADDITIONS):
            total += number
        times.append(time.perf_counter() - start)
    return sorted(times)


def measure(seconds=20):
    """(a sentence, whether it is one pace), with all processors at work at once."""
    processors = sorted(os.sched_getaffinity(0))
    with concurrent.futures.ProcessPoolExecutor(len(processors)) as pool:
        jobs = [pool.submit(additions, each, seconds) for each in processors]
        times = [job.result() for job in jobs]
    low, median, high = ([of_one[int(share * (len(of_one) - 1))] for of_one in times]
                         for share in (0.1, 0.5, 0.9))
    if any(most > CHANGES * least for least, most in zip(low, high)):
        verdict = ('the pace changes, and so does what is timed: is something else running, '
                   'or are processors shared?')
    elif max(median) > CHANGES * min(median):
        verdict = 'some processors are slower than others'
    else:
        verdict = ''
    return (f'{ADDITIONS} additions take {1e3 * min(low):.2f} to {1e3 * max(high):.2f} ms '
            f'(p10 to p90, every processor at once): {verdict or "one pace"}'), not verdict


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seconds', type=float, default=20)
    sentence, one_pace = measure(parser.parse_args().seconds)
    print(sentence)
    sys.exit(0 if one_pace else 3)
