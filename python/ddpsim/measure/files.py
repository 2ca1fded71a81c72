"""The files. Each text is quoted as JSON has it, which YAML reads; a file is written whole, then
renamed, so that one that was interrupted holds what had been measured by then."""
import json
import platform

from .._files import unsealed
from .._files import write as write_whole
from .errors import MeasureError

WRITTEN_BY = 'ddpsim.measure'


def quoted(text):
    """YAML's double quotes take JSON's escapes."""
    return json.dumps(str(text))


def write(path, text):
    try:
        write_whole(path, text)
    except OSError as problem:
        raise MeasureError(f'--output: {path}: {problem.strerror}') from None


def read(path, flag):
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise MeasureError(f'{flag}: {path}: {getattr(problem, "strerror", None) or problem}'
                           ) from None
    try:
        return unsealed(text)
    except ValueError as problem:
        raise MeasureError(f'{flag}: {path}: {problem}; copy it or make it again, or, if you '
                           'changed it on purpose, remove the comment of that line') from None


def top_level(text):
    """The keys of a file of ours that hold a text or a number, on a line each."""
    values = {}
    for line in text.splitlines():
        key, colon, value = line.partition(': ')
        if not colon or not key.isidentifier():
            continue
        try:
            values[key] = json.loads(value)
        except ValueError:
            values[key] = value
    return values


def processor():
    try:
        with open('/proc/cpuinfo') as file:
            for line in file:
                if line.startswith('model name'):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
