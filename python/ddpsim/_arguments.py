"""What is given to a question, checked before the program sees it. All that is wrong with it is an
InputError, which names the argument and says what was expected."""
from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

from ._errors import InputError

_DEEPEST = 100    # lists and dicts within one another
_LONGEST = 60     # characters of a value that an error shows
_LARGEST_INT = 2**31 - 1


def refused(where: str, expected: str, value: object) -> InputError:
    """The error of an argument or a key, `where`."""
    return InputError(f'{where}: expected {expected}, got {shown(value)}')


def shown(value: object) -> str:
    """A value as an error shows it, on one line."""
    if isinstance(value, (dict, list, set, frozenset, tuple)):
        return f'a {type(value).__name__}'
    text = ' '.join(repr(value).split())
    if value is None or isinstance(value, (str, bytes, int, float, complex)):
        return text if len(text) <= _LONGEST else text[:_LONGEST] + '...'
    return f'a {type(value).__name__}'


def whole(where: str, value: Any, least: int = -_LARGEST_INT, most: int = _LARGEST_INT) -> int:
    """A whole number, Python's or numpy's."""
    expected = 'a whole number'
    if least > -_LARGEST_INT:
        expected += f' from {least} to {most}'
    try:
        number = operator.index(value)
    except TypeError:
        raise refused(where, expected, value) from None
    if isinstance(value, bool) or not least <= number <= most:
        raise refused(where, expected, value)
    return number


def whole_or_none(where: str, value: Any) -> int | None:
    return None if value is None else whole(where, value)


def text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refused(where, 'a text', value)
    return encodable(where, value)


def text_or_number(where: str, value: Any) -> str:
    """As a flag of the program has it: '1%', 0.01."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise refused(where, 'a text or a number', value)
    return encodable(where, str(value))


def encodable(where: str, value: str) -> str:
    """A text that UTF-8 can write: half of a pair of UTF-16 is none."""
    try:
        value.encode('utf-8')
    except UnicodeEncodeError:
        raise refused(where, 'text that UTF-8 can write', value) from None
    return value


def progress(value: Any) -> Any:
    if value is None or isinstance(value, bool) or callable(value):
        return value
    raise refused('progress', 'a function of (what, fraction), None or False', value)


def path(where: str, value: Any) -> str:
    """The path of a file, which may be missing."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise refused(where, 'the path of a file', value)
    found = encodable(where, os.fspath(value))
    try:
        os.stat(found)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # whoever opens it says so
    except (OSError, ValueError) as problem:
        reason = getattr(problem, 'strerror', None) or str(problem)
        raise InputError(f'{where}: {shown(found)}: {reason}') from None
    return found


def mapping(where: str, expected: str, value: Any) -> Mapping[str, Any]:
    """A dict whose keys are texts."""
    if not isinstance(value, Mapping):
        raise refused(where, expected, value)
    for key in value:
        if not isinstance(key, str):
            raise refused(where, 'keys that are texts', key)
    return value


def plain(where: str, value: Any, other: Callable[[Any], Any] | None = None,
          outer: tuple[Any, ...] = ()) -> Any:
    """A value as JSON has it, numpy's numbers and arrays as Python's, paths as texts. `other` is
    asked first about what is not JSON's own; it returns None for what it does not know."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return encodable(where, value)
    if isinstance(value, os.PathLike):
        return os.path.abspath(path(where, value))
    if any(value is each for each in outer):
        raise InputError(f'{where}: a {type(value).__name__} contains itself')
    if len(outer) > _DEEPEST:
        raise InputError(f'{where}: more than {_DEEPEST} lists and dicts within one another')
    outer = (*outer, value)
    if isinstance(value, Mapping):
        return {_key(where, key): plain(f'{where}.{key}' if where else str(key), each, other,
                                        outer)
                for key, each in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(where, each, other, outer) for each in value]
    known = other(value) if other else None
    if known is not None:
        return known
    if callable(getattr(value, 'tolist', None)):
        return plain(where, value.tolist(), other, outer)
    raise refused(where or 'the scenario', 'texts, numbers, lists and dicts', value)


def _key(where: str, key: Any) -> str:
    if isinstance(key, (str, int)) and not isinstance(key, bool):
        return encodable(where, str(key))
    raise refused(where or 'the scenario', 'keys that are texts', key)
