"""Steal time: what the host of a virtual machine gives to others of the time its processors would
have worked (proc_stat(5)).

It comes in bursts: most seconds a shared host takes some percent, some seconds half of everything.
What is timed then is a slower machine, whatever is timed; so it is a reason to time once more that
does not look at what was timed.
"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'python'))
from ddpsim.profile.steal import Steal

MOST_STOLEN = Steal.MOST  # share, while a step runs
MOST_ON_AVERAGE = 0.1  # while many things are measured, of which those above are measured again


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
