"""Bucket sizes for a job of the transformers library's Trainer, from 20 of its own steps.

    trainer = Trainer(..., callbacks=[ddpsim.transformers.Callback()])

Rank 0 prints a verdict and the arguments for DistributedDataParallel, and writes ddpsim.json. Of
these TrainingArguments takes bucket_cap_mb as ddp_bucket_cap_mb.
"""
from transformers import TrainerCallback

from .profile.in_job import started


class Callback(TrainerCallback):
    """Takes the arguments of JobWatch: steps, warmup, output, cluster, nodes, seconds. `report` is
    what rank 0 wrote, once it has."""

    def __init__(self, **settings):
        self._settings, self._watch = settings, None

    @property
    def report(self):
        return self._watch.report if self._watch else None

    def on_train_begin(self, args, state, control, model=None, **others):
        del args, state, control, others
        self._watch = started(model, self._settings)

    def on_train_end(self, args, state, control, **others):
        del args, state, control, others
        if self._watch:
            self._watch.stop()
