"""What cannot be described is one line that names the module and the line of the model."""
import argparse
import contextlib
import io
import os
import pathlib
import runpy
import subprocess
import sys
import sysconfig
import textwrap

import pytest
import yaml
from describe_models import torch  # noqa: F401 (skips the file where there is no torch)

SETTINGS = {**os.environ, 'PYTHONPATH': os.pathsep.join(p for p in sys.path if p)}


def run(*words, where, settings=SETTINGS):
    return subprocess.run([sys.executable, '-W', 'ignore', '-m', 'ddpsim.describe', *words],
                          text=True, capture_output=True, cwd=where, env=settings)


@pytest.fixture
def described(monkeypatch):
    """As `run`, within this process, which has imported torch already."""
    def call(*words, where):
        monkeypatch.chdir(where)
        monkeypatch.setattr(sys, 'argv', ['ddpsim.describe', *words])
        monkeypatch.setattr(sys, 'path', sys.path.copy())
        monkeypatch.delitem(sys.modules, 'my_model', raising=False)
        monkeypatch.delitem(sys.modules, 'ddpsim.describe.__main__', raising=False)
        code = 0
        with (contextlib.redirect_stdout(io.StringIO()) as out,
              contextlib.redirect_stderr(io.StringIO()) as err):
            try:
                runpy.run_module('ddpsim.describe', run_name='__main__')
            except SystemExit as ending:
                code = ending.code
        sys.modules.pop('my_model', None)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
    return call


@pytest.fixture
def file(tmp_path):
    """Writes my_model.py, whose model's forward is `forward`."""
    def write(forward, extra=''):
        (tmp_path / 'my_model.py').write_text(textwrap.dedent('''\
            import torch

            class Body(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.linear = torch.nn.Linear(4, 4)

                def forward(self, x):
                    {forward}

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.body = Body()

                def forward(self, x):
                    return self.body(x).sum()

            {extra}

            def make(batch=2):
                return Model(), torch.randn(batch, 4)
            ''').format(forward=forward, extra=extra))
        return tmp_path
    return write


def one_line(result):
    assert result.returncode == 2, result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and 'Traceback' not in result.stderr, result.stderr
    return lines[0]


@pytest.mark.parametrize('forward, op', [
    ('return x * self.linear(x).sum().item()', 'aten._local_scalar_dense'),
    ('return self.linear(x) if x.sum() > 0 else x', 'aten._local_scalar_dense'),
    ('return self.linear(x)[(x > 0).nonzero()]', 'aten.nonzero'),
    ('return self.linear(x)[x > 0]', 'aten.nonzero'),
    ('return torch.unique(self.linear(x))', 'aten._unique2'),
])
def test_code_that_needs_values_is_one_line(file, described, forward, op):
    line = one_line(described('my_model.py:make', where=file(forward)))
    assert 'needs the values of a tensor' in line
    assert 'describe: body: my_model.py:9: ' in line


SCHEDULED = '''
def scheduled():
    model, batch = make()
    optimizer = torch.optim.AdamW(model.parameters())
    return model, batch, None, torch.optim.lr_scheduler.StepLR(optimizer, 10)
'''
UNKNOWN = '''
@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)

twice.register_autograd(lambda context, gradient: gradient)
'''


def test_an_operation_without_a_rule_is_one_line_or_priced_by_its_bytes(file, described):
    where = file('return torch.ops.mine.twice(self.linear(x))', UNKNOWN)
    line = one_line(described('my_model.py', where=where))
    assert 'body: my_model.py:9: no rule says what mine.twice launches' in line
    result = described('my_model.py', '--allow-unknown', '-o', 'out.yaml', where=where)
    assert result.returncode == 0, result.stderr
    written = yaml.safe_load((where / 'out.yaml').read_text())
    assert written['partial'] == ['mine.twice x 1']
    entry = next(k for k in written['kernels'] if k['op'] == 'mine.twice')
    assert (entry['read'], entry['written'], entry['launches']) == (32, 32, 1)
    assert 'partial: mine.twice x 1' in result.stderr


def test_products_are_in_tf32_where_the_command_is_told_so(file, described):
    where = file('return self.linear(x)')
    result = described('my_model.py', '--tf32', 'all', '-o', 'out.yaml', where=where)
    assert result.returncode == 0, result.stderr
    kernels = yaml.safe_load((where / 'out.yaml').read_text())['kernels']
    assert {kernel['type'] for kernel in kernels if kernel['kind'] == 'gemm'} == {'tf32'}


def test_a_custom_operation_without_shapes_says_how_to_give_them(file, described):
    without = UNKNOWN.replace('@twice.register_fake', '').replace(
        'def _(x):\n    return torch.empty_like(x)', '')
    where = file('return torch.ops.mine.twice(self.linear(x))', without)
    line = one_line(described('my_model.py', where=where))
    assert 'torch.library.register_fake' in line and 'body: my_model.py:9' in line


@pytest.mark.parametrize('words, next_step', [
    ([], 'ddpsim run out.yaml --cluster dgx-h100'),
    (['--device', 'cpu'], 'ddpsim run out.yaml --link ethernet-10g --ranks 4 --device generic-cpu'),
    (['--device', 'cpu', '--autocast', 'bf16'],
     'ddpsim run out.yaml --link ethernet-10g --ranks 4 --device FILE (of a CPU that multiplies '
     'bf16)')])
def test_what_to_run_next_is_for_the_device_that_is_described(file, described, program, words,
                                                              next_step):
    where = file('return self.linear(x)')
    result = described('my_model.py', '-o', 'out.yaml', *words, where=where)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1] == f'describe: wrote out.yaml; next: {next_step}'
    if 'FILE' not in next_step:
        done = subprocess.run([program, *next_step.split()[1:]], cwd=where, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        assert ('generic-cpu' in done.stdout) == ('cpu' in words)


def test_a_scheduler_of_learning_rates_is_no_optimizer(file, described):
    where = file('return self.linear(x)', extra=textwrap.indent(SCHEDULED, ' ' * 12).strip())
    line = one_line(described('my_model.py:scheduled', where=where))
    assert 'the optimizer is a StepLR, which has no param_groups: return the optimizer' in line


def test_mistakes_of_the_model_are_one_line(file, described):
    line = one_line(described('my_model.py', where=file('return self.linear(x.t())')))
    assert line.startswith('describe: body.linear: my_model.py:9: RuntimeError')
    assert 'no such file' in one_line(described('other.py:make', where=file('return x')))
    assert 'has no function mak; it has make' in one_line(
        described('my_model.py:mak', where=file('return x')))
    assert 'does not depend on any parameter' in one_line(
        described('my_model.py', where=file('return x * 2')))


def test_wrong_words_are_one_line(file, described):
    where = file('return self.linear(x)')
    for words, said in ((('--bogus',), 'unrecognized arguments: --bogus; --help tells the flags'),
                        (('--batch', '0'), 'expected a whole number above zero, got "0"'),
                        (('--micro-batches', '4'), 'leave the flag out, and say `ddpsim run ... '
                         '--set training.micro_batches=4` for a step of 4; a later micro-batch by '
                         'itself, which adds gradients, is --later-micro-batch'),
                        (('--device', 'tpu'), "invalid choice: 'tpu'")):
        assert said in one_line(described('my_model.py', *words, where=where))
    assert 'are required: FILE.py:FUNCTION' in one_line(described(where=where))


def test_the_batch_is_handed_to_the_function(file, described):
    where = file('return self.linear(x)')
    written = yaml.safe_load(described('my_model.py:make', '--batch', '16', where=where).stdout)
    assert written['batch'] == 16


def test_the_example_of_the_help_works(tmp_path):
    text = run('--help', where=tmp_path).stdout
    start = text.index('    import torch\n')
    code = text[start:text.index('    python -m ddpsim.describe', start)]
    (tmp_path / 'my_model.py').write_text(textwrap.dedent(code))
    result = run('my_model.py:make', '-o', 'my_model.yaml', where=tmp_path)
    assert result.returncode == 0, result.stderr
    assert yaml.safe_load((tmp_path / 'my_model.yaml').read_text())['batch'] == 64


def test_help_and_import_need_no_torch(tmp_path):
    """As on a machine without torch: an import of it fails."""
    (tmp_path / 'torch.py').write_text('raise ImportError("no torch here")\n')
    settings = {**SETTINGS, 'PYTHONPATH': f'{tmp_path}{os.pathsep}{SETTINGS["PYTHONPATH"]}'}
    assert run('--help', where=tmp_path, settings=settings).returncode == 0
    program = 'import ddpsim.describe as d; print(d.Workload.__name__, callable(d.describe))'
    said = subprocess.run([sys.executable, '-c', program], text=True, capture_output=True,
                          env=settings, check=True).stdout
    assert said.split() == ['Workload', 'True']
    assert 'no torch' in one_line(run('my_model.py', where=tmp_path, settings=settings))
    (tmp_path / 'torch.py').write_text('__version__ = "2.5.1+cu124"\n')
    assert 'PyTorch 2.6 or later is needed; this is 2.5.1' in one_line(
        run('my_model.py', where=tmp_path, settings=settings))


def test_the_program_tells_every_flag():
    from ddpsim.describe.__main__ import parser
    told = subprocess.run([pathlib.Path(sysconfig.get_path('scripts'), 'ddpsim'), 'describe',
                           '--help'], text=True, capture_output=True, check=True).stdout
    for action in parser()._actions:
        if action.help != argparse.SUPPRESS:  # refused, with what to write
            assert action.option_strings[-1:] == [] or action.option_strings[-1] in told


def test_autocast_is_named_as_the_command_names_it():
    from ddpsim.describe import DescribeError, describe
    model, batch = torch.nn.Linear(4, 4), (torch.zeros(2, 4),)

    def loss(model, batch):
        return model(batch[0]).sum()

    texts = [describe(model, batch, loss, autocast=given).text()
             for given in ('bf16', torch.bfloat16)]
    assert texts[0] == texts[1] and texts[0] != describe(model, batch, loss).text()
    for wrong in ('bfloat16', True, 16, torch.float64):
        with pytest.raises(DescribeError, match='^autocast: unknown type .*; known: '):
            describe(model, batch, loss, autocast=wrong)
