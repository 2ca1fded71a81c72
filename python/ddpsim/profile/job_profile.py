"""What the watched steps of a job say together.

Where gradients are accumulated, the passes are those of a micro-batch that sends nothing
(`alone`). Elsewhere they are as they are beside the job's own all-reduces, and a rank's backward
ends with its last gradient: what comes after is waiting.
"""
import collections
import statistics

from .messages import ProfileError, plural
from .parameters import buffers_of
from .passes import Profile, spread_doubts, step_spread
from .profiler import Step


class JobProfile(Profile):
    """A workload profile of one micro-batch, with `micro_batches` of them to a step."""

    def __init__(self, watch, ranks):
        clock, self.ranks = watch.clock, ranks
        clock.settle()
        self.name = type(watch.model).__name__
        self.parameters, self.notes = watch.parameters, []
        self.buffers = buffers_of(watch.model)
        self.device = watch.parameters[0].tensor.device
        counts = collections.Counter(len(step.micro_batches) for step in watch.taken)
        self.micro_batches = counts.most_common(1)[0][0] if counts else 0
        steps = [step for step in watch.taken if len(step.micro_batches) == self.micro_batches]
        if len(steps) < len(watch.taken):
            self.notes.append(
                f'{plural(len(watch.taken) - len(steps), "step")} with another number of '
                f'micro-batches than {self.micro_batches} left out')
        self.bare = [step for step in steps if not step.watched]
        watched = [step for step in steps if step.watched and step.last.gradients]
        if min(len(watched), len(self.bare)) < 2:
            raise ProfileError(f'{plural(len(steps), "whole step")} after {watch.warmup} of '
                               'warm-up; at least 4 are needed')
        self.alone = self.ranks == 1 or all(
            not step.micro_batches[0].sends for step in steps)
        self._measure(clock, watched)
        self.watched = [self._backward_of(step) for step in watched]
        self.gradients(clock)

    def _told(self, step):
        """The micro-batch whose passes are taken: one of those that send nothing, or the last."""
        return step.micro_batches[-2 if self.ranks > 1 and self.alone else -1]

    def _backward_of(self, step):
        """A step as Profile takes steps."""
        told, made = self._told(step), Step(watched=True)
        end = told.backward_end if self.alone else told.gradients[-1][1]
        made.at = {'backward': told.backward, 'backward_end': end}
        made.gradients = told.gradients
        return made

    def _measure(self, clock, watched):
        seconds, median = clock.seconds, statistics.median
        self.forward = median(seconds(each.forward, each.backward)
                              for step in self.bare for each in step.micro_batches)
        chosen = [self._backward_of(step).at for step in (self.bare if self.alone else watched)]
        backwards = [seconds(at['backward'], at['backward_end']) for at in chosen]
        self.backward = median(backwards)
        self.waiting = 0.0 if self.ranks == 1 else median(
            seconds(step.last.gradients[-1][1], step.last.backward_end) for step in watched)
        self.optimizer = median(seconds(step.optimizer, step.end) for step in self.bare)
        whole = [seconds(step.begin, step.end) for step in self.bare]
        self.total, self.spread = median(whole), step_spread(whole)
        self.doubts = spread_doubts(self.spread)  # those that the file holds and a verdict repeats
        self.notes += self.doubts
        self.watched_total = median(seconds(step.begin, step.end) for step in watched)
        self.totals = [self.forward + each for each in backwards]  # what this rank computes
        # What a prediction is of: passes, waiting and update, without what feeds them.
        self.step = median(
            sum(seconds(each.forward, each.backward_end) for each in step.micro_batches)
            + seconds(step.optimizer, step.end) for step in self.bare)
