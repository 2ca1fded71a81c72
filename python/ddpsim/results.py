"""What the questions are answered with. `record` of every answer holds all that the program writes
with --json; the fields beside it are the figures one asks for most, with their units."""
from __future__ import annotations

import csv
import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from . import _sharding, _timeline

Row = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Answer:
    """What all answers have."""
    record: Record = field(compare=False)
    """Everything, as the program writes it with --json."""
    notes: tuple[str, ...] = field(compare=False)
    """What one should know beside it, a sentence each."""
    _rows: tuple[Row, ...] = field(compare=False)
    _text: str = field(compare=False)
    _summary: str = field(compare=False)

    def rows(self) -> list[Row]:
        """The rows of the program's CSV as dicts: `pandas.DataFrame(answer.rows())`."""
        return [dict(row) for row in self._rows]

    def report(self) -> str:
        """All that the program prints."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what the program writes with --json; to a file whose name ends in .csv, the rows
        as a table."""
        if os.fspath(path).endswith('.csv'):
            self._save_rows(path)
            return
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(self.record, file, indent=1, ensure_ascii=False)
            file.write('\n')

    def _save_rows(self, path: str | os.PathLike[str]) -> None:
        columns = list(dict.fromkeys(name for row in self._rows for name in row))
        with open(path, 'w', encoding='utf-8', newline='') as file:
            writer = csv.DictWriter(file, columns, lineterminator='\n')
            writer.writeheader()
            for row in self._rows:
                writer.writerow({name: json.dumps(value) if isinstance(value, (dict, list))
                                 else value for name, value in row.items()})

    def __repr__(self) -> str:
        return self._summary.rstrip('\n')

    def _repr_html_(self) -> str:
        notes = ''.join(f'<p>{html.escape(note)}</p>' for note in self.notes)
        return f'<pre>{html.escape(repr(self))}</pre>{notes}'


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together. Times count from the start of the step."""
    index: int
    bytes: int
    parameters: tuple[str, ...]
    ready_ms: float | None
    start_ms: float | None
    end_ms: float | None
    exposed_ms: float | None


@dataclass(frozen=True)
class Unit:
    """Parameters that are gathered together, and whose gradients are reduce-scattered together."""
    index: int
    unit: str
    """Its module: 'layers.3', or 'the root'."""
    bytes: int
    parameters: tuple[str, ...]
    exposed_ms: float
    collectives: tuple[Record, ...] = field(repr=False)
    """One for each kind: 'kind', 'start_ms', 'end_ms', 'exposed_ms', ..."""


@dataclass(frozen=True)
class StrategyResult:
    """The step under one strategy."""
    strategy: str
    bucket_cap_bytes: int | None
    step_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    communication_ms: float
    exposed_ms: float
    overlap_ratio: float
    collectives: int
    wire_bytes: int
    speedup_vs_naive: float | None
    """None of one rank, which averages with nobody."""
    bound: str
    step_low_ms: float | None
    """Nine in ten measured steps of such predictions took this or more, in proportion."""
    step_high_ms: float | None
    known_from: str
    """What the step is predicted from: 'laws', 'described model', 'profile', ..."""
    buckets: tuple[Bucket, ...] = field(repr=False)
    """Empty under a strategy that shards, which has units."""
    units: tuple[Unit, ...] = field(repr=False)
    record: Record = field(repr=False, compare=False)

    @property
    def label(self) -> str:
        """"bucketed, 1+25 MiB": the first bucket ends at 1 MiB, the others at 25 MiB."""
        return str(self.record['label'])

    def rows(self) -> list[Row]:
        """The buckets as dicts; the units where there are any."""
        key = 'units' if 'units' in self.record else 'buckets'
        return [dict(each) for each in self.record[key]]


@dataclass(frozen=True, repr=False)
class Run(Answer):
    """Every strategy that a scenario compares: what `ddpsim run` prints."""
    scenario: str
    ranks: int
    results: tuple[StrategyResult, ...]
    trace: str | None = field(default=None, compare=False)
    """A Chrome trace (it opens in ui.perfetto.dev), if it was asked for."""
    hooks: tuple[Row, ...] | None = field(default=None, compare=False)
    """Every hook in the order they fire, if it was asked for."""
    page: str | None = field(default=None, compare=False)
    """A page for a browser, as HTML, if it was asked for."""

    def __getitem__(self, strategy: str) -> StrategyResult:
        """The first result of a strategy."""
        for result in self.results:
            if result.strategy == strategy:
                return result
        known = ', '.join(dict.fromkeys(result.strategy for result in self.results))
        raise KeyError(f'no result of a strategy "{strategy}"; there are: {known}')

    def __iter__(self) -> Iterator[StrategyResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def best(self) -> StrategyResult:
        """The strategy with the shortest step. A step without communication ('none') trains no
        job: it counts only where nothing else was compared."""
        averaging = [result for result in self.results if result.strategy != 'none']
        return min(averaging or self.results, key=lambda result: result.step_ms)

    def _repr_html_(self) -> str:
        columns = ('step_ms', 'forward_ms', 'backward_ms', 'communication_ms', 'exposed_ms',
                   'overlap_ratio', 'speedup_vs_naive', 'bound')
        rows: list[dict[str, object]] = [
            {'strategy': result.label, **{name: getattr(result, name) for name in columns}}
            for result in self.results]
        notes = ''.join(f'<p>{html.escape(note)}</p>' for note in self.notes)
        return (f'<p><b>{html.escape(self.scenario)}</b>, {self.ranks} ranks</p>'
                f'{_timeline.table(rows)}{_timeline.svg(self.results)}{notes}')


@dataclass(frozen=True, repr=False)
class Variants(Answer):
    """A scenario at every combination of the values of some keys, side by side: what
    `ddpsim run --vary` prints. `rows()` has a row for each combination and strategy."""


@dataclass(frozen=True, repr=False)
class Plan(Answer):
    """The bucket sizes to deploy: what `ddpsim tune` prints. `rows()` has every distinct cap. Of a
    scenario whose strategy shards (fsdp, zero1 to zero3) it is how, and `rows()` has every way."""
    scenario: str
    ddp_kwargs: dict[str, Any]
    """Arguments for DistributedDataParallel of PyTorch 2.13; empty: its defaults are as good, or
    the strategy shards."""
    step_ms: float
    """The step with these arguments."""
    bound_ms: float
    """No buckets (no shardings) lead to a shorter step."""
    default_step_ms: float
    """The step with DDP's defaults, or those of the strategy that shards."""
    pays: bool
    """Is it worth a changed setting?"""
    best_partition: tuple[tuple[str, ...], ...] = field(compare=False)
    """The best contiguous buckets found, by the names of their parameters; empty: not searched."""
    units: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    """Of fsdp: as of TrainingPlan."""
    code: str = field(default='', compare=False)
    """The Python that wraps a model for strategy fsdp; of a ZeRO what `ddpsim tune` prints for
    DeepSpeed, Megatron-LM or PyTorch; '' for other strategies."""
    _wrapping: Record | None = field(default=None, compare=False)

    @property
    def fully_shard_kwargs(self) -> dict[str, Any]:
        """As of PlannedStep. Raises ValueError for another strategy than fsdp."""
        if self._wrapping is None:
            raise ValueError('the strategy is not fsdp: fully_shard is of fsdp')
        return _sharding.keywords(self._wrapping)

    @property
    def gain(self) -> float:
        """The part of the default step that is saved."""
        return 1 - self.step_ms / self.default_step_ms

    def __repr__(self) -> str:
        if self.record['format'] == 'ddpsim.shards/1':
            return (f'{super().__repr__()}\n\n{self.code.rstrip()}\n\n{self.step_ms:.2f} ms; bound '
                    f'{self.bound_ms:.2f} ms, default {self.default_step_ms:.2f} ms')
        arguments = ', '.join(f'{name}={value!r}' for name, value in self.ddp_kwargs.items())
        return (f'{super().__repr__()}\n\nDistributedDataParallel(model'
                f'{", " if arguments else ""}{arguments}): {self.step_ms:.2f} ms; '
                f'bound {self.bound_ms:.2f} ms, default {self.default_step_ms:.2f} ms')


@dataclass(frozen=True)
class PlannedStep:
    """One way to train that a plan found to fit, or that may fit."""
    strategy: str
    ranks: int
    nodes: int
    batch: int | None
    """Samples of a micro-batch of one rank; None: not known (a workload profile)."""
    step_ms: float
    tokens_per_second: float | None
    """Of all ranks; None where there are no tokens, or no batch is known."""
    samples_per_second: float | None
    peak_memory_bytes: int
    set: dict[str, str]
    """The keys that the plan chose: `ddpsim.run(scenario, set={**step.set, 'compare': [...]})`."""
    code: str = field(repr=False)
    """The Python that wraps a model for strategy fsdp; of a ZeRO what `ddpsim plan` prints for
    DeepSpeed, Megatron-LM or PyTorch; '' for other strategies."""
    record: Record = field(repr=False, compare=False)
    _wrapping: Record | None = field(repr=False, compare=False)

    @property
    def fully_shard_kwargs(self) -> dict[str, Any]:
        """Keyword arguments for every call of torch.distributed.fsdp.fully_shard. `mp_policy` is a
        MixedPrecisionPolicy, and without torch a dict of its types; `mesh`, of replicas, is a
        DeviceMesh where this process is in a process group, the same at each call, and else a
        dict of its dimensions. Raises ValueError for another strategy than fsdp."""
        if self._wrapping is None:
            raise ValueError(f'the strategy is {self.strategy}: fully_shard is of fsdp')
        return _sharding.keywords(self._wrapping)


@dataclass(frozen=True, repr=False)
class TrainingPlan(Answer):
    """Which ways to train fit, the quickest first: what `ddpsim plan` prints. `rows()` has every
    combination that was tried."""
    scenario: str
    steps: tuple[PlannedStep, ...]
    units: tuple[tuple[str, ...], ...] = field(compare=False)
    """The names of the modules of each call of fully_shard but that of the whole model, in order:

        for names in plan.units:
            fully_shard([model.get_submodule(name) for name in names], **plan.fully_shard_kwargs)
        fully_shard(model, **plan.fully_shard_kwargs)
    """

    def __getitem__(self, index: int) -> PlannedStep:
        return self.steps[index]

    def __iter__(self) -> Iterator[PlannedStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def best(self) -> PlannedStep:
        """The quickest. Raises LookupError where nothing fits."""
        if not self.steps:
            raise LookupError(self.notes[-1])
        return self.steps[0]

    @property
    def cheapest(self) -> PlannedStep:
        """That of the least time of all devices for its work. Raises LookupError likewise."""
        return min(self.steps, key=lambda step: int(step.record['cost_place']), default=self.best)

    @property
    def fully_shard_kwargs(self) -> dict[str, Any]:
        """Those of the quickest."""
        return self.best.fully_shard_kwargs

    @property
    def code(self) -> str:
        """That of the quickest."""
        return self.best.code


@dataclass(frozen=True, repr=False)
class Schedule(Answer):
    """Hooks in firing order, buckets and tasks of a step: what `ddpsim schedule` prints. `rows()`
    has the buckets, or the units."""


@dataclass(frozen=True, repr=False)
class Score(Answer):
    """Predictions beside measured rows: what `ddpsim score` prints. Errors are fractions; None:
    something is fitted to each row, so none is predicted."""
    median_error: float | None
    worst_error: float | None


@dataclass(frozen=True, repr=False)
class Sweep(Answer):
    """A grid of scenarios: what `ddpsim sweep` writes. A row that a scenario refuses has the reason
    under 'error'."""


@dataclass(frozen=True, repr=False)
class Listing(Answer):
    """Entries of the catalogue: what `ddpsim list` prints."""

    def __repr__(self) -> str:
        return self._text.rstrip('\n')

    def names(self) -> list[str]:
        return [str(next(iter(row.values()))) for row in self._rows]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True, repr=False)
class Measurement(Answer):
    """What the program measured on this machine, beside what it predicts."""


def common(answer: Record) -> dict[str, Any]:
    """The fields of Answer, of what the native module returned."""
    return {'record': answer['record'], 'notes': tuple(answer['notes']),
            '_rows': tuple(answer['rows']), '_text': answer['text'],
            '_summary': answer['summary']}


def strategy_result(record: Record) -> StrategyResult:
    buckets = tuple(
        Bucket(each['index'], each['bytes'], tuple(each['parameters']), each.get('ready_ms'),
               each.get('start_ms'), each.get('end_ms'), each.get('exposed_ms'))
        for each in record['buckets'])
    names = [name for name in StrategyResult.__dataclass_fields__
             if name not in ('buckets', 'units', 'record')]
    units = tuple(
        Unit(each['index'], each['unit'], each['bytes'], tuple(each['parameters']),
             each['exposed_ms'], tuple(each['collectives']))
        for each in record.get('units', ()))
    return StrategyResult(**{name: record[name] for name in names}, buckets=buckets, units=units,
                          record=record)


def run(answer: Record) -> Run:
    record = answer['record']
    return Run(**common(answer), scenario=record['scenario'], ranks=record['ranks'],
               results=tuple(strategy_result(each) for each in record['results']),
               trace=answer.get('trace'), page=answer.get('page'),
               hooks=tuple(answer['hooks']) if 'hooks' in answer else None)


def plan(answer: Record) -> Plan:
    record = answer['record']
    if 'wrapping' in answer:
        wrapping = answer['wrapping']
        return Plan(**common(answer), scenario=record['scenario'], ddp_kwargs={},
                    step_ms=record['advised_sharding']['step_ms'],
                    bound_ms=record['lower_bound_ms'],
                    default_step_ms=record['default_sharding']['step_ms'], pays=record['pays'],
                    best_partition=(), code=wrapping['code'], _wrapping=wrapping,
                    units=tuple(tuple(names) for names in answer['units']))
    if record['format'] == 'ddpsim.shards/1':
        return Plan(**common(answer), scenario=record['scenario'], ddp_kwargs={},
                    step_ms=record['advised_sharding']['step_ms'],
                    bound_ms=record['lower_bound_ms'],
                    default_step_ms=record['default_sharding']['step_ms'], pays=record['pays'],
                    best_partition=(), code=answer['code'])
    return Plan(**common(answer), scenario=record['scenario'],
                ddp_kwargs=answer.get('ddp', {}),
                step_ms=answer.get('ddp_step_ms', record['recommended_step_ms']),
                bound_ms=record['lower_bound_ms'], default_step_ms=record['default_step_ms'],
                pays=record['pays'],
                best_partition=tuple(tuple(names) for names in record['best_partition']))


def planned_step(record: Record, wrapping: Record | None, code: str) -> PlannedStep:
    names = ('strategy', 'ranks', 'nodes', 'batch', 'step_ms', 'tokens_per_second',
             'samples_per_second', 'peak_memory_bytes', 'set')
    figures: dict[str, Any] = {name: record.get(name) for name in names}
    return PlannedStep(**figures, code=code, record=record, _wrapping=wrapping)


def training_plan(answer: Record) -> TrainingPlan:
    record = answer['record']
    rows = zip(record['candidates'], answer['wrapping'], answer['code'])
    steps = tuple(planned_step(*row) for row in rows if row[0]['place'] is not None)
    return TrainingPlan(**common(answer), scenario=record['scenario'], steps=steps,
                        units=tuple(tuple(names) for names in answer['units']))


def score(answer: Record) -> Score:
    record = answer['record']
    return Score(**common(answer), median_error=record['median_error'],
                 worst_error=record['worst_error'])
