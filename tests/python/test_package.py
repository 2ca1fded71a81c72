"""The wheel as it was installed."""
import ast
import importlib.metadata
import inspect
import pathlib
import shutil
import subprocess
import sys

import pytest

import ddpsim

PACKAGE = pathlib.Path(ddpsim.__file__).parent


def python(*lines):
    return subprocess.run([sys.executable, '-c', '\n'.join(lines)], capture_output=True, text=True,
                          cwd='/', check=False)


def test_the_program_is_native_and_of_the_same_version(program):
    assert program.read_bytes()[:4] == b'\x7fELF'
    done = subprocess.run([program, '--version'], capture_output=True, text=True, check=True)
    assert done.stdout == f'ddpsim {importlib.metadata.version("ddpsim")}\n'
    module = subprocess.run([sys.executable, '-m', 'ddpsim', '--version'], capture_output=True,
                            text=True, check=True)
    assert module.stdout == done.stdout


def test_the_catalogue_is_that_of_the_wheel(program, tmp_path):
    """Held in a copy: others read the installed one meanwhile."""
    (tmp_path / 'bin').mkdir()
    own = shutil.copy(program, tmp_path / 'bin/ddpsim')
    shutil.copytree(program.parents[1] / 'share/ddpsim', tmp_path / 'share/ddpsim')
    shutil.copytree(PACKAGE, tmp_path / 'lib/ddpsim')
    new = tmp_path / 'share/ddpsim/catalogue/devices/of-this-wheel.yaml'
    new.write_text((new.parent / 'a100-40.yaml').read_text())
    assert 'of-this-wheel' in subprocess.run([own, 'list', 'devices'], cwd='/', text=True,
                                             capture_output=True, check=True).stdout
    listed = python('import sys', f"sys.path.insert(0, {str(tmp_path / 'lib')!r})", 'import ddpsim',
                    "print('of-this-wheel' in ddpsim.list_devices().names())")
    assert listed.stdout == 'True\n', listed.stderr


def test_nothing_but_what_needs_it_imports_torch(scenarios):
    done = python('import sys', 'class Refuse:', '    def find_spec(self, name, *rest):',
                  "        assert name.split('.')[0] not in ('torch', 'numpy'), name",
                  'sys.meta_path.insert(0, Refuse())', 'import ddpsim',
                  f"print(ddpsim.run({str(scenarios / 'examples/first.yaml')!r}).ranks)",
                  "print(sorted(set(sys.modules) & {'torch', 'numpy'}))")
    assert done.stdout == '8\n[]\n', done.stderr


def test_capture_needs_no_compiled_module(tmp_path):
    """`python -m ddpsim.describe` works in a source tree too."""
    copy = tmp_path / 'ddpsim'
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns('_native*', '__pycache__'))
    done = subprocess.run([sys.executable, '-c', 'import ddpsim\nprint(ddpsim.__file__)\n'
                           'print(ddpsim.InputError.of_text("a:1:2: b").line)\n'
                           'try:\n    ddpsim.run\nexcept ImportError:\n    print("no module")'],
                          capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines() == [str(copy / '__init__.py'), '1', 'no module'], done.stderr


def test_users_see_its_types(tmp_path):
    pytest.importorskip('mypy', reason='NOT RUN: no mypy')
    assert (PACKAGE / 'py.typed').exists()
    user = tmp_path / 'user' / 'user.py'
    user.parent.mkdir()
    user.write_text(
        'import ddpsim\n'
        "result = ddpsim.run('scenario.yaml', set={'cluster.nodes': 8})\n"
        "reveal_type(result['bucketed'].step_ms)\n"
        "reveal_type(ddpsim.tune({}, cluster='dgx-h100', nodes=4).ddp_kwargs)\n"
        "reveal_type(ddpsim.Study('scenario.yaml').step_ms(bucket_cap='5 MiB'))\n"
        "workload = ddpsim.describe(None, None, clip_gradients=True)\n"
        'reveal_type(workload)\nreveal_type(workload.forward[0].launches)\n'
        'ddpsim.tune(workload, cluster="dgx-h100")\n'
        "reveal_type(ddpsim.profile(None, None, None))\n")
    done = subprocess.run([sys.executable, '-m', 'mypy', '--strict', '--cache-dir', str(tmp_path),
                           str(user)], capture_output=True, text=True, cwd=user.parent,
                          check=False)
    assert done.returncode == 0, done.stdout
    revealed = [line.split('"')[1].replace('builtins.', '')
                for line in done.stdout.splitlines() if 'Revealed' in line]
    assert revealed == ['float', 'dict[str, Any]', 'float', 'ddpsim.describe.Workload', 'int',
                        'pathlib.Path']


def test_stubs_say_what_there_is():
    """The names of arguments and fields, in order."""
    pytest.importorskip('torch', reason='NOT RUN: no torch')
    from ddpsim import profile
    from ddpsim.describe import kernels, layers, step, workload

    def stubs(package):
        tree = ast.parse((PACKAGE / package / '__init__.pyi').read_text())
        return {each.name: each for each in tree.body if hasattr(each, 'name')}

    def arguments(function):
        return [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    described, profiled = stubs('describe'), stubs('profile')
    assert arguments(described['describe']) == list(inspect.signature(step.describe).parameters)
    assert arguments(profiled['measured']) == list(inspect.signature(profile.measured).parameters)
    made = profiled['Profiler'].body[0]
    assert arguments(made) == ['self', *inspect.signature(profile.Profiler).parameters]
    for kind in (kernels.Gemm, kernels.Attention, kernels.Kernel, layers.Layer, workload.Parameter,
                 workload.Buffers, workload.Workload):
        fields = [each.target.id for each in described[kind.__name__].body
                  if isinstance(each, ast.AnnAssign)]
        assert fields == list(getattr(kind, '_fields', None) or kind.__dataclass_fields__)


@pytest.mark.parametrize('how', ['ddpsim.describe', 'import ddpsim.describe',
                                 'from ddpsim import describe', 'import ddpsim.describe.errors'])
def test_describe_is_a_package_and_a_function(how):
    if not (PACKAGE / 'describe').is_dir():
        pytest.skip('NOT RUN: no ddpsim.describe in this wheel')
    done = python('import ddpsim', how, 'print(callable(ddpsim.describe))',
                  'print(ddpsim.describe.__name__)')
    assert done.stdout == 'True\nddpsim.describe\n', done.stderr


def test_all_that_is_promised_is_there():
    for name in ddpsim.__all__:
        if name not in ('describe', 'profile'):
            assert getattr(ddpsim, name).__doc__, name
    with pytest.raises(AttributeError):
        ddpsim.nonsense
