"""Runs Python programs that import torch, each in a fork of one process that has imported it: seconds less for each.

    python3 forks.py PROGRAMS.json

PROGRAMS is a list of {"words": [script, argument...], "environment": {name: value}}; printed is a list of {"code", "out", "err"}.
"""
import json
import os
import runpy
import sys
import tempfile
import traceback

import torch  # for the forks


def become(words, environment, out, err):
    """Never returns."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    os.environ.update(environment)
    sys.argv, code = words, 0
    sys.path[0] = os.path.dirname(words[0])
    try:
        runpy.run_path(words[0], run_name='__main__')
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def outcome(words, environment):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            become(words, environment, out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = [file.seek(0) or file.read().decode() for file in (out, err)]
    return {'code': code, 'out': said[0], 'err': said[1]}


with open(sys.argv[1]) as file:
    programs = json.load(file)
json.dump([outcome(program['words'], program['environment']) for program in programs], sys.stdout)
