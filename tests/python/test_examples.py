"""The examples run, from any folder."""
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'scenarios/examples/python'


@pytest.mark.parametrize('name, said', [
    ('predict.py', 'exposed communication in 13 buckets'),
    ('tune.py', "DistributedDataParallel arguments: {'bucket_cap_mb'"),
    ('what_if.py', '200 steps in'), ('sweep.py', 'rows, median error'),
    ('describe_vit.py', 'b200'), ('profile_mlp.py', 'DistributedDataParallel(model, **')])
def test_an_example_runs(name, said, tmp_path):
    if name.startswith(('describe', 'profile')):
        pytest.importorskip('torch', reason='NOT RUN: no torch')
        pytest.importorskip('ddpsim.describe', reason='NOT RUN: no ddpsim.describe in this wheel')
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True,
                          cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout, done.stdout


def test_every_example_is_run():
    assert {file.name for file in EXAMPLES.glob('*.py')} == {
        'predict.py', 'tune.py', 'what_if.py', 'sweep.py', 'describe_vit.py', 'profile_mlp.py'}
