"""Runs Python programs that import torch, each in a fork of one process that has imported it:
seconds less for each.

    python3 forks.py PROGRAMS.json [AT_ONCE]

PROGRAMS is a list of {"words": [script, argument...], "environment": {name: value}}. AT_ONCE of
them (default: 1) run at a time, in this order. Printed is a list of {"code", "out", "err"}. From
Python: Fork, and two_ranks.
"""
import atexit
import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')  # before torch loads its BLAS

import torch  # for the forks

with contextlib.suppress(ImportError):  # torch 1.13 has none
    import torch._dynamo  # a DistributedDataParallel of torch 2 imports it: 800 modules


class Fork:
    """A Python program under way: words[0] with the rest, with `environment` added to ours, in
    `folder`."""

    def __init__(self, words, environment=(), folder=None):
        self.files = [tempfile.TemporaryFile() for _ in ('out', 'err')]
        self.code = None
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            self.become([str(word) for word in words], dict(environment), folder)

    def become(self, words, environment, folder):
        """Never returns."""
        code = 1
        atexit._clear()  # what we do at our end is not the program's to do
        try:
            for number, file in enumerate(self.files, 1):
                os.dup2(file.fileno(), number)
            os.environ.update(environment)
            if 'OMP_NUM_THREADS' in environment:
                torch.set_num_threads(int(environment['OMP_NUM_THREADS']))
            if folder:
                os.chdir(folder)
            sys.argv, sys.path[0] = words, os.path.dirname(words[0])
            runpy.run_path(words[0], run_name='__main__')
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()  # as at the end of every program
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def wait(self, timeout=180.0):
        """(exit code, what it printed, its complaints). Raises subprocess.TimeoutExpired, and
        leaves it running."""
        deadline = time.monotonic() + timeout
        while self.code is None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.process), timeout)
            else:
                time.sleep(0.005)
        return (self.code, *(file.seek(0) or file.read().decode() for file in self.files))

    def end(self):
        """Kills it if it still runs."""
        if self.code is None:
            os.kill(self.process, signal.SIGKILL)
            self.wait()


def two_ranks(words, timeout):
    """What Fork.wait says of each of two ranks of a process group over Gloo, which run the program
    `words` with one thread each. Raises subprocess.TimeoutExpired. Neither is left running."""
    place = {
        'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port()), 'WORLD_SIZE': '2',
        'GLOO_SOCKET_IFNAME': 'lo', 'OMP_NUM_THREADS': '1', 'PYTHONDONTWRITEBYTECODE': '1'
    }
    ranks = [Fork(words, {**place, 'RANK': str(rank)}) for rank in range(2)]
    deadline = time.monotonic() + timeout
    try:
        return [rank.wait(max(1.0, deadline - time.monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            rank.end()


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def main():
    with open(sys.argv[1]) as file:
        programs = json.load(file)
    at_once = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    outcomes = []
    for begin in range(0, len(programs), at_once):
        forks = [
            Fork(program['words'], program['environment'])
            for program in programs[begin:begin + at_once]
        ]
        outcomes += [fork.wait() for fork in forks]
    json.dump([dict(zip(('code', 'out', 'err'), outcome)) for outcome in outcomes], sys.stdout)


if __name__ == '__main__':
    main()
