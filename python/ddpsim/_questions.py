"""The questions: what the program's commands do with files, these functions do with objects too.

A scenario or workload is the path of a file, a dict, or a workload that was described or profiled.
`set` replaces keys as `--set` does: {'cluster.nodes': 8, 'training.bucket_cap': '50 MiB'}.
`laws_only` leaves the scenario's measured rows out of the prediction. `progress` is a function
(what, fraction); None draws a bar on a terminal once a call takes longer than a second, False shows
nothing. Ctrl-C ends every call. What is wrong with what is given raises InputError.
"""
from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Union

from . import _native, results
from . import _arguments as arguments
from . import _executors as executors
from ._errors import InputError
from ._sources import (Asked, Scenario, Settings, Source, all_settings, ask, question,
                       settings_of, text_of)

Progress = Union[Callable[[str, float], object], bool, None]
Values = Union[str, Iterable[Any]]
"""Values that a key takes: a list, or a text as `--vary` has it ('1MiB..64MiB*2')."""

_MOST_JOBS = 1024  # as of the program's --jobs


def _axes(vary: Mapping[str, Values]) -> list[str]:
    """As --vary has them."""
    expected = "a dict such as {'cluster.nodes': [1, 2, 4]}"
    axes = []
    for key, values in arguments.mapping('vary', expected, vary).items():
        where = f'vary {key}'
        if isinstance(values, str):
            text = arguments.encodable(where, values)
        elif isinstance(values, (bytes, bytearray)) or not isinstance(values, Iterable):
            raise arguments.refused(where, "a list of values, or a text such as '1,2,4'", values)
        else:
            text = ','.join(_one_value(where, each) for each in values)
        axes.append(f'{arguments.encodable("vary", key)}={text}')
    return axes


def _one_value(where: str, value: Any) -> str:
    """A value that --vary does not take apart: 'a, b' and '1..3' are one each. Lists and dicts may
    be written as YAML has them."""
    text = text_of(value, where)
    if not isinstance(value, str) or text[:1] in ('[', '{', '"', "'"):
        return text
    apart = text != text.strip() or not text or '..' in text or any(c in text for c in ',[]{}')
    return json.dumps(text, ensure_ascii=False) if apart else text


def _value_of(text: Any) -> Any:
    """What a text of --vary means: a number, true or false, or a text."""
    if not isinstance(text, str):
        return text
    with contextlib.suppress(ValueError):
        value = json.loads(text)
        if isinstance(value, (bool, int, float, str)):
            return value
    return text


def _varied_rows(said: results.Record, vary: Mapping[str, Values]) -> results.Record:
    """Rows have the keys that were varied as columns, the first ones, and numbers in them."""
    rows = []
    for row in said['rows']:
        of_point = {**row, **row.get('set', {})}
        rows.append({**{key: _value_of(of_point.get(key)) for key in vary},
                     **{key: each for key, each in row.items() if key not in {'set', *vary}}})
    return {**said, 'rows': rows}


def run(scenario: Source, *, set: Settings | None = None, cluster: Any = None,
        nodes: int | None = None, ranks_per_node: int | list[int] | None = None,
        ranks: int | None = None,
        device: Any = None, steps: int | None = None, scaling: int | None = None,
        seeds: int | None = None, run_ahead: bool = False, ddp_statistics: bool = False,
        why: bool = False, trace: bool = False, hooks: bool = False, page: bool = False,
        laws_only: bool = False,
        progress: Progress = None) -> results.Run:
    """Predicts a training step under every strategy in the scenario's `compare` list.

    `steps` adds consecutive steps from the first on, `run_ahead` the same with a host that runs
    ahead, `scaling` the step on 1, 2, 4, ... ranks up to so many, `seeds` so many steps with the
    ranks' computing times drawn anew in each (cluster.jitter), `ddp_statistics` what PyTorch's
    logger would say, `why` what exposes each bucket, all in `record`; `trace` a Chrome trace,
    `hooks` every hook in the order they fire, `page` a page for a browser.
    """
    settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
    return results.run(question(scenario, settings, laws_only).ask(
        'run', arguments.progress(progress), steps=arguments.whole_or_none('steps', steps),
        scaling=arguments.whole_or_none('scaling', scaling),
        seeds=arguments.whole_or_none('seeds', seeds), run_ahead=bool(run_ahead),
        ddp_statistics=bool(ddp_statistics), why=bool(why), trace=bool(trace), hooks=bool(hooks),
        page=bool(page)))


def vary(scenario: Source, vary: Mapping[str, Values], *, best: str = '',
         set: Settings | None = None, cluster: Any = None, nodes: int | None = None,
         ranks_per_node: int | list[int] | None = None,
         ranks: int | None = None, device: Any = None,
         laws_only: bool = False, progress: Progress = None) -> results.Variants:
    """The scenario at every combination of the values of some keys, side by side.

    `best` sorts the rows by a figure, the better values first: 'step', 'mfu',
    'tokens_per_second', ... A combination that the scenario refuses is a row with the reason under
    'error', as long as another one is not refused.
    """
    settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
    said = question(scenario, settings, laws_only).ask(
        'vary', arguments.progress(progress), axes=_axes(vary), best=arguments.text('best', best))
    return results.Variants(**results.common(_varied_rows(said, vary)))


def tune(workload: Source, cluster: Any = None, nodes: int | None = None, *,
         ranks_per_node: int | list[int] | None = None,
         ranks: int | None = None, device: Any = None,
         set: Settings | None = None, objective: str = 'step', within: float | str = '1%',
         largest_bucket: str = '', noise: float | str = '1%', uncertainty: float | str = '',
         threads: int | None = None, laws_only: bool = False,
         progress: Progress = None) -> results.Plan:
    """Finds the bucket sizes with the shortest step, for a workload on a cluster or a scenario.

    `cluster` is a name of list_clusters(), the path of a cluster's file or a dict. The plan's
    `ddp_kwargs` go to DistributedDataParallel. Of a scenario whose training.strategy is fsdp it
    finds how to shard: the plan's `fully_shard_kwargs` go to each call of fully_shard, of its
    `units`, and `code` does so; of zero1, zero2 and zero3 it finds the options, which `code` has.
    The other arguments are the flags of `ddpsim tune`.
    """
    settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
    def flag(name: str, value: Any) -> str:
        return arguments.text_or_number(name, value)
    return results.plan(question(workload, settings, laws_only).ask(
        'tune', arguments.progress(progress), objective=arguments.text('objective', objective),
        within=flag('within', within), largest_bucket=flag('largest_bucket', largest_bucket),
        noise=flag('noise', noise), uncertainty=flag('uncertainty', uncertainty),
        threads=flag('threads', '' if threads is None else threads)))


def _listed(where: str, values: str | int | Iterable[Any]) -> str:
    """Values as a flag has them: '8..64*2', or those of a list with commas between."""
    if isinstance(values, str):
        return arguments.encodable(where, values)
    if isinstance(values, Iterable) and not isinstance(values, (bytes, bytearray, Mapping)):
        return ','.join(_listed_one(where, each) for each in values)
    return _listed_one(where, values)


def _listed_one(where: str, value: Any) -> str:
    if isinstance(value, str):
        return arguments.encodable(where, value)
    return str(arguments.whole(where, value, 1))


def plan(scenario: Source, *, gpus: str | int | Iterable[int] = '',
         batches: str | int | Iterable[int] = '', strategies: str | Iterable[str] = '',
         best: int = 10, set: Settings | None = None, cluster: Any = None,
         ranks_per_node: int | list[int] | None = None, device: Any = None,
         laws_only: bool = False, progress: Progress = None) -> results.TrainingPlan:
    """Finds which strategy, batch and number of GPUs fit in memory, and which of them is quickest.

    `gpus` are numbers of GPUs in all, such as [8, 16, 32] or '8..64*2'; `batches` those of a rank,
    likewise; `strategies` names of list_strategies(). `best` is how many the report has. Each step
    of the plan has `fully_shard_kwargs`, where its strategy is fsdp, and `code`, the Python that
    wraps a model so.
    """
    settings = all_settings(set, cluster, None, ranks_per_node, None, device)
    return results.training_plan(question(scenario, settings, laws_only).ask(
        'plan', arguments.progress(progress), gpus=_listed('gpus', gpus),
        batches=_listed('batches', batches), strategies=_listed('strategies', strategies),
        best=str(arguments.whole('best', best, 1))))


def schedule(scenario: Source, *, set: Settings | None = None, cluster: Any = None,
             nodes: int | None = None, ranks_per_node: int | list[int] | None = None,
             ranks: int | None = None, device: Any = None, tasks: bool = False,
             steps: int | None = None, laws_only: bool = False,
             progress: Progress = None) -> results.Schedule:
    """Hooks in firing order, buckets with their contents, and what the step consists of."""
    settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
    return results.Schedule(**results.common(question(scenario, settings, laws_only).ask(
        'schedule', arguments.progress(progress), tasks=bool(tasks),
        steps=arguments.whole_or_none('steps', steps))))


def score(scenarios: Source | Sequence[Source], *, calibrate_on: str | Sequence[str] = '',
          set: Settings | None = None, laws_only: bool = False,
          progress: Progress = None) -> results.Score:
    """Holds predictions against the rows under `measured` of each scenario."""
    one = isinstance(scenarios, (str, os.PathLike, Mapping)) or hasattr(scenarios, 'text')
    if not one and not isinstance(scenarios, Iterable):
        raise arguments.refused('scenarios', 'scenarios, or a list of them', scenarios)
    several: Sequence[Any] = [scenarios] if one else list(scenarios)  # type: ignore[arg-type]
    strategies = (arguments.text('calibrate_on', calibrate_on)
                  if not isinstance(calibrate_on, (list, tuple)) else
                  ','.join(arguments.text('calibrate_on', each) for each in calibrate_on))
    return results.score(Asked(tuple(several), settings_of(set), laws_only).ask(
        'score', arguments.progress(progress), calibrate_on=strategies))


def sweep(scenario: Source, vary: Mapping[str, Values], *, best: str = '',
          set: Settings | None = None, cluster: Any = None, nodes: int | None = None,
          ranks_per_node: int | list[int] | None = None,
          ranks: int | None = None, device: Any = None,
          jobs: int | None = None, executor: Any = None,
          csv: str | os.PathLike[str] | None = None, laws_only: bool = False,
          progress: Progress = None) -> results.Sweep:
    """Predicts a grid: every combination of the values that the keys of `vary` take. `best` sorts
    what is printed by a figure; rows keep the order of the grid.

    `jobs` threads compute, all cores by default, or the workers of an `executor`: that of
    concurrent.futures, Dask, mpi4py, ... `csv` is a file that rows are written to while they are
    computed, as `ddpsim sweep --csv` does: points that it holds are not computed again, so a sweep
    that was interrupted goes on.
    """
    settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
    threads = 0 if jobs is None else arguments.whole('jobs', jobs, 1, _MOST_JOBS)
    axes, sorted_by = _axes(vary), arguments.text('best', best)
    shown = arguments.progress(progress)
    if executor is not None:
        if jobs is not None:
            raise InputError('jobs and executor both say who computes: give one')
        executors.checked(executor)
    asked = question(scenario, settings, laws_only)
    if executor is None and csv is None:
        said = asked.ask('sweep', shown, axes=axes, jobs=threads, best=sorted_by)
    else:
        ask('check_best', best=sorted_by)
        file = '' if csv is None else arguments.path('csv', csv)
        shared = _native.SharedSweep(asked.request(axes=axes, csv=file))
        anywhere = [os.path.abspath(each) for each in asked.files]
        task = executors.Task(asked.request(files=anywhere, axes=axes, csv=''), shared.origin)
        with (contextlib.nullcontext(executor) if executor is not None else
              ThreadPoolExecutor(threads or int(ask('allowed_cores')))) as workers:
            executors.run(task, shared, workers, bool(file), shown)
        said = asked.answer(shared.answer(sorted_by))
    return results.Sweep(**results.common(_varied_rows(said, vary)))


def load(file: str | os.PathLike[str], *, set: Settings | None = None) -> Scenario:
    """The keys of a scenario's file as a dict, to be changed and asked about."""
    keys = json.loads(ask('load', files=[arguments.path('load', file)], set=settings_of(set)))
    return Scenario(keys, os.path.dirname(os.path.abspath(file)))


def explain(key: str) -> str:
    """What a key of a scenario means: type, unit, default, source."""
    return ask('explain', key=arguments.text('key', key))


def schema(format: str = 'scenario') -> dict[str, Any]:
    """The JSON Schema of a format."""
    found: dict[str, Any] = json.loads(ask('schema', format=arguments.text('format', format)))
    return found


def _listing(kind: str) -> results.Listing:
    return results.Listing(**results.common(json.loads(ask('list', kind=kind))))


def list_models() -> results.Listing:
    """The models of the catalogue."""
    return _listing('models')


def list_devices() -> results.Listing:
    """The devices of the catalogue."""
    return _listing('devices')


def list_links() -> results.Listing:
    """The links of the catalogue."""
    return _listing('links')


def list_clusters() -> results.Listing:
    """The ready clusters of the catalogue."""
    return _listing('clusters')


def list_strategies() -> results.Listing:
    """How gradients can be averaged."""
    return _listing('strategies')


def list_hooks() -> results.Listing:
    """The comm hooks and gradient hooks there are."""
    return _listing('hooks')


def list_results() -> results.Listing:
    """What the values in records and rows mean."""
    return _listing('results')


class Study:
    """One scenario, read and priced once, for question after question of how long a step is: some
    microseconds each.

        study = ddpsim.Study('scenario.yaml')
        times = {cap: study.step_ms(bucket_cap=cap) for cap in ('5 MiB', '25 MiB', '100 MiB')}
    """

    def __init__(self, scenario: Source, *, set: Settings | None = None, cluster: Any = None,
                 nodes: int | None = None, ranks_per_node: int | list[int] | None = None,
                 ranks: int | None = None, device: Any = None, laws_only: bool = False) -> None:
        settings = all_settings(set, cluster, nodes, ranks_per_node, ranks, device)
        self._study = _native.Study(question(scenario, settings, laws_only).request())
        self.step_ms = self._study.step_ms
        """The length of a step where this differs from the scenario: `strategy`; `bucket_cap`,
        `first_bucket_cap` or `bucket_caps`; `latency` and `bandwidth` of the link that decides;
        `compute`, a factor on forward and backward; `slowest_rank`, how many times as late as a
        typical rank it is. Quantities are texts with their unit, or numbers in bytes, seconds and
        bytes per second."""

    @property
    def name(self) -> str:
        return self._study.name

    @property
    def ranks(self) -> int:
        return self._study.ranks

    def __repr__(self) -> str:
        return f'Study({self.name!r}, {self.ranks} ranks)'


# A Ctrl-C leaves a computation behind, which ends soon by itself; the interpreter waits for it.
with contextlib.suppress(ImportError):
    import atexit
    atexit.register(_native.wait_for_abandoned_work)
