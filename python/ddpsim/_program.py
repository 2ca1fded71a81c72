"""What needs processes of its own: the program does it, and its answers come back as objects."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Union

from . import _arguments as arguments
from . import _prefix, results
from ._errors import DeviceError, InputError, ProgramError
from ._sources import Settings, Source, Texts, settings_of, text_of

_BAD_INPUT, _BEYOND_TOLERANCE, _MACHINE_FAILED = 2, 3, 4
_Path = Union[str, 'os.PathLike[str]']


def call(*arguments: str, quiet: bool = True) -> str:
    """What the program prints to stdout. Throws InputError, DeviceError or ProgramError with
    what it says."""
    done = subprocess.run([_prefix.program(), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode in (0, _BEYOND_TOLERANCE):
        return done.stdout
    said = (done.stderr or '').strip().splitlines()
    text = said[-1].removeprefix('ddpsim: ') if said else f'ended with {done.returncode}'
    if done.returncode == _BAD_INPUT:
        raise InputError.of_text(text)
    raise (DeviceError if done.returncode == _MACHINE_FAILED else ProgramError)(text)


@contextlib.contextmanager
def _as_file(source: Source) -> Iterator[Callable[..., str]]:
    """`call`, of the program with this scenario: the words after its file follow. Objects are
    written into a folder of their own, whose name the program's lines do not show."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-') as folder:
        def keep(path: str, text: str) -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            pathlib.Path(path).write_text(text, encoding='utf-8')
        texts = Texts(keep, aside=folder)
        file = texts.of(source)

        def shown(text: str) -> str:
            for path, name in texts.names.items():
                text = text.replace(path, name)
            for here in texts.folders:  # of a file that is missing where its name starts from
                text = text.replace(os.path.join(folder, ''), os.path.join(here, ''))
            return text

        def asked(command: str, *words: str) -> str:
            try:
                return shown(call(command, file, *words))
            except InputError as problem:
                raise InputError.of_text(shown(str(problem))) from None
        yield asked


def _flags(settings: Settings | None, flags: Mapping[str, Any]) -> list[str]:
    """`bucket_cap=...` becomes --bucket-cap; True is a flag without a value."""
    words = []
    for key, value in settings_of(settings):
        words += ['--set', f'{key}={value}']
    for name, value in flags.items():
        flag = '--' + name.replace('_', '-')
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, text_of(value, name)]
    return words


def _measurement(record: Any, rows: Sequence[results.Row], text: str) -> results.Measurement:
    return results.Measurement(record=record, notes=(), _rows=tuple(rows), _text=text,
                               _summary=text)


def validate(scenario: Source, *, backend: str = 'gloo', ranks: int = 2,
             set: Settings | None = None, **flags: Any) -> results.Measurement:
    """Runs the same schedules for real, in processes of this machine, and holds both against each
    other. The other arguments are the flags of `ddpsim validate`."""
    words = ['--backend', arguments.text('backend', backend), '--ranks',
             arguments.text_or_number('ranks', ranks), *_flags(set, flags)]
    with _as_file(scenario) as asked, tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, 'validate.json')
        text = asked('validate', '--json', place, *words)
        record = json.loads(pathlib.Path(place).read_text(encoding='utf-8'))
    rows = [{'strategy': each['strategy'], 'bucket_cap_bytes': each['bucket_cap_bytes'],
             'predicted_step_ms': each['predicted']['step_ms'],
             'measured_step_ms': each['measured']['step_ms'], 'error': each['error']['step_ms']}
            for each in record['results']]
    return _measurement(record, rows, text)


def calibrate(output: str | os.PathLike[str], *, backend: str = 'gloo', ranks: int = 2,
              **flags: Any) -> str:
    """Measures this machine into a calibration's file, and returns what the program says."""
    return call('calibrate', '-o', arguments.path('output', output), '--backend',
                arguments.text('backend', backend), '--ranks',
                arguments.text_or_number('ranks', ranks), *_flags(None, flags))


def import_profile(kind: str, file: Union[_Path, Sequence[_Path]], output: str, **flags: Any,
                   ) -> results.Measurement:
    """Turns a trace or log of another program ('torch-trace', 'nccl-tests', 'torch-profile') into a
    profile, the file `output`. Several files are traces of ranks of one job: `record['lateness']`
    says who comes late to which all-reduce."""
    files = [file] if isinstance(file, (str, os.PathLike)) else file
    if not isinstance(files, Sequence) or isinstance(files, (bytes, bytearray)):
        raise arguments.refused('file', 'the path of a file, or a list of such', file)
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, 'imported.json')
        text = call('import', arguments.text('kind', kind),
                    *(arguments.path('file', each) for each in files), '-o',
                    arguments.path('output', output), '--json', place, *_flags(None, flags))
        record = json.loads(pathlib.Path(place).read_text(encoding='utf-8'))
    return _measurement(record, (), text)


def list_backends() -> results.Listing:
    """What can run schedules for real on this machine, and what the others miss."""
    text = call('backends')
    rows = json.loads(call('backends', '--json', '-'))
    return results.Listing(record=rows, notes=(), _rows=tuple(rows), _text=text, _summary=text)


def main() -> None:
    """`python -m ddpsim`: the program itself takes this process over."""
    program = _prefix.program()
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])
