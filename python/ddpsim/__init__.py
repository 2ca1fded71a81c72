"""ddpsim predicts how fast a step of data-parallel training will be, and finds the bucket sizes to
deploy.

    import ddpsim
    workload = ddpsim.describe(model, batch, loss, optimizer)   # on no device; needs torch
    plan = ddpsim.tune(workload, cluster='dgx-h100', nodes=4)
    ddp = DistributedDataParallel(model, **plan.ddp_kwargs)
    result = ddpsim.run('scenario.yaml', set={'cluster.nodes': 8})

`describe` and `profile` are packages that can be called: `python -m ddpsim.describe` runs one.
Nothing else needs torch, and they do not need the compiled module: every part is imported when it
is asked for.
"""
from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from ._errors import DeviceError, InputError, ProgramError

if TYPE_CHECKING:
    from ._program import calibrate, import_profile, list_backends, validate
    from ._questions import (Study, explain, list_clusters, list_devices, list_hooks, list_links,
                             list_models, list_results, list_strategies, load, plan, run,
                             schedule, schema, score, sweep, tune, vary)
    from ._sources import Scenario
    from .results import Plan, PlannedStep, Run, StrategyResult, TrainingPlan

    from .describe import describe
    from .profile import measured as profile

__all__ = ['DeviceError', 'InputError', 'Plan', 'PlannedStep', 'ProgramError', 'Run', 'Scenario',
           'StrategyResult', 'Study', 'TrainingPlan', 'calibrate', 'describe', 'explain',
           'import_profile', 'list_backends', 'list_clusters', 'list_devices', 'list_hooks',
           'list_links', 'list_models', 'list_results', 'list_strategies', 'load', 'plan',
           'profile', 'run', 'schedule', 'schema', 'score', 'sweep', 'tune', 'validate', 'vary']

_CALLABLE = ('describe', 'profile')
_PARTS = {'_program': ('calibrate', 'import_profile', 'list_backends', 'validate'),
          '_sources': ('Scenario',),
          'results': ('Plan', 'PlannedStep', 'Run', 'StrategyResult', 'TrainingPlan')}
_PART_OF = {name: part for part, names in _PARTS.items() for name in names}


def _call_own_function(module: types.ModuleType, *arguments: Any, **keywords: Any) -> Any:
    return getattr(module, module.__name__.rpartition('.')[2])(*arguments, **keywords)


class _CallableModule(types.ModuleType):
    """A package whose main function has its name: ddpsim.describe(...) is
    ddpsim.describe.describe(...)."""
    __call__ = _call_own_function


class _Package(types.ModuleType):
    """This package. Importing a package below it makes that an attribute here, whoever imports it:
    one with a function of its own name can then be called."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CALLABLE and type(value) is types.ModuleType:
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in ('attach', 'lightning', 'transformers'):  # they import what they are named after
        return importlib.import_module('.' + name, __name__)
    if name == '__version__':
        return importlib.import_module('._native', __name__).__version__
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if name in _CALLABLE:
        return importlib.import_module('.' + name, __name__)
    value = getattr(importlib.import_module('.' + _PART_OF.get(name, '_questions'), __name__), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
