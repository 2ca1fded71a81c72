"""Steal time: what the host of a virtual machine gives to others of the time its processors would
have worked (proc_stat(5)).

It comes in bursts: most seconds a shared host takes some percent, some seconds half of everything.
What is timed then is a slower machine, whatever is timed; so it is a reason to time once more that
does not look at what was timed.

ddpsim.profile measures the same way: it is one file and needs torch, which not all of the
scripts that import this do.
"""
import os
import subprocess
import sys
import time

MOST_STOLEN = 0.05  # share, while a step runs
MOST_ON_AVERAGE = 0.1  # while many things are measured, of which those above are measured again


def used_seconds():
    """Of all processors since the machine started: what they worked, and what was stolen; zeros
    where the system does not say."""
    try:
        with open('/proc/stat') as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        user, nice, system, _, _, irq, softirq, stolen = fields
    except (OSError, ValueError):
        return 0.0, 0.0
    ticks = os.sysconf('SC_CLK_TCK')
    return (user + nice + system + irq + softirq) / ticks, stolen / ticks


class Steal:
    """From when it is made."""

    def __init__(self):
        self.before, self.start = used_seconds(), time.perf_counter()

    def share(self):
        """Of the time in which processors had work, but of at least one's; 0 before 50 ms, as ticks
        are 10 ms long."""
        passed = time.perf_counter() - self.start
        worked, stolen = (max(0.0, after - before)
                          for after, before in zip(used_seconds(), self.before))
        return stolen / max(passed, worked + stolen) if passed >= 0.05 else 0.0


def now(seconds=3):
    """The share stolen while all processors are kept busy: from an idle machine nothing is."""
    during = Steal()
    burning = ('import time\n'
               f'end = time.perf_counter() + {seconds}\n'
               'while time.perf_counter() < end: pass')
    command = [sys.executable, '-c', burning]
    for process in [subprocess.Popen(command) for _ in range(os.cpu_count())]:
        process.wait()
    return during.share()


def undisturbed(measure, tries=3, patience=300):
    """What measure() returns, once at most MOST_ON_AVERAGE was stolen meanwhile, or the last time.

    Each try begins when at most that is stolen, or `patience` seconds later."""
    for number in range(1, tries + 1):
        give_up = time.perf_counter() + patience
        while now() > MOST_ON_AVERAGE and time.perf_counter() < give_up:
            time.sleep(10)
        during = Steal()
        result = measure()
        if during.share() <= MOST_ON_AVERAGE:
            break
        print(f'the host took {100 * during.share():.0f} % of the processors: '
              f'try {number} of {tries}', file=sys.stderr)
    return result
