"""What the host of a virtual machine takes of its processors while something is measured."""
import os
import time


def used_seconds():
    """Seconds of all processors together since the machine started: those in which they worked, and
    those in which the host of a virtual machine ran others in their place (proc_stat(5)); zeros
    where the system does not say."""
    try:
        with open('/proc/stat') as file:
            user, nice, system, _, _, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0, 0.0
    ticks = os.sysconf('SC_CLK_TCK')
    return (user + nice + system + irq + softirq) / ticks, stolen / ticks


class Steal:
    """From when it is made."""
    MOST = 0.05  # share

    def __init__(self):
        self.before, self.begin = used_seconds(), time.perf_counter()

    def share(self):
        """What was stolen, as a share of the time in which processors had work, but of at least one
        processor's time. The system counts in ticks of 10 ms."""
        worked, stolen = (max(0.0, after - before)
                          for after, before in zip(used_seconds(), self.before))
        return stolen / max(time.perf_counter() - self.begin, worked + stolen)

    @classmethod
    def doubts(cls, share):
        return [
            f'the host of this virtual machine took {100 * share:.0f} % of its processors\' time '
            'meanwhile: measure '
            'again when it takes less'
        ] if share > cls.MOST else []
