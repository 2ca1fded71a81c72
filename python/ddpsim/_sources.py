"""What a question is about: a path, a dict, or an object that knows its own text."""
from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Union, runtime_checkable

from . import _native, _prefix


@runtime_checkable
class HasText(Protocol):
    """A workload that was described or profiled: its text is that of the file it would be saved
    in."""

    def text(self) -> str: ...


Settings = Mapping[str, Any]
"""Keys of a scenario by their dotted path, with values as YAML has them: {'cluster.nodes': 8}."""

Source = Union[str, 'os.PathLike[str]', Mapping[str, Any], HasText]
"""A scenario or a workload: the path of its file, a dict of its keys, or an object with a text."""

_prefix.use_own_catalogue()  # before anything is read

_numbers = itertools.count(1)


class Scenario(dict[str, Any]):
    """The keys of a scenario as they stand in its file, to be changed and asked about.

    `folder` is where the paths in it start from.
    """

    def __init__(self, keys: Mapping[str, Any], folder: str = '.') -> None:
        super().__init__(keys)
        self.folder = folder


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's; a path as a text."""
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if hasattr(value, 'item') and not isinstance(value, (int, float)):
        return value.item()
    return value


def text_of(value: Any) -> str:
    """A value as `--set KEY=VALUE` takes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return "'" + str(os.path.abspath(value)).replace("'", "''") + "'"
    return json.dumps(_plain(value), ensure_ascii=False, default=_plain)


def settings_of(settings: Settings | None) -> list[tuple[str, str]]:
    return [(key, text_of(value)) for key, value in (settings or {}).items()]


def cluster_settings(cluster: Any = None, nodes: int | None = None,
                     ranks_per_node: int | None = None, ranks: int | None = None,
                     device: Any = None) -> list[tuple[str, str]]:
    """What the flags of the same names say, as settings."""
    settings = []
    if cluster is not None:
        is_file = not isinstance(cluster, Mapping) and os.path.isfile(cluster)
        quoted = "'" + os.path.abspath(cluster).replace("'", "''") + "'" if is_file else ''
        settings.append(('cluster', quoted or text_of(cluster)))
    for key, value in (('ranks', ranks), ('nodes', nodes), ('ranks_per_node', ranks_per_node),
                       ('device', device)):
        if value is not None:
            settings.append(('cluster.' + key, text_of(value)))
    return settings


class _Texts:
    """Texts in memory that stand in place of files, while this object lives."""

    def __init__(self) -> None:
        self.kept: list[_native.MemoryFile] = []

    def of(self, source: Source, folder: str = '') -> str:
        """The path under which the program reads it."""
        if isinstance(source, (str, os.PathLike)):
            return os.fspath(source)
        number = next(_numbers)
        if isinstance(source, Mapping):
            folder = os.path.abspath(getattr(source, 'folder', folder) or '.')
            keys = self._without_objects(source)
            if 'format' not in keys:
                keys.setdefault('name', 'scenario')
            path = os.path.join(folder, f'.ddpsim-object-{number}.yaml')
            text = json.dumps(keys, ensure_ascii=False, default=_plain)
        else:
            name = str(getattr(source, 'model', '') or 'workload')
            name = ''.join(c if c.isalnum() or c in '._-' else '_' for c in name)
            path = os.path.join(os.path.abspath('.'), f'.ddpsim-object-{number}', name + '.yaml')
            text = source.text()
        self.kept.append(_native.MemoryFile(path, text))
        return path

    def _without_objects(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): self._without_objects(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._without_objects(each) for each in value]
        return self.of(value) if isinstance(value, HasText) else _plain(value)


@contextlib.contextmanager
def files(*sources: Source) -> Iterator[list[str]]:
    """The paths under which the program reads them, within the `with`."""
    texts = _Texts()
    try:
        yield [texts.of(source) for source in sources]
    finally:
        texts.kept.clear()


@contextlib.contextmanager
def question(source: Source, settings: list[tuple[str, str]],
             laws_only: bool = False) -> Iterator[_native.Question]:
    with files(source) as (file,):
        if isinstance(source, HasText) and not any(key == 'name' for key, _ in settings):
            name = str(getattr(source, 'model', '') or 'workload')
            settings = [('name', json.dumps(name)), *settings]
        yield _native.Question(file, settings, laws_only)
