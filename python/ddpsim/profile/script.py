"""The function of a user's file that says what a training step is, and steps made by it."""
import os
import statistics

import torch

from .._user_step import EXPECTED, checked, hint, imported
from . import memory
from .messages import ProfileError, first_line
from .profiler import Profiler


def load(script):
    """What the user's function returns, checked: (model, batch, loss, optimizer or None)."""
    file, colon, function = script.rpartition(':')
    if not colon:
        file, function = script, 'make'
    if not os.path.isfile(file):
        raise ProfileError(
            f'--script: {file}: no such file; expected FILE:FUNCTION such as my_model.py:make')
    module = said_by_user(file, lambda: imported(file, ProfileError))
    make = getattr(module, function, None)
    if not callable(make):
        raise ProfileError(f'--script: {file} has no function {function}')
    made = said_by_user(f'{file}:{function}()', make)
    model, batch, loss, optimizer = checked(script, made, ProfileError)
    if optimizer is not None and not callable(getattr(optimizer, 'step', None)):
        raise ProfileError(
            f'{script}: {EXPECTED}; the optimizer is a {type(optimizer).__name__} without step()')
    return model, batch, loss, optimizer


def said_by_user(where, action):
    """Errors in the user's code are the user's, in one line."""
    try:
        return action()
    except (ProfileError, KeyboardInterrupt):
        raise
    except SystemExit as problem:
        raise ProfileError(f'{where} called sys.exit({problem.code})') from None
    except BaseException as problem:
        raise ProfileError(
            f'{where} raised {type(problem).__name__}: {first_line(problem)}{hint(problem)}'
        ) from problem


def profiled(arguments, made, job, progress):
    """The Profile of steps made here."""
    model, batch, loss, optimizer = made
    profiler = Profiler(model, optimizer, None, arguments.warmup, arguments.steps)
    where = arguments.script or 'ddpsim.profile'

    def value_of():
        value = loss(model, batch)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            got = type(value).__name__
            if isinstance(value, torch.Tensor):
                got = f'a tensor of shape {list(value.shape)}'
            raise ProfileError(
                f'{where}: loss(model, batch) has to return one number, a tensor to call '
                f'backward() on; got {got}'
            )
        if not value.requires_grad:
            raise ProfileError(f'{where}: the loss does not depend on any parameter')
        return value

    def step():
        value_of().backward()
        if optimizer is not None:
            optimizer.step()

    def run(profiler, count):
        while not profiler.done:
            progress(f'step {profiler.begun + 1} of {count}')
            for parameter in profiler.parameters:
                parameter.tensor.grad = None
            profiler.clock.settle()
            if job:
                job.barrier()
            with profiler.step():
                said_by_user(f'{where}: a training step', step)
        return profiler.profile()
    before = None
    if arguments.memory == 'kept' and profiler.parameters[0].tensor.device.type == 'cpu':
        faults = memory.faults()
        before = run(Profiler(model, optimizer, None, 2, 8), 10)
        faults = (memory.faults() - faults) / 10
        if not memory.keep():
            before = None
    profile = run(profiler, arguments.warmup + arguments.steps)
    # Page faults on less than 1 MiB take too little time to be worth a note.
    if before and faults * memory.PAGE > max(1 << 20, 0.25 * profile.size):
        longer = before.backward / profile.backward - 1
        if longer > 0.05:
            profile.notes.append(
                f'backward took {100 * longer:.0f} % longer ({1e3 * before.backward:.3f} ms) '
                'before the C library was told to keep gradients\' memory from step to step '
                f'({faults:.0f} page faults a step), and may take that where a process trains this '
                'model alone: in its environment, '
                f'MALLOC_MMAP_THRESHOLD_={memory.LARGEST_KEPT} MALLOC_TRIM_THRESHOLD_=-1 keeps it')
    return profile


def together(job, profile):
    """Makes the profile equal on all ranks: passes become means over ranks of their medians.
    Returns how much longer the slowest rank computes than the mean, in the median step."""
    scale = [profile.forward, profile.backward, profile.optimizer or 0.0, profile.total]
    means = [statistics.fmean(column) for column in zip(*job.numbers(scale))]
    profile.spread = None  # it is known
    profile.ready = [min(ready * means[1] / profile.backward, means[1]) for ready in profile.ready]
    profile.forward, profile.backward = means[0], means[1]
    if profile.optimizer is not None:
        profile.optimizer = means[2]
    return statistics.median(
        max(column) / statistics.fmean(column) for column in zip(*job.numbers(profile.totals)))
