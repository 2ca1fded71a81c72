"""What goes wrong, as exceptions."""
from __future__ import annotations

import re

# "scenarios/first.yaml:14:16: cluster.nodes: expected ..."
_PLACE = re.compile(r'(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?P<problem>.*)', re.DOTALL)
_MISSING = re.compile(r'(?P<file>\S.*): (?:no such file|not a file|cannot be read)')
# The name of a text in memory (_sources.py) in place of a file's.
_IN_MEMORY = re.compile(
    r"(?:(?:/[^/:\"']+)*/)?\.ddpsim-object-\d+(?:\.yaml|/[\w.-]+\.yaml)")


class InputError(ValueError):
    """What the user gave is wrong. The text is one line, as the program prints it.

    `file`, `line` and `column` say where it stands, `line` and `column` counted from 1; they are
    None where it stands in no file, such as in a dict.
    """

    def __init__(self, text: str, file: str | None = None, line: int | None = None,
                 column: int | None = None) -> None:
        super().__init__(text)
        self.file = file
        self.line = line
        self.column = column

    @classmethod
    def of_text(cls, text: str) -> InputError:
        """The error of a line that the program would print."""
        found = _PLACE.match(text)
        missing = _MISSING.fullmatch(text)
        if missing is not None and _IN_MEMORY.search(text) is None:
            return cls(text, missing['file'])
        if found is None:
            return cls(_IN_MEMORY.sub('the scenario', text))
        if _IN_MEMORY.fullmatch(found['file']):
            return cls(_IN_MEMORY.sub('the scenario', found['problem']))
        return cls(text, found['file'], int(found['line']), int(found['column']))


class ProgramError(RuntimeError):
    """The program ddpsim, run for something that needs processes of its own, has failed."""


class DeviceError(ProgramError):
    """The machine has failed, not the input: a file cannot be written (a full disk, missing
    permission, another process that writes it), or a device, a link or a rank is lost. The program
    ends with exit code 4 then."""
