"""Where the program and its catalogue are: below the prefix that this package is installed in."""
from __future__ import annotations

import functools
import os
import pathlib
import shutil

from . import _native


@functools.lru_cache(maxsize=None)
def prefix() -> pathlib.Path | None:
    """The folder with bin/ddpsim and share/ddpsim; None where the package is used from a source
    tree."""
    module = pathlib.Path(_native.__file__).resolve()
    for folder in list(module.parents)[:6]:
        if (folder / 'share/ddpsim/catalogue').is_dir():
            return folder
    return None


def program() -> str:
    """The path of the program ddpsim. Throws FileNotFoundError."""
    found = prefix()
    for candidate in ([found / 'bin/ddpsim'] if found else []):
        if os.access(candidate, os.X_OK):
            return str(candidate)
    elsewhere = shutil.which('ddpsim')
    if elsewhere is None:
        raise FileNotFoundError('there is no program ddpsim, neither beside this package nor on '
                                'PATH')
    return elsewhere


def use_own_catalogue() -> None:
    """$DDPSIM_CATALOGUE goes before it."""
    found = prefix()
    if found is not None:
        _native.use_catalogue(str(found / 'share/ddpsim/catalogue'))
