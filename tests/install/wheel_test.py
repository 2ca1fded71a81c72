#!/usr/bin/env python3
"""Whether the wheel that tools/wheels makes works where nothing else was installed for it.

    wheel_test.py --list      names the cases
    wheel_test.py --wheels FOLDER [--python PYTHON] CASE
"""
import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile

TREE = pathlib.Path(__file__).resolve().parents[2]
OF_EVERY_MACHINE = re.compile(
    r'(linux-vdso|ld-linux[\w-]*|/.*/ld-linux[\w-]*|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|z))\.so.*')
LARGEST = 15e6  # bytes
LONGEST = 10    # seconds of processor time
NOT_RUN = 77


def not_run_without(package, condition='True'):
    """Where options.python has a package, of which the condition holds, the folder of that."""
    found = subprocess.run(
        [options.python, '-c', f'import {package}\nassert {condition}\n'
         f'print({package}.__path__[0])'], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print(f'NOT RUN: {options.python} has no {package} with {condition}')
        sys.exit(NOT_RUN)
    return pathlib.Path(found.stdout.strip())


def expect(condition, *facts):
    if not condition:
        sys.exit('not as expected: ' + '\n'.join(str(fact) for fact in facts))


def wheel():
    found = sorted(options.wheels.glob('ddpsim-*.whl'))
    expect(len(found) == 1, f'{options.wheels}: expected one wheel (tools/wheels makes it)', found)
    return found[0]


class Environment:
    """A fresh virtual environment, whose programs alone are on PATH."""

    def __init__(self, folder, python=sys.executable):
        self.folder = folder / 'environment'
        subprocess.run([python, '-m', 'venv', self.folder], check=True)
        self.python = self.folder / 'bin/python'
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.run(self.python, '-m', 'pip', 'install', '--quiet', '--no-index', wheel())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)

    def run(self, *command, **more):
        """What a program prints to stdout; ends the test if it fails."""
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False,
            cwd=self.folder, env={'PATH': str(self.folder / 'bin'), 'HOME': str(self.folder),
                                  'PIP_DISABLE_PIP_VERSION_CHECK': '1', **more})
        expect(done.returncode == 0, f'{command} ended with {done.returncode}', done.stdout,
               done.stderr)
        return done.stdout

    def packages(self):
        return next(self.folder.glob('lib/python3*/site-packages'))


def it_serves_every_python_and_is_small(folder):
    expect(re.fullmatch(r'ddpsim-[\d.]+-cp39-abi3-manylinux_\d+_\d+_\w+\.whl', wheel().name),
           wheel().name)
    expect(wheel().stat().st_size < LARGEST, f'{wheel().stat().st_size} bytes')
    with zipfile.ZipFile(wheel()) as held:
        names = [pathlib.PurePath(name).name for name in held.namelist()]
    left_out = [name for name in names if re.match(r'lib(cu|nccl|nvidia)', name)]
    expect(not left_out, 'libraries of CUDA or NCCL are inside:', left_out)


def its_module_keeps_to_the_limited_api_of_3_9(folder):
    not_run_without('abi3audit')
    done = subprocess.run([options.python, '-m', 'abi3audit', '--strict', '--summary',
                           '--assume-minimum-abi3', '3.9', wheel()], capture_output=True,
                          text=True, cwd=folder, check=False)
    said = ' '.join((done.stdout + done.stderr).split())
    expect(done.returncode == 0 and '0 ABI violations found' in said, said)


def it_installs_in_seconds_and_brings_its_libraries(folder):
    environment = Environment(folder)
    expect(environment.seconds < LONGEST,
           f'the installation took {environment.seconds:.1f} s of a processor')
    program = environment.folder / 'bin/ddpsim'
    version = re.search(r'ddpsim-([\d.]+)-', wheel().name)[1]
    expect(environment.run(program, '--version') == f'ddpsim {version}\n', version)
    said = environment.run(environment.python, '-c', 'import ddpsim; print(ddpsim.__version__)')
    expect(said == f'{version}\n', said)
    first = environment.folder / 'share/ddpsim/examples/first.yaml'
    said = environment.run(program, 'run', first, '--json', '-')
    expect(f'"version": "{version}"' in said, said[:200])
    module = environment.packages() / 'ddpsim/_native.abi3.so'
    for file in (program, module):  # as the loader finds them
        loader = ('/lib64/ld-linux-x86-64.so.2', '--list')
        for line in environment.run(*loader, file).splitlines():
            name, _, place = line.strip().partition(' => ')
            expect(OF_EVERY_MACHINE.fullmatch(name.split()[0]) or
                   place.startswith(str(environment.folder)), f'{file} takes from the machine:',
                   line)


def the_lines_of_the_readme_run(folder):
    torch = not_run_without('torch', "tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 6)")
    environment = Environment(folder, options.python)
    (environment.packages() / 'torch.pth').write_text(str(torch.parent))
    lines = re.search(r'## From Python\n.*?```python\n(.*?)```', (TREE / 'README.md').read_text(),
                      re.DOTALL)[1]
    expect('ddpsim.tune(' in lines and 'ddpsim.run(' in lines, lines)
    environment.run(environment.folder / 'bin/ddpsim', 'init', 'scenario.yaml')
    script = environment.folder / 'readme.py'
    script.write_text(
        'import torch\n'
        'model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.Linear(512, 8))\n'
        'batch = torch.zeros(16, 512)\n'
        'loss = lambda model, batch: model(batch).sum()\n'
        "optimizer = 'sgd'\n"
        '# One process has no group of ranks.\n'
        'DistributedDataParallel = lambda module, **arguments: (module, arguments)\n'
        f'{lines}\n'
        'import sys\n'
        'assert ddpsim.__file__.startswith(sys.prefix), ddpsim.__file__\n'
        'assert ddp == (model, plan.ddp_kwargs)\n'
        "print(plan.step_ms > 0, result['bucketed'].step_ms > 0)\n")
    said = environment.run(environment.python, script)
    expect(said.splitlines()[-1] == 'True True', said)


def other_pythons_take_the_same_file(folder):
    """Those on PATH, and those that DDPSIM_PYTHONS names, with ':' between them."""
    pythons = [python for python in os.environ.get('DDPSIM_PYTHONS', '').split(':') if python]
    pythons += filter(None, (shutil.which(f'python3.{minor}') for minor in range(9, 20)))
    works = [python for python in pythons
             if subprocess.run([python, '-c', 'import ensurepip, sys; '
                                'sys.exit(sys.version_info < (3, 9))'],
                               capture_output=True, check=False).returncode == 0]
    expect(works, 'no Python on PATH', os.environ['PATH'])
    script = ('import ddpsim, sys\n'
              "small = {'workload': {'model': 'resnet50', 'batch': 32, 'optimizer': 'sgd'},"
              " 'cluster': {'device': 'a100-40', 'nodes': 2, 'ranks_per_node': 4,"
              " 'intra_node': 'nvlink3', 'inter_node': 'ib-hdr'}}\n"
              'study = ddpsim.Study(small)\n'
              "assert study.step_ms() == ddpsim.run(small)['bucketed'].step_ms\n"
              "assert study.step_ms(latency=1) > study.step_ms(latency='1 us')\n"
              'try:\n    study.step_ms(bucket_cap=None, latency=object())\n'
              "except ddpsim.InputError as problem:\n    assert 'latency: ' in str(problem)\n"
              "else:\n    raise AssertionError('not refused')\n"
              'told = []\n'
              "ddpsim.sweep(small, {'cluster.nodes': '2..40'},"
              " progress=lambda what, part: told.append(part))\n"
              'assert told, told\n'
              "print(sys.version.split()[0], ddpsim.tune(small).ddp_kwargs != None)\n")
    for number, python in enumerate(works):
        environment = Environment(folder / str(number), python)
        said = environment.run(environment.python, '-c', script)
        expect(said.endswith(' True\n'), said)
        print(said.split()[0])


CASES = {case.__name__.replace('_', ' '): case
         for case in (it_serves_every_python_and_is_small,
                      its_module_keeps_to_the_limited_api_of_3_9,
                      it_installs_in_seconds_and_brings_its_libraries,
                      the_lines_of_the_readme_run, other_pythons_take_the_same_file)}

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--wheels', type=pathlib.Path, default=TREE / 'build/wheels')
    parser.add_argument('--python', default=sys.executable,
                        help='one with torch, for the lines of the README, and abi3audit')
    parser.add_argument('case', nargs='?', choices=CASES)
    options = parser.parse_args()
    if options.list:
        print('\n'.join(CASES))
    elif options.case:
        with tempfile.TemporaryDirectory() as scratch:
            CASES[options.case](pathlib.Path(scratch))
    else:
        parser.error('name a case')
