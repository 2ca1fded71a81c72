"""Bucket sizes for a job of Lightning, from 20 of its own steps.

    trainer = lightning.Trainer(callbacks=[ddpsim.lightning.Callback()], ...)

Rank 0 prints a verdict and the arguments for DDPStrategy, and writes ddpsim.json.
"""
try:
    from lightning.pytorch import Callback as _Callback
except ImportError:
    from pytorch_lightning import Callback as _Callback

from .profile.in_job import started


class Callback(_Callback):
    """Takes the arguments of JobWatch: steps, warmup, output, cluster, nodes, seconds. `report` is
    what rank 0 wrote, once it has."""

    def __init__(self, **settings):
        super().__init__()
        self._settings, self._watch = settings, None

    @property
    def report(self):
        return self._watch.report if self._watch else None

    def on_train_start(self, trainer, pl_module):
        del pl_module
        self._watch = started(trainer.strategy.model, self._settings)

    def on_train_end(self, trainer, pl_module):
        del trainer, pl_module
        if self._watch:
            self._watch.stop()

    def on_exception(self, trainer, pl_module, exception):
        del trainer, pl_module, exception
        if self._watch:
            self._watch.abandon()
