"""Steps of a job that trains, marked from outside: where passes begin and end, when gradients are
ready, and how long the job then waits for its all-reduces.

Nothing of the loop is known or changed. A step ends where an optimizer of the model has stepped; it
has as many micro-batches as backward was called since; a micro-batch begins with the model's
forward. After some steps of warm-up and `steps` more, all ranks go on to `then` at the end of the
same step, and the hooks are gone.
"""
import functools
import gc

import torch

from .clocks import clock_of
from .messages import ProfileError
from .parameters import accumulator_of, parameters_of


class MicroBatch:
    """Marks of one forward and one backward."""

    def __init__(self, forward):
        self.forward = forward
        self.backward = self.backward_end = None
        self.sends = True    # gradients are averaged in its backward pass
        self.gradients = []  # (index of the parameter, mark), in the order their hooks fired


class WatchedStep:
    def __init__(self, begin, watched):
        self.begin, self.watched = begin, watched  # watched: gradient hooks are on
        self.micro_batches = []
        self.optimizer = self.end = None

    @property
    def last(self):
        return self.micro_batches[-1]

    def is_whole(self):
        return bool(self.micro_batches) and self.optimizer is not None and all(
            each.backward_end is not None for each in self.micro_batches)


class Watch:
    """Call start(), and stop() if the loop ends before `steps` were taken."""

    def __init__(self, model, steps, warmup, then):
        if warmup < 1 or steps < 4:
            raise ProfileError(
                f'it takes at least 1 step of warm-up and 4 more, got {warmup} and {steps}')
        self.wrapper = wrapper_of(model)
        self.model, self._outer = bare(model), model
        self.parameters = parameters_of(self.model)
        self._own = {id(parameter.tensor) for parameter in self.parameters}
        self._accumulators = [accumulator_of(parameter.tensor) for parameter in self.parameters]
        self.clock = clock_of(self.parameters[0].tensor.device)
        self.warmup, self.wanted, self._then = warmup, steps, then
        self.taken, self._begun = [], 0
        self._step = None
        self._in_backward = 0  # calls of it that are under way
        self._undo, self._undo_step = [], []

    # --- hooks ---

    def start(self):
        try:
            from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                               register_optimizer_step_pre_hook)
        except ImportError:
            raise ProfileError('PyTorch 2.0 or later is needed to watch a job') from None
        self._undo = [
            *(module.register_forward_pre_hook(self._forward_begins).remove
              for module in self._called_first()),
            register_optimizer_step_pre_hook(self._optimizer_begins).remove,
            register_optimizer_step_post_hook(self._optimizer_ends).remove,
            self._time_backward()]
        self._begin_step()

    def stop(self):
        """All hooks are gone."""
        for undo in (*self._undo_step, *reversed(self._undo)):
            undo()
        self._undo, self._undo_step, self._step = [], [], None

    def _called_first(self):
        """Modules whose call may be the first of a forward pass: some loops call parts of a model,
        as Lightning's on one rank does. What is compiled is watched from outside, for hooks within
        would have it compiled anew."""
        if any(is_compiled(module) for module in (self._outer, *self._outer.modules())):
            return [self._outer]
        return [module for module in self.model.modules()
                if module is self.model or next(module.parameters(recurse=False), None) is not None]

    @property
    def running(self):
        return bool(self._undo)

    def _begin_step(self):
        self._begun += 1
        # hooks, none, none, hooks: as in profiler.py
        self._step = WatchedStep(self.clock.mark(), self._begun % 4 in (0, 1))
        if self._step.watched:
            self._undo_step = [accumulator.register_hook(self._gradient(index)).remove
                               for index, accumulator in enumerate(self._accumulators)]

    def _forward_begins(self, module, _):
        micro_batches = self._step.micro_batches
        waits = micro_batches and micro_batches[-1].backward is None  # one loss of several forwards
        if self._in_backward:  # a checkpoint runs again
            return
        if module.training and torch.is_grad_enabled() and not waits:
            micro_batches.append(MicroBatch(self.clock.mark()))

    def _time_backward(self):
        backward = torch.autograd.backward  # loss.backward() calls it by this name

        @functools.wraps(backward)
        def timed(*arguments, **keywords):
            step = self._step
            outermost = self._in_backward == 0 and step is not None and step.micro_batches
            micro_batch = step.last if outermost else None
            if micro_batch is None or micro_batch.backward is not None:
                return backward(*arguments, **keywords)
            self._in_backward += 1  # checkpoints call it again inside
            try:
                micro_batch.sends = getattr(self.wrapper, 'require_backward_grad_sync', True)
                micro_batch.backward = self.clock.mark()
                result = backward(*arguments, **keywords)
                micro_batch.backward_end = self.clock.mark()
                if step.optimizer is not None:  # backward ran in the optimizer's closure
                    step.optimizer = micro_batch.backward_end
                return result
            finally:
                self._in_backward -= 1
        torch.autograd.backward = timed

        def put_back():
            if torch.autograd.backward is timed:
                torch.autograd.backward = backward
        return put_back

    def _gradient(self, index):
        def hook(*_):
            if self._step is not None and self._step.micro_batches:
                self._step.last.gradients.append((index, self.clock.mark()))
        return hook

    def _is_own(self, optimizer):
        return any(id(parameter) in self._own for group in optimizer.param_groups
                   for parameter in group['params'])

    def _optimizer_begins(self, optimizer, *_):
        if self._step is not None and self._step.optimizer is None and self._is_own(optimizer):
            self._step.optimizer = self.clock.mark()

    def _optimizer_ends(self, optimizer, *_):
        step = self._step
        if step is None or step.optimizer is None or not self._is_own(optimizer):
            return
        step.end = self.clock.mark()
        for undo in self._undo_step:
            undo()
        self._undo_step = []
        if self._begun > self.warmup and step.is_whole():
            self.taken.append(step)
        if len(self.taken) < self.wanted:
            self._begin_step()
            return
        self.stop()
        self._then()


def is_compiled(module):
    return hasattr(module, '_orig_mod') or getattr(module, '_compiled_call_impl', None) is not None


def bare(model):
    """The user's own module, without what DistributedDataParallel and torch.compile put around."""
    while True:
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        elif hasattr(model, '_orig_mod'):
            model = model._orig_mod
        else:
            return model


def wrapper_of(model):
    """The DistributedDataParallel around a model, which may be the model; None where there is
    none."""
    kind, inner = torch.nn.parallel.DistributedDataParallel, bare(model)
    while not isinstance(model, kind) and hasattr(model, '_orig_mod'):
        model = model._orig_mod
    if isinstance(model, kind):
        return model
    # By type, not isinstance: objects of others may run code when they are asked.
    return next((each for each in gc.get_objects()
                 if type(each) is kind and bare(each) is inner), None)
