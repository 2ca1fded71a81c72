"""Bucket sizes for a training script that is not touched, from 20 of its own steps:

    torchrun --nproc_per_node 2 -m ddpsim.attach [flags] train.py ARGUMENTS

The first DistributedDataParallel that the script makes is watched. Rank 0 prints a verdict and the
arguments to paste, and writes ddpsim.json. The script runs as it would without.
"""
import argparse
import functools
import os
import runpy
import sys

from .profile.arguments import number_above
from .profile.messages import ProfileError, note


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ProfileError(f'{message}; --help says more')


def parsed(words):
    parser = Parser(prog='python -m ddpsim.attach', description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument('--steps', type=number_above(4), default=20,
                        help='steps that count (default: 20)')
    parser.add_argument('--warmup', type=number_above(1), default=3,
                        help='steps that do not (default: 3)')
    parser.add_argument('--output', metavar='FILE', default='ddpsim.json',
                        help='where the report goes (default: ddpsim.json)')
    parser.add_argument('--cluster', metavar='NAME',
                        help="to tune for instead of this job's ranks")
    parser.add_argument('--nodes', type=number_above(1), metavar='N', help='of that cluster')
    parser.add_argument('--seconds', type=number_above(1, float), default=10.0,
                        help='about how long the link is measured (default: 10)')
    parser.add_argument('script', metavar='SCRIPT')
    parser.add_argument('arguments', nargs=argparse.REMAINDER, metavar='ARGUMENTS')
    found = parser.parse_args(words)
    if not os.path.isfile(found.script):
        raise ProfileError(f'{found.script}: no such file; expected a training script')
    return found


def watched_when_made(settings, watches):
    """The first DistributedDataParallel that is made from now on is watched."""
    from torch.nn.parallel import DistributedDataParallel as kind

    from .profile.in_job import started
    original = kind.__init__

    @functools.wraps(original)
    def made(self, *arguments, **keywords):
        original(self, *arguments, **keywords)
        if not watches:
            watches.append(started(self, settings))
    kind.__init__ = made


def ended(watches, steps):
    """What is said when the script has ended."""
    if os.environ.get('RANK', '0') != '0':
        return
    if not watches:
        note('no verdict: the script made no DistributedDataParallel')
    elif watches[0] and watches[0].running:
        note(f'no verdict: the script ended after {watches[0].taken} of {steps} steps; --steps N '
             'takes fewer')


def leave_group():
    """Process groups that are still there when Python ends may end it with a signal: their threads
    run on without it."""
    distributed = sys.modules.get('torch.distributed')
    if distributed and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def main(words):
    found = parsed(words)
    settings = {name: getattr(found, name)
                for name in ('steps', 'warmup', 'output', 'cluster', 'nodes', 'seconds')}
    watches = []
    watched_when_made(settings, watches)
    sys.argv = [found.script, *found.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(found.script)))
    try:
        runpy.run_path(found.script, run_name='__main__')
        leave_group()
    finally:
        ended(watches, found.steps)


if __name__ == '__main__':
    try:
        main(sys.argv[1:])
    except ProfileError as problem:
        note(problem)
        sys.exit(2)
