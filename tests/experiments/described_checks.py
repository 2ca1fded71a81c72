#!/usr/bin/env python3
"""Counts on how many models descriptions (ddpsim describe) are what torch says and does, and
measures what describing a large one takes.

    tests/experiments/described_checks.py [--ddpsim PROGRAM] [--json FILE]

Each row is a property, the tests of tests/python that hold it, and how many of their cases, a model
each, passed. Then Llama 3 8B is described by a process of its own, and the file predicted by
another: how long that takes, and the most memory. Needs Python with torch, transformers and pytest,
and the package ddpsim installed; docs/accuracy.md has the table.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from experiment import ROOT, Targets, add_run, common_arguments, provenance

TESTS = ROOT / 'tests/python'
# What describing Llama 3 8B, and predicting a step from the file, may take on two cores.
DESCRIBED_S, DESCRIBED_BYTES, PREDICTED_S = 30, 4e9, 1
# (property, file, what names of its tests hold)
PROPERTIES = [
    ('parameters and buffers are those of the module', 'test_describe_models.py',
     'test_parameters_are_those'),
    ('FLOPs are those of torch\'s counter, operation by operation',
     'test_describe_kernels.py', 'test_flops_equal_torchs'),
    ('FLOPs of a whole step equal those of a real one', 'test_describe_kernels.py',
     'test_flops_equal_those_of_a_real'),
    ('hooks fire in the order of a real step', 'test_describe_order.py', 'fire_as_in_a_real_step'),
    ('recurrent layers complete as in a real step', 'test_describe_order.py',
     'recurrent_layers_complete'),
    ('buckets are those of a real reducer', 'test_describe_order.py', 'buckets_of_a_real_reducer'),
    ('operations on a CPU are those of a real step, in order', 'test_describe_cpu.py',
     'operations_of_a_real_step'),
    ('a forward pass launches what another GPU did', 'test_describe_cuda.py',
     'what_a_laptops_gpu_did'),
    ('what cannot be captured is one line that names the model\'s', 'test_describe_errors.py',
     'one_line'),
]


def counted(name, file, chosen):
    """The row of a property. Ends this program where pytest does not run."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-checks-') as folder:
        report = pathlib.Path(folder, 'report.xml')
        done = subprocess.run(
            [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-k', chosen,
             f'--junitxml={report}', TESTS / file], cwd=ROOT, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit(done.stdout + done.stderr)
        suite = xml.etree.ElementTree.parse(report).getroot().find('testsuite')
    cases = int(suite.get('tests')) - int(suite.get('skipped'))
    failed = int(suite.get('failures')) + int(suite.get('errors'))
    return {'property': name, 'tests': f'tests/python/{file}', 'chosen': chosen, 'cases': cases,
            'passed': cases - failed}


def measured(command, folder):
    """(seconds, the most bytes of memory) of a process that has to end well."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], cwd=folder,
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f'exit {process.returncode}: {command}')
    return time.perf_counter() - start, 1024 * usage.ru_maxrss


def large_model(ddpsim):
    os.environ['DDPSIM_PYTHON'] = sys.executable
    with tempfile.TemporaryDirectory(prefix='ddpsim-checks-') as folder:
        described = measured([ddpsim, 'describe', '--quiet', '-o', 'llama.yaml',
                              f'{ROOT}/scenarios/examples/models/llama3.py:make_8b'], folder)
        predicted = measured([ddpsim, 'run', 'llama.yaml', '--cluster', 'dgx-h100', '--quiet'],
                             folder)
    return {'model': 'Llama 3 8B', 'describe_s': described[0], 'describe_bytes': described[1],
            'predict_s': predicted[0], 'predict_bytes': predicted[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    common_arguments(parser)
    flags = parser.parse_args()
    run = provenance(flags.ddpsim)
    run['cases'] = []
    for each in PROPERTIES:
        run['cases'].append(counted(*each))
        print(f'{run["cases"][-1]["passed"]:3} of {run["cases"][-1]["cases"]:3}  {each[0]}',
              flush=True)
    large = run['summary'] = large_model(flags.ddpsim)
    print(f'{large["model"]}: described in {large["describe_s"]:.1f} s with '
          f'{large["describe_bytes"] / 1e9:.2f} GB, predicted in {large["predict_s"]:.2f} s')
    targets = Targets()
    targets('every case of every property holds',
            all(row['passed'] == row['cases'] > 0 for row in run['cases']))
    targets(f'described within {DESCRIBED_S} s and {DESCRIBED_BYTES / 1e9:.0f} GB',
            large['describe_s'] < DESCRIBED_S and large['describe_bytes'] < DESCRIBED_BYTES)
    targets(f'read and predicted within {PREDICTED_S} s', large['predict_s'] < PREDICTED_S)
    print('\n'.join(targets.lines))
    if flags.json:
        add_run(flags.json, __file__, run, ('property',))
    return targets.exit_code()


if __name__ == '__main__':
    sys.exit(main())
