"""What is said to whoever profiles, and the errors that end a profile."""
import sys

from .._text import one_line

KIB, MIB = 1 << 10, 1 << 20


class ProfileError(Exception):
    """Bad input, in one line."""


class RankError(Exception):
    """The other ranks cannot be reached."""


def first_line(problem):
    said = str(problem).strip().splitlines()
    return said[0][:200] if said else type(problem).__name__


def note(text):
    print(f'ddpsim.profile: {one_line(text)}', file=sys.stderr)


def plural(count, what):
    return f'{count} {what}' if count == 1 else f'{count} {what}s'
