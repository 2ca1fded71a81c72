"""What a question is about: a path, a dict, or an object that knows its own text."""
from __future__ import annotations

import itertools
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Union, runtime_checkable

from . import _native, _prefix
from . import _arguments as arguments
from ._errors import InputError


@runtime_checkable
class HasText(Protocol):
    """A workload that was described or profiled: its text is that of the file it would be saved
    in."""

    def text(self) -> str: ...


Settings = Mapping[str, Any]
"""Keys of a scenario by their dotted path, with values as YAML has them: {'cluster.nodes': 8}."""

Source = Union[str, 'os.PathLike[str]', Mapping[str, Any], HasText]
"""A scenario or a workload: the path of its file, a dict of its keys, or an object with a text."""

EXPECTED = ('the path of a scenario or a workload, a dict of its keys, or what ddpsim.describe '
            'returns')

_prefix.use_own_catalogue()  # before anything is read

# Numbers for texts in memory, each given once: workers may hold texts of several processes at once.
_numbers = itertools.count(secrets.randbits(40) << 20)


class Scenario(dict[str, Any]):
    """The keys of a scenario as they stand in its file, to be changed and asked about.

    `folder` is where the paths in it start from.
    """

    def __init__(self, keys: Mapping[str, Any], folder: str = '.') -> None:
        super().__init__(keys)
        self.folder = folder


def text_of(value: Any, where: str = 'a value') -> str:
    """A value as `--set KEY=VALUE` takes it."""
    if isinstance(value, str):
        return arguments.encodable(where, value)
    if isinstance(value, os.PathLike):
        return _quoted(arguments.path(where, value))
    return json.dumps(arguments.plain(where, value), ensure_ascii=False)


def _quoted(path: str) -> str:
    return "'" + os.path.abspath(path).replace("'", "''") + "'"


def settings_of(settings: Settings | None) -> list[tuple[str, str]]:
    if settings is None:
        return []
    arguments.mapping('set', "a dict such as {'cluster.nodes': 8}", settings)
    return [(arguments.encodable('set', key), text_of(value, f'set {key}'))
            for key, value in settings.items()]


def cluster_settings(cluster: Any = None, nodes: int | None = None,
                     ranks_per_node: int | list[int] | None = None, ranks: int | None = None,
                     device: Any = None) -> list[tuple[str, str]]:
    """What the flags of the same names say, as settings."""
    settings = []
    if cluster is not None:
        is_file = isinstance(cluster, (str, os.PathLike)) and os.path.isfile(cluster)
        settings.append(('cluster', _quoted(arguments.path('cluster', cluster)) if is_file else
                         text_of(cluster, 'cluster')))
    for key, value in (('ranks', ranks), ('nodes', nodes), ('ranks_per_node', ranks_per_node),
                       ('device', device)):
        if value is not None:
            settings.append(('cluster.' + key, text_of(value, key)))
    return settings


def all_settings(given: Settings | None, cluster: Any = None, nodes: int | None = None,
                 ranks_per_node: int | list[int] | None = None, ranks: int | None = None,
                 device: Any = None) -> list[tuple[str, str]]:
    """The settings that the arguments stand for, then those of `set`. Throws InputError where the
    two give one key two values."""
    flags = cluster_settings(cluster, nodes, ranks_per_node, ranks, device)
    settings = settings_of(given)
    within = [(f'{key}.{inner}', text_of(value, f'set {key}'))
              for key, whole in (given or {}).items() if isinstance(whole, Mapping)
              for inner, value in whole.items()]
    for key, value in flags:
        for other, of_set in settings + within:
            if other == key and of_set != value:
                name = key.rpartition('.')[2]
                raise InputError(f'{name}={value} and set={{{key!r}: {of_set}}} give {key} two '
                                 'values: leave one of them out')
    return flags + settings


class Texts:
    """Texts that stand in place of files: `keep` is given the path and the text of each. `names`
    has what a person calls each such path.

    `aside`: the folder that all of them go to, where they do not stand beside the files that they
    name; the paths in them are then absolute.
    """

    def __init__(self, keep: Callable[[str, str], None], aside: str | None = None) -> None:
        self._keep, self._aside = keep, aside
        self.names: dict[str, str] = {}
        self.folders: list[str] = []  # that paths in the texts start from

    def of(self, source: Source) -> str:
        """The path under which the program reads it. Throws InputError."""
        if isinstance(source, (str, os.PathLike)):
            return arguments.path('the scenario', source)
        number = next(_numbers)
        if isinstance(source, Mapping):
            folder = os.path.abspath(getattr(source, 'folder', '') or '.')
            self.folders.append(folder)
            keys = arguments.plain('', source, self._of_object)
            if 'format' not in keys:
                keys.setdefault('name', 'scenario')
            if self._aside:
                keys = _with_absolute_paths(keys, folder)
            path = os.path.join(self._aside or folder, f'.ddpsim-object-{number}.yaml')
            return self._kept(path, json.dumps(keys, ensure_ascii=False),
                              str(keys.get('name', 'the workload')))
        path_of_object = self._of_object(source, number)
        if path_of_object is None:
            raise arguments.refused('the scenario', EXPECTED, source)
        return path_of_object

    def _of_object(self, value: Any, number: int | None = None) -> str | None:
        """The path of an object with a text; None for others."""
        if not isinstance(value, HasText):
            return None
        text = value.text() if callable(value.text) else None
        if not isinstance(text, str):
            raise arguments.refused('the scenario', EXPECTED, value)
        name = str(getattr(value, 'model', '') or 'workload')
        file = ''.join(c if c.isalnum() or c in '._-' else '_' for c in name)[:100]
        path = os.path.join(self._aside or os.path.abspath('.'),
                            f'.ddpsim-object-{number or next(_numbers)}', file + '.yaml')
        return self._kept(path, text, name)

    def _kept(self, path: str, text: str, name: str) -> str:
        self._keep(path, text)
        self.names[path] = name
        return path


def _with_absolute_paths(value: Any, folder: str) -> Any:
    """`value` with an absolute path in place of every text that names a file relative to `folder`.
    """
    if isinstance(value, dict):
        return {key: _with_absolute_paths(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_absolute_paths(each, folder) for each in value]
    if isinstance(value, str) and '.' in value and len(value) < 4096 and '\0' not in value:
        path = os.path.join(folder, value)
        return path if os.path.isfile(path) else value
    return value


def ask(command: str, progress: Any = False, **named: Any) -> str:
    """The answer of the compiled module, which takes what is asked as JSON."""
    return _native.ask(json.dumps({'command': command, **named}, ensure_ascii=False), progress)


class Asked:
    """Sources as the program reads them, those that are no paths as texts that stand in place of
    files; and what it answers about them."""

    def __init__(self, sources: tuple[Source, ...], settings: list[tuple[str, str]],
                 laws_only: bool) -> None:
        memory: dict[str, str] = {}
        self._texts = Texts(memory.__setitem__)
        self.files = [self._texts.of(source) for source in sources]
        self._about = {'files': self.files, 'memory': memory, 'set': settings,
                       'laws_only': bool(laws_only)}

    def request(self, **named: Any) -> str:
        return json.dumps({**self._about, **named}, ensure_ascii=False)

    def ask(self, command: str, progress: Any, **named: Any) -> Any:
        """The answer, as an object."""
        return self.answer(ask(command, progress, **self._about, **named))

    def answer(self, text: str) -> Any:
        """The JSON of an answer as an object. Where it names a text in memory, it has what a person
        calls that."""
        said = json.loads(text)
        for path, name in self._texts.names.items():
            if re.search(_perhaps_wrapped(path, r'\\n'), text):
                said = _renamed(said, re.compile(_perhaps_wrapped(path, '\n')), name)
        return said


def _perhaps_wrapped(path: str, line_end: str) -> str:
    """Matches a path that a page may have broken into lines, as any long word."""
    return f'(?:{line_end})?'.join(map(re.escape, path))


def _renamed(value: Any, path: re.Pattern[str], name: str) -> Any:
    if isinstance(value, str):
        return path.sub(lambda _: name, value)
    if isinstance(value, list):
        return [_renamed(each, path, name) for each in value]
    if isinstance(value, dict):
        return {key: _renamed(each, path, name) for key, each in value.items()}
    return value


def question(source: Source, settings: list[tuple[str, str]], laws_only: bool = False) -> Asked:
    """What is asked about one scenario or workload."""
    if not isinstance(source, (str, os.PathLike, Mapping)) and not any(
            key == 'name' for key, _ in settings):
        name = str(getattr(source, 'model', '') or 'workload')
        settings = [('name', json.dumps(name, ensure_ascii=False)), *settings]
    return Asked((source,), settings, laws_only)
