#!/usr/bin/env python3
"""Refuses lines of code that are too long, comments included: FILE:LINE for each.

    tests/docs/check_lines.py [ROOT]      ROOT: a source tree; default: the one around this script

A line holds at most 100 columns. Code is C++ and CUDA, Python, shell and CMake; a file without a
suffix counts if it begins with "#!". Data (YAML, CSV, JSON) is measured or made by programs and may
be as wide as it likes; lines of documents are held by check_documents.py.

Exit code: 0; 1 if a line is too long; 2 for a wrong call.
"""
import os
import pathlib
import sys

WIDTH = 100
SUFFIXES = ('.cpp', '.hpp', '.h', '.cu', '.cuh', '.py', '.sh', '.cmake')
# What is built or fetched lies in folders of these names.
LEFT_OUT = {'build', '__pycache__'}


def is_code(file):
    if file.suffix:
        return file.suffix in SUFFIXES or file.name == 'CMakeLists.txt'
    with open(file, 'rb') as stream:
        return stream.read(2) == b'#!'


def code(root):
    """All files of code below `root`, in order."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders
                            if name not in LEFT_OUT and not name.startswith('.git'))
        for name in sorted(names):
            file = pathlib.Path(folder, name)
            if file.is_file() and is_code(file):
                yield file


def long_lines(root):
    """Yields FILE:LINE: what is wrong."""
    for file in code(root):
        for number, line in enumerate(file.read_text(encoding='utf-8').split('\n'), 1):
            if len(line) > WIDTH:
                yield f'{file.relative_to(root)}:{number}: {len(line)} columns, at most {WIDTH}'


def main():
    here = pathlib.Path(__file__).resolve().parent.parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else here
    if len(sys.argv) > 2 or not root.is_dir():
        print(f'usage: {sys.argv[0]} [ROOT]', file=sys.stderr)
        return 2
    wrong = list(long_lines(root))
    print('\n'.join(wrong) if wrong else 'all lines of code are short enough')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
