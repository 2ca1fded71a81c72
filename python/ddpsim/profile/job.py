"""The job: ranks that were started together, and their process group."""
import datetime
import os
import platform
import statistics
import threading
import time

import torch

from .arguments import rank_prefix
from .clocks import clock_of
from .messages import ProfileError, RankError, first_line, note


class Job:
    """This rank's place in the process group; collectives that fail or last too long end it in one
    line."""

    def __init__(self, device, timeout):
        import torch.distributed as dist
        self.dist, self.timeout, self.device, self.clock = dist, timeout, device, clock_of(device)
        if not dist.is_available():
            raise ProfileError('this torch was built without torch.distributed')
        self.own = not dist.is_initialized()
        self.joining = None  # while the ranks look for each other: what is said if they do not
        if self.own:
            for name in ('RANK', 'MASTER_ADDR', 'MASTER_PORT'):
                if not os.environ.get(name):
                    raise ProfileError(
                        f'WORLD_SIZE is set and {name} is not: start the ranks with torchrun, or '
                        'set both'
                    )
                if name != 'MASTER_ADDR' and not os.environ[name].isdigit():
                    raise ProfileError(f'{name}: expected a number, got "{os.environ[name]}"')
            if int(os.environ['RANK']) >= int(os.environ['WORLD_SIZE']):
                raise ProfileError(
                    f'RANK {os.environ["RANK"]} of WORLD_SIZE {os.environ["WORLD_SIZE"]}: ranks '
                    'count from 0'
                )
            self.joining = ('the ranks did not find each other at '
                            f'{os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]}')
            self.watch()
            try:
                dist.init_process_group('nccl' if device.type == 'cuda' else 'gloo',
                                        timeout=datetime.timedelta(seconds=timeout))
            except (RuntimeError, OSError) as problem:
                self.end_patrol()
                raise RankError(f'{self.joining} ({first_line(problem)})') from problem
            self.joining = None
        else:
            self.watch()
        self.backend = dist.get_backend()
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        if self.ranks < 2:
            raise ProfileError('the process group has one rank: there is no link to measure')
        self.machines = len(set(self.texts(boot_id())))

    def watch(self):
        """Collectives have time-outs of their own; this is for whatever has none."""
        self.over = threading.Event()
        self.alive()

        def patrol():
            while time.monotonic() < self.deadline:
                if self.over.wait(0.2):
                    return
            patience = f'{self.patience:g} s'
            note(rank_prefix() + (
                f'{self.joining} within {patience}' if self.joining else
                f'nothing heard of the other ranks for {patience}: did one die or fall behind?'
            ))
            os._exit(1)
        self.patroller = threading.Thread(target=patrol, daemon=True)
        self.patroller.start()

    def end_patrol(self):
        self.over.set()
        self.patroller.join()

    @property
    def patience(self):
        """Seconds: longer than torch's own time-out, which says more where it comes first."""
        return 1.5 * self.timeout + 2

    def alive(self):
        self.deadline = time.monotonic() + self.patience

    def leave(self):
        """The process group is left as it was found; the patrol ends."""
        self.end_patrol()
        if self.own:
            self.dist.destroy_process_group()

    def barrier(self):
        self.alive()
        self.clock.settle()
        self.dist.all_reduce(torch.zeros(1, device=self.device))
        self.clock.settle()

    def numbers(self, values):
        """[rank][index] of everyone's, as many from each."""
        self.alive()
        mine = torch.tensor([float(value) for value in values], dtype=torch.float64,
                            device=self.device)
        everyone = [torch.empty_like(mine) for _ in range(self.ranks)]
        self.dist.all_gather(everyone, mine)
        return [theirs.tolist() for theirs in everyone]

    def texts(self, text):
        self.alive()
        everyone = [None] * self.ranks
        self.dist.all_gather_object(everyone, text)
        return everyone

    def most(self, value):
        return max(theirs[0] for theirs in self.numbers([value]))

    def mean(self, value):
        return statistics.fmean(theirs[0] for theirs in self.numbers([value]))


def boot_id():
    """A text that is equal for ranks that share a machine, and so its clock."""
    try:
        with open('/proc/sys/kernel/random/boot_id') as file:
            return file.read().strip()
    except OSError:
        return platform.node()
