"""Steal time: what the host of a virtual machine gives to others of the time its processors would have worked (proc_stat(5)).

It comes in bursts: most seconds a shared host takes some percent, some seconds half of everything. What is timed then is a
slower machine, whatever is timed; so it is a reason to time once more that does not look at what was timed.
"""
import os
import subprocess
import sys
import time

MOST_STOLEN = 0.05  # share of all processors' time, while a step runs
MOST_ON_AVERAGE = 0.1  # while many things are measured, of which those above are measured again


def stolen_seconds():
    """Of all processors, since the machine started; 0 where the system does not say."""
    try:
        with open('/proc/stat') as file:
            return int(file.readline().split()[8]) / os.sysconf('SC_CLK_TCK')
    except (OSError, IndexError, ValueError):
        return 0.0


class Steal:
    """From when it is made."""

    def __init__(self):
        self.stolen, self.start = stolen_seconds(), time.perf_counter()

    def share(self):
        """Of all processors' time; 0 before 50 ms, as ticks are 10 ms long."""
        passed = time.perf_counter() - self.start
        return (stolen_seconds() - self.stolen) / (passed * os.cpu_count()) if passed >= 0.05 else 0.0


def now(seconds=3):
    """The share stolen while all processors are kept busy: an idle machine has nothing to be stolen."""
    during = Steal()
    burning = f'import time\nend = time.perf_counter() + {seconds}\nwhile time.perf_counter() < end: pass'
    for process in [subprocess.Popen([sys.executable, '-c', burning]) for _ in range(os.cpu_count())]:
        process.wait()
    return during.share()


def undisturbed(measure, tries=3, patience=300):
    """What measure(number of the try) returns, of the first try with at most MOST_ON_AVERAGE, or the least.

    Each begins when at most that is stolen, or `patience` seconds later."""
    made = []
    for number in range(tries):
        give_up = time.perf_counter() + patience
        while now() > MOST_ON_AVERAGE and time.perf_counter() < give_up:
            time.sleep(10)
        during = Steal()
        result = measure(number)
        made.append((during.share(), number, result))
        if made[-1][0] <= MOST_ON_AVERAGE:
            break
        print(f'the host took {100 * made[-1][0]:.0f} % of the processors: try {number + 1} of {tries}', file=sys.stderr)
    return min(made)[-1]
