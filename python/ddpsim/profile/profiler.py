"""Steps of a training loop, marked where their passes begin and end and gradients arrive."""
import atexit
import functools
import os

import torch

from .clocks import clock_of
from .files import workload_text, write
from .messages import ProfileError, note
from .parameters import accumulator_of, parameters_of
from .passes import Profile
from .steal import Steal


class Step:
    """The marks of one step: begin, forward, backward, backward_end, optimizer, optimizer_end,
    end."""

    def __init__(self, watched):
        self.watched = watched  # gradient hooks are on
        self.at = {}
        self.gradients = []     # (index of the parameter, mark), in the order their hooks fired
        self.backwards = self.optimizers = 0


class StepContext:
    """`with profiler.step():`: marks on, marks off. All it touches is put back on leaving."""

    def __init__(self, profiler, step):
        self.profiler, self.step = profiler, step
        self.undo = []

    def __enter__(self):
        step, profiler = self.step, self.profiler
        if step is None:
            return self
        mark = profiler.clock.mark
        at = step.at

        def forward_begins(*_):
            at.setdefault('forward', mark())
        hook = profiler.model.register_forward_pre_hook(forward_begins)
        self.undo.append(hook.remove)

        backward = torch.autograd.backward  # loss.backward() calls it by this name
        depth = 0

        @functools.wraps(backward)
        def timed_backward(*arguments, **keywords):
            nonlocal depth
            depth += 1  # checkpoints call it again inside
            try:
                if depth > 1:
                    return backward(*arguments, **keywords)
                step.backwards += 1
                at['backward'] = mark()
                result = backward(*arguments, **keywords)
                at['backward_end'] = mark()
                return result
            finally:
                depth -= 1
        torch.autograd.backward = timed_backward
        self.undo.append(lambda: setattr(torch.autograd, 'backward', backward))

        if profiler.optimizer is not None:
            self.wrap_optimizer(profiler.optimizer, mark)
        if step.watched:
            for index, accumulator in enumerate(profiler.accumulators):
                self.undo.append(accumulator.register_hook(self.gradient_hook(index, mark)).remove)
        at['begin'] = mark()
        return self

    def wrap_optimizer(self, optimizer, mark):
        step, original, own = self.step, optimizer.step, vars(optimizer).get('step')

        @functools.wraps(original)
        def timed_step(*arguments, **keywords):
            step.optimizers += 1
            step.at['optimizer'] = mark()
            result = original(*arguments, **keywords)
            step.at['optimizer_end'] = mark()
            return result
        optimizer.step = timed_step

        def put_back():
            if own is None:
                del optimizer.step
            else:
                optimizer.step = own
        self.undo.append(put_back)

    def gradient_hook(self, index, mark):
        gradients = self.step.gradients
        parameter = self.profiler.parameters[index]

        def hook(*_):
            gradients.append((index, mark()))
            gradient = parameter.tensor.grad
            if not parameter.sparse and gradient is not None and gradient.is_sparse:
                # Gloo sends a row once, however often it was used; counted once, in warm-up.
                parameter.sparse, parameter.rows = True, gradient.coalesce()._nnz()
        return hook

    def __exit__(self, kind, *_):
        if self.step is None:
            return False
        self.step.at['end'] = self.profiler.clock.mark()
        for undo in reversed(self.undo):
            undo()
        self.profiler.finished(self.step if kind is None else None)
        return False


class Profiler:
    """Profiles steps of a training loop; see the top of this file.

    After `warmup` steps it takes `steps`: one half with gradient hooks, the other without, in turn,
    so that it knows what the hooks cost. Then it writes `output` (None: nothing is written), lets
    go of the model, and `step()` does nothing any more. A loop that ends early is written at exit.
    Of several ranks, rank 0 writes.
    """

    def __init__(self, model, optimizer=None, output='workload.yaml', warmup=3, steps=20):
        if warmup < 1 or steps < 4:
            raise ProfileError(
                f'it takes at least 1 step of warm-up and 4 more, got {warmup} and {steps}')
        if os.environ.get('RANK', '0') != '0':
            output = None
        self.model, self.optimizer, self.output = model, optimizer, output
        self.parameters = parameters_of(model)
        self.accumulators = [accumulator_of(parameter.tensor) for parameter in self.parameters]
        self.clock = clock_of(self.parameters[0].tensor.device)
        self.warmup, self.wanted = warmup, steps
        self.begun, self.taken = 0, []
        self.steal, self.done = Steal(), False
        atexit.register(self.close)

    def step(self):
        if self.done:
            return StepContext(self, None)
        self.begun += 1
        # hooks, none, none, hooks: what has a period of two in the loop hits both alike. Warm-up
        # has them too, in turn, so that both ways are warm.
        return StepContext(self, Step(watched=self.begun % 4 in (0, 1)))

    def finished(self, step):
        """A step has ended; None if it raised."""
        if step is None or self.begun <= self.warmup:
            return
        self.taken.append(step)
        if len(self.taken) >= self.wanted:
            self.close()

    def close(self):
        """Writes what there is. Problems are a line on standard error: the training goes on."""
        if self.done:
            return
        self.done = True
        atexit.unregister(self.close)
        if self.output is None:
            return
        try:
            profile = self.profile()
            stolen = Steal.doubts(self.steal.share())
            profile.doubts += stolen
            write(self.output, workload_text(profile))
            for line in [*profile.notes, *stolen, *profile.summary(), f'wrote {self.output}']:
                note(line)
        except (ProfileError, OSError) as problem:
            note(f'no profile: {problem}')
        self.accumulators = []

    def profile(self):
        return Profile(self)
