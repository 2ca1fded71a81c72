"""A sweep whose points an executor computes: processes of this machine, or of many.

An executor is what `concurrent.futures` has, or anything whose `submit(function, *arguments)`
returns futures with `add_done_callback`, `result` and `cancel`: `ProcessPoolExecutor`, the executor
or the client of Dask, `mpi4py.futures`, loky, Parsl. Points go out in blocks, and come back as rows
that say what they were computed from, so a worker that reads other files is found out.
"""
from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import weakref
from typing import Any, NamedTuple

from . import _arguments as arguments
from . import _native
from ._errors import InputError

# A block is small enough that a lost one costs little, but of a large grid each also costs a look
# at all points.
_BLOCKS, _BLOCK, _MOST_BLOCKS = 256, 64, 4096
_LEAST_PAUSE = 3.0                      # seconds between two times that the file is written


class Task(NamedTuple):
    """What a worker needs to know of a sweep."""
    request: str  # as the compiled module takes it, with the texts that stand in place of files
    origin: str   # the fingerprint of the version and of all files


class _Prepared:
    """A sweep that this process computes blocks of."""

    def __init__(self, task: Task, sweep: _native.SharedSweep | None = None) -> None:
        self.sweep = sweep or _native.SharedSweep(task.request)
        if self.sweep.origin != task.origin:
            raise InputError('a worker of the executor reads other files than the process that '
                             'asks, or has another version of ddpsim: give it the same')


_lock = threading.Lock()
_recent: list[_Prepared] = []           # the last one; others live while they are computed
_prepared: weakref.WeakValueDictionary[Task, _Prepared] = weakref.WeakValueDictionary()


def compute(task: Task, points: list[int], threads: int) -> str:
    """Called by workers: the rows of these points, as CSV."""
    with _lock:
        prepared = _prepared.get(task)
        if prepared is None:
            _recent.clear()
            _prepared[task] = prepared = _Prepared(task)
            _recent.append(prepared)
    return prepared.sweep.compute(points, threads)


def blocks_of(points: list[int]) -> list[list[int]]:
    def share(blocks: int) -> int:
        return -(-len(points) // blocks)
    size = max(1, min(share(_BLOCKS), max(_BLOCK, share(_MOST_BLOCKS))))
    return [points[at:at + size] for at in range(0, len(points), size)]


def checked(executor: Any) -> Any:
    if not callable(getattr(executor, 'submit', None)):
        raise arguments.refused('executor', 'an executor such as concurrent.futures has, with '
                                'submit(function, *arguments)', executor)
    return executor


class _Bar:
    """Progress as `progress` asks for it."""

    def __init__(self, progress: Any) -> None:
        self._call = progress if callable(progress) else None
        self._drawn, self._begin = False, time.monotonic()
        self._draws = progress is not False and self._call is None and sys.stderr.isatty()

    def show(self, done: int, points: int) -> None:
        what = f'{done} of {points} points'
        if self._call:
            self._call(what, done / points)
        elif self._draws and time.monotonic() - self._begin > 1:
            self._drawn = True
            print(f'\r{what}', end='', file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._drawn:
            print('\r' + ' ' * 40 + '\r', end='', file=sys.stderr, flush=True)


def run(task: Task, sweep: _native.SharedSweep, executor: Any, keeps: bool,
        progress: Any) -> None:
    """Computes what is missing. `keeps`: the sweep has a file, which is written every few seconds
    and whatever happens. A block that comes back with an error of the executor's is sent out once
    more: Dask loses one now and then when a worker dies."""
    missing = sweep.missing()
    done, bar = sweep.points - len(missing), _Bar(progress)
    finished: queue.SimpleQueue[int] = queue.SimpleQueue()
    waiting: dict[int, Any] = {}
    blocks = blocks_of(missing)
    failed: set[int] = set()
    next_save = time.monotonic() + _LEAST_PAUSE
    with _lock:  # for workers that are threads of this process, or forked from it
        _prepared[task] = own = _Prepared(task, sweep)

    def send(number: int) -> None:
        waiting[number] = executor.submit(compute, task, blocks[number], 1)
        waiting[number].add_done_callback(lambda _: finished.put(number))

    def take(number: int) -> int:
        try:
            sweep.take(waiting.pop(number).result())
        except InputError:
            raise
        except Exception:
            if number in failed:
                raise
            failed.add(number)
            send(number)
            return 0
        return len(blocks[number])

    try:
        for number in range(len(blocks)):
            send(number)
        while waiting:
            bar.show(done, sweep.points)
            with contextlib.suppress(queue.Empty):
                done += take(finished.get(timeout=0.2))
            if keeps and time.monotonic() >= next_save:
                begin = time.monotonic()
                sweep.save()
                next_save = time.monotonic() + max(_LEAST_PAUSE, 10 * (time.monotonic() - begin))
    finally:
        for future in waiting.values():
            future.cancel()
        bar.clear()
        del own
        if keeps:
            sweep.save()
