#!/usr/bin/env python3
"""Refuses C++ and CUDA that clang-format would write otherwise (.clang-format): FILE:LINE for each.

    tests/docs/check_format.py            `clang-format-14 -i FILE` mends a file

Exit code: 0; 1 if a file is formatted otherwise; 77 without clang-format 14.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

import check_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUFFIXES = ('.cpp', '.hpp', '.h', '.cu', '.cuh')
TOGETHER = 40
NOT_RUN = 77


def complaints(program, files):
    """A line for each place, without the text that stands there."""
    done = subprocess.run([program, '--dry-run', '--style=file', *files], capture_output=True,
                          text=True, check=False, cwd=ROOT)
    return [line for line in done.stderr.splitlines() if 'warning: ' in line or 'error: ' in line]


def main():
    program = shutil.which('clang-format-14')
    if program is None:
        print('NOT RUN: no clang-format-14')
        return NOT_RUN
    files = [str(file.relative_to(ROOT)) for file in check_lines.code(ROOT)
             if file.suffix in SUFFIXES]
    if not files:
        print(f'{ROOT}: no C++ here')
        return 1
    parts = [files[at:at + TOGETHER] for at in range(0, len(files), TOGETHER)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [line for lines in pool.map(lambda part: complaints(program, part), parts)
                 for line in lines]
    print('\n'.join(wrong) if wrong else f'{len(files)} files are as clang-format writes them')
    if wrong:
        print('clang-format-14 -i FILE mends a file')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
