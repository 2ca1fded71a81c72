#!/usr/bin/env python3
"""Whether what `cmake --install` puts into a fresh folder works there, with nothing of the source
tree.

    install_test.py --list      names the cases
    install_test.py --cmake PROGRAM --generator NAME --compiler PROGRAM [--flags FLAGS]
                    --build FOLDER CASE
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **rest):
    """What a program prints to stdout; ends the test if it fails. The environment names no
    catalogue."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith('DDPSIM_')}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=environment, **rest)
    expect(done.returncode == 0, f'{command} ended with {done.returncode}', done.stdout,
           done.stderr)
    return done.stdout


def expect(condition, *facts):
    if not condition:
        sys.exit('not as expected: ' + '\n'.join(str(fact) for fact in facts))


def install(folder):
    """Installs into a new prefix below `folder`, which is then moved: an installed tree is bound to
    no place."""
    run(options.cmake, '--install', options.build, '--prefix', folder / 'first')
    shutil.move(folder / 'first', folder / 'moved')
    return folder / 'moved'


def build_example(prefix, name, folder):
    """Configures and builds an installed example as its user would: a copy, with
    find_package(ddpsim)."""
    source = folder / name
    shutil.copytree(prefix / 'share/ddpsim/examples' / name, source)
    run(options.cmake, '-S', source, '-B', source / 'build', '-G', options.generator,
        f'-DCMAKE_CXX_COMPILER={options.compiler}', f'-DCMAKE_CXX_FLAGS={options.flags}',
        f'-DCMAKE_PREFIX_PATH={prefix}')
    run(options.cmake, '--build', source / 'build')
    return source / 'build'


def bucketed_step_ms(text):
    return next(row['step_ms'] for row in json.loads(text)['results']
                if row['strategy'] == 'bucketed')


def the_program_finds_everything_beside_itself(folder):
    prefix = install(folder)
    program, examples = prefix / 'bin/ddpsim', prefix / 'share/ddpsim/examples'
    # A device that the source tree does not have: the program reads the catalogue of its prefix.
    devices = prefix / 'share/ddpsim/catalogue/devices'
    (devices / 'of-this-prefix.yaml').write_text((devices / 'a100-40.yaml').read_text())
    listed = run(program, 'list', 'devices', cwd='/')
    expect('of-this-prefix' in listed, listed)
    for example in ('first.yaml', 'own-profile.yaml'):
        here = run(program, 'run', examples / example, '--json', '-', cwd='/')
        there = run(options.build / 'tools/ddpsim', 'run', TREE / 'scenarios/examples' / example,
                    '--json', '-')
        expect(here == there, here, there)
    same = run(program, 'run', 'first.yaml', '--set', 'cluster.device=of-this-prefix', '--json',
               '-', cwd=examples)
    expect(
        bucketed_step_ms(same) == bucketed_step_ms(
            run(program, 'run', 'first.yaml', '--json', '-', cwd=examples)), same)
    # Nothing that is read later names the source tree or the build.
    for file in [*(prefix / 'lib/cmake').rglob('*.cmake'), *(prefix / 'share').rglob('*')]:
        if file.is_file():
            expect(str(TREE) not in file.read_text(), file)


def the_manual_page_is_what_the_program_says(folder):
    prefix = install(folder)
    page = (prefix / 'share/man/man1/ddpsim.1').read_text()
    expect(page.startswith('.TH DDPSIM 1'), page[:200])
    expect(page == run(prefix / 'bin/ddpsim', '--man'), page[:200])


def modules_are_installed_if_they_were_built(folder):
    installed = sorted(file.name for file in (install(folder) / 'lib/ddpsim').glob('*.so'))
    built = sorted(file.name for file in (options.build / 'modules').glob('*.so'))
    expect(installed == built, installed, built)


def a_program_of_ones_own_predicts_a_step(folder):
    prefix = install(folder)
    program = build_example(prefix, 'program', folder) / 'predict_step'
    devices = prefix / 'share/ddpsim/catalogue/devices'
    (devices / 'of-this-prefix.yaml').write_text((devices / 'a100-40.yaml').read_text())
    scenario = folder / 'scenario.yaml'
    scenario.write_text((prefix / 'share/ddpsim/examples/first.yaml').read_text().replace(
        'a100-40', 'of-this-prefix'))
    name, _, step = run(program, scenario, cwd='/').rpartition(': ')
    expect(name == 'GPT-2 on eight A100', name)
    expected = bucketed_step_ms(run(prefix / 'bin/ddpsim', 'run', scenario, '--json', '-'))
    expect(abs(float(step.removesuffix(' ms\n')) / expected - 1) < 1e-5, step, expected)


def a_plugin_is_built_and_found_fit(folder):
    prefix = install(folder)
    plugin = build_example(prefix, 'plugin', folder) / 'libmy_hooks.so'
    scenario = prefix / 'share/ddpsim/examples/plugin/plugin.yaml'
    program = prefix / 'bin/ddpsim'
    run(program, 'run', scenario, '--plugin', plugin, '-q', cwd='/')
    # It was read: its hooks are known by name.
    (folder / 'wrong.yaml').write_text(scenario.read_text().replace('centralize,', 'centralise,'))
    done = subprocess.run([program, 'run', folder / 'wrong.yaml', '--plugin', plugin],
                          capture_output=True, text=True)
    expect(done.returncode == 2 and 'there are: balance, centralize' in done.stderr,
           done.returncode, done.stderr)


def versions_that_do_not_fit_are_refused(folder):
    prefix = install(folder)
    (folder / 'CMakeLists.txt').write_text(
        'cmake_minimum_required(VERSION 3.25)\nproject(later LANGUAGES NONE)\n'
        'find_package(ddpsim 99 REQUIRED)\n')
    done = subprocess.run([
        options.cmake, '-S', folder, '-B', folder / 'build', '-G', options.generator,
        f'-DCMAKE_PREFIX_PATH={prefix}'
    ], capture_output=True, text=True)
    expect(done.returncode != 0 and 'requested version "99"' in done.stderr, done.returncode,
           done.stderr)


CASES = {
    case.__name__.replace('_', ' '): case
    for case in (the_program_finds_everything_beside_itself,
                 modules_are_installed_if_they_were_built,
                 a_program_of_ones_own_predicts_a_step, a_plugin_is_built_and_found_fit,
                 versions_that_do_not_fit_are_refused)
}

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--cmake', default='cmake')
    parser.add_argument('--generator', default='Ninja')
    parser.add_argument('--compiler', default='c++')
    parser.add_argument('--flags', default='',
                        help="for the compiler, as the libraries were built with a sanitizer's")
    parser.add_argument('--build', type=pathlib.Path, default=TREE / 'build/release')
    parser.add_argument('case', nargs='?', choices=CASES)
    options = parser.parse_args()
    if options.list:
        print('\n'.join(CASES))
    elif options.case:
        with tempfile.TemporaryDirectory() as scratch:
            CASES[options.case](pathlib.Path(scratch))
    else:
        parser.error('name a case')
