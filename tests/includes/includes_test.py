#!/usr/bin/env python3
"""Whether tools/check_includes refuses what it has to refuse, and a build with it.

    includes_test.py --list                                  names the cases
    includes_test.py [--cmake PROGRAM --compiler PROGRAM --generator NAME] CASE
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
CHECK = TREE / 'tools' / 'check_includes'


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def check(files, *flags):
    """What tools/check_includes says of a source tree that holds `files`: (exit code, output,
    complaints)."""
    with tempfile.TemporaryDirectory() as folder:
        write(pathlib.Path(folder), files)
        done = subprocess.run([sys.executable, CHECK, *flags, folder], capture_output=True,
                              text=True)
        return done.returncode, done.stdout, done.stderr


def expect(condition, *facts):
    if not condition:
        sys.exit('not as expected: ' + '\n'.join(str(fact) for fact in facts))


def expect_refused(files, *texts):
    code, out, complaints = check(files)
    expect(code == 1, files, code, out, complaints)
    for text in texts:
        expect(text in complaints, f'"{text}" is missing in', complaints)


def expect_accepted(files):
    code, out, complaints = check(files)
    expect(code == 0 and not complaints, files, code, out, complaints)


def arrow(room, seen):
    """A tree in which one file of `room` includes a header of the room `seen`."""
    return {f'{room}/user.cpp': f'#include "{seen}/used.hpp"\n', f'{seen}/used.hpp': ''}


def arrows(pairs):
    """The same of many pairs (room, seen): a file for each."""
    tree = {f'{seen}/used.hpp': '' for _, seen in pairs}
    for room, seen in pairs:
        tree[f'{room}/sees_{seen.replace("/", "_")}.cpp'] = f'#include "{seen}/used.hpp"\n'
    return tree


def expect_all_refused(pairs):
    expect_refused(
        arrows(pairs), f'check_includes: {len(pairs)} wrong',
        *(f'{room}/sees_{seen.replace("/", "_")}.cpp:1: includes "{seen}/used.hpp"'
          for room, seen in pairs))


def the_tree_itself_is_clean():
    done = subprocess.run([sys.executable, CHECK], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)


def file_line_and_reason_are_said():
    expect_refused(
        {
            'model/program/task.hpp': '#pragma once\n\n#include <vector>\n'
                                       '#include "model/parallel/training.hpp"\n',
            'model/parallel/training.hpp': ''
        }, 'model/program/task.hpp:4: includes "model/parallel/training.hpp": '
        'model/program sees only')


def arrows_point_one_way():
    down = [('model/program', 'model/base'), ('model/parallel', 'model/program'),
            ('model/cost', 'model/workload'), ('sim/engine', 'model/cost'),
            ('sim/tune', 'sim/engine'), ('sim/predict', 'model/parallel'),
            ('backend/gloo', 'backend/job'), ('backend/measure', 'model/cost'),
            ('backend/link/nccl', 'backend/device/cuda'),
            ('scenarios/reader/format', 'scenarios/reader/text'),
            ('scenarios/reader/cluster', 'scenarios/reader/catalogue'),
            ('scenarios/reader/scenario', 'scenarios/reader/training'),
            ('scenarios/reader/explain', 'scenarios/reader/scenario'),
            ('backend/device/cuda/calls', 'backend/device/cuda'),
            ('tools/sweep', 'tools/report/pages'),
            ('tools/report/pages', 'tools/report/records'),
            ('tools/kineto', 'tools/report/writers'), ('tools/command', 'backend/link/nccl'),
            ('tests/tools', 'tools/command'), ('model/base', 'model/base')]
    expect_accepted(arrows(down))
    expect_all_refused([(seen, room) for room, seen in down if room != seen])


def rooms_side_by_side_do_not_see_one_another():
    groups = (['model/cost', 'model/parallel', 'model/timeline'],
              ['sim/engine', 'backend', 'scenarios/reader/scenario'],
              ['backend/gloo', 'backend/link/nccl'],
              ['backend/device/cpu', 'backend/device/cuda'],
              ['scenarios/reader/training', 'scenarios/reader/cluster'],
              ['backend/device/cuda/calls', 'backend/link/nccl'],
              ['tools/import', 'tools/sweep'])
    expect_all_refused([(room, other) for rooms in groups for room in rooms for other in rooms
                        if room != other])


def neither_executor_sees_ddp():
    executors = [
        'sim/engine',
        *(f'backend{part}'
          for part in ('', '/job', '/measure', '/comm_hooks', '/plugin', '/gloo', '/execute',
                       '/device/cuda', '/link/nccl', '/run'))
    ]
    expect_all_refused([(room, 'model/parallel') for room in executors])


def libraries_have_their_rooms():
    places = {
        'cuda_runtime.h': 'backend/device/cuda/calls', 'nccl.h': 'backend/device/cuda/calls',
        'yaml-cpp/yaml.h': 'scenarios/reader/format', 'boost/program_options.hpp': 'tools/command',
        'gloo/allreduce.h': 'backend/gloo',
        'nlohmann/json.hpp': 'tools/report/writers', 'thread': 'sim/tune',
        'Eigen/Dense': 'model/cost'
    }
    expect_accepted({f'{room}/user{number}.cpp': f'#include <{header}>\n'
                     for number, (header, room) in enumerate(places.items())})
    expect_refused({'model/base/user.hpp': ''.join(f'#include <{header}>\n' for header in places)},
                   *(f'model/base/user.hpp:{line}: includes <{header}>: only in '
                     for line, header in enumerate(places, 1)))
    expect_refused({'tools/report/pages/user.cpp': '#include <catch2/catch.hpp>\n'},
                   'only in tests')


def no_way_around():
    target = {'model/parallel/training.hpp': ''}
    for include, reason in (('<model/parallel/training.hpp>', 'model/program sees only'),
                            ('"../parallel/training.hpp"', 'no such file'),
                            ('"model/program/../parallel/training.hpp"', 'is no room'),
                            ('TRAINING', "write the header's name")):
        expect_refused(
            {
                'model/program/user.cpp': f'  #  include {include}\n', 'model/program/x.hpp': '',
                **target
            }, 'model/program/user.cpp:1', reason)
    expect_refused(
        {
            'model/program/user.cpp': '#include "model/program/x.inl"\n',
            'model/program/x.inl': ''
        }, 'model/program/user.cpp:1', 'headers end in')


def a_new_folder_has_to_say_where_it_stands():
    expect_refused({'model/weather/rain.hpp': ''}, 'model/weather/rain.hpp:1',
                   'ARROWS in tools/check_includes')


def exceptions_are_counted_and_only_shrink():
    known = {
        'cmake/include_exceptions.txt':
            '# a remark\nmodel/program/user.cpp -> model/parallel\n'
    }
    code, out, complaints = check({**arrow('model/program', 'model/parallel'), **known})
    expect(code == 0 and '1 known exceptions' in out and not complaints, code, out, complaints)
    # The same file may not use its exception for another room, and no other file may use it.
    expect_refused(
        {
            **arrow('model/program', 'model/parallel'),
            **arrow('model/program', 'model/cost'),
            **known
        },
        'includes "model/cost/used.hpp"')
    # What is mended leaves the list.
    expect_refused({'model/program/user.cpp': '', **known},
                   'include_exceptions.txt:2: model/program/user.cpp no longer includes',
                   'remove this exception')


def a_wrong_include_fails_the_build():
    wrong = '#include "model/cost/price.hpp"\n'
    right = '#include "model/program/job.hpp"\nint tasks() { return count; }\n'
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / 'project'
        write(
            root, {
                'CMakeLists.txt': f'cmake_minimum_required(VERSION 3.25)\nproject(two_rooms CXX)\n'
                f'include({TREE}/cmake/rooms.cmake)\nddpsim_check_includes()\n'
                'ddpsim_room(model/program)\nddpsim_room(model/cost LINKS '
                'ddpsim_model_program)\n',
                'model/program/job.hpp': '#pragma once\ninline constexpr int count = 3;\n',
                'model/program/job.cpp': wrong + right,
                'model/cost/price.hpp': '#pragma once\n',
                'model/cost/price.cpp': '#include "model/program/job.hpp"\n'
                                        'int price() { return count; }\n'
            })
        build = root / 'build'
        set_up = subprocess.run([
            options.cmake, '-S', root, '-B', build, '-G', options.generator,
            f'-DCMAKE_CXX_COMPILER={options.compiler}'
        ], capture_output=True, text=True)
        expect(set_up.returncode == 0, set_up.stdout, set_up.stderr)
        # The target of a single room refuses as well as that of everything.
        for target in (['--target', 'ddpsim_model_cost'], []):
            done = subprocess.run([options.cmake, '--build', build, *target], capture_output=True,
                                  text=True)
            said = done.stdout + done.stderr
            expect(done.returncode != 0, 'it was built', said)
            expect(
                'model/program/job.cpp:1: includes "model/cost/price.hpp": model/program '
                'sees only'
                in said, said)
        write(root, {'model/program/job.cpp': right})
        done = subprocess.run([options.cmake, '--build', build], capture_output=True, text=True)
        expect(done.returncode == 0, 'without the wrong include it must be built', done.stdout,
               done.stderr)
        # A build after which nothing changed does not check again; a new file is checked.
        done = subprocess.run([options.cmake, '--build', build], capture_output=True, text=True)
        expect('Holding includes' not in done.stdout, done.stdout)
        write(root, {'model/program/new.cpp': wrong})
        done = subprocess.run([options.cmake, '--build', build], capture_output=True, text=True)
        expect(done.returncode != 0 and 'model/program/new.cpp:1' in done.stdout + done.stderr,
               done.stdout, done.stderr)


CASES = {
    case.__name__.replace('_', ' '): case
    for case in (the_tree_itself_is_clean, file_line_and_reason_are_said, arrows_point_one_way,
                 neither_executor_sees_ddp, rooms_side_by_side_do_not_see_one_another,
                 libraries_have_their_rooms, no_way_around, a_new_folder_has_to_say_where_it_stands,
                 exceptions_are_counted_and_only_shrink, a_wrong_include_fails_the_build)
}

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--cmake', default='cmake')
    parser.add_argument('--compiler', default='c++')
    parser.add_argument('--generator', default='Ninja')
    parser.add_argument('case', nargs='?', choices=CASES)
    options = parser.parse_args()
    if options.list:
        print('\n'.join(CASES))
    elif options.case:
        CASES[options.case]()
    else:
        parser.error('name a case')
