"""Tests of the installed package. They read the scenarios of this source tree, and of its tests
what an H200 measured; nothing else of it.

Tests that hold many models and settings against torch have hundreds of cases. Of a test marked
`one_in(n)` the suite tries about every n-th case, drawn once and for all; where it has several
parameters each of their values is among them. `--every` tries all. Those marked `oracle(name)` hold
a rule of tests/README.md; with `--every` what became of each rule is printed
(tests/torch/shards.py)."""
import collections
import math
import pathlib
import random
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption('--every', action='store_true', help='try every case of every test')


def pytest_configure(config):
    config.addinivalue_line('markers', 'one_in(n): about every n-th case is tried; --every: all')
    config.addinivalue_line('markers', 'oracle(name): holds this rule of tests/README.md')


def pytest_collection_modifyitems(config, items):
    if config.getoption('every'):
        return
    cases = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker('one_in'):
            cases[item.function].append(item)
    kept = {item for of_test in cases.values() for item in some_of(of_test)}
    left_out = [item for of_test in cases.values() for item in of_test if item not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def some_of(cases):
    """About one in n cases of a test, with every value of its parameters if it has several."""
    wanted = math.ceil(len(cases) / cases[0].get_closest_marker('one_in').args[0])
    drawn = random.Random(cases[0].originalname).sample(cases, len(cases))
    if len(cases[0].callspec.params) == 1:
        return drawn[:wanted]
    kept, seen = [], set()
    for item in drawn:
        values = {(name, repr(value)) for name, value in item.callspec.params.items()}
        if not values <= seen:
            kept.append(item)
            seen |= values
    rest = [item for item in drawn if item not in kept]
    return kept + rest[:max(0, wanted - len(kept))]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    report.oracles = [name for mark in item.iter_markers('oracle') for name in mark.args]


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption('every'):
        return
    found = collections.defaultdict(collections.Counter)
    for outcome in ('passed', 'failed', 'error', 'skipped'):
        for report in terminalreporter.stats.get(outcome, []):
            for name in getattr(report, 'oracles', []):
                found[name][outcome] += 1
    for name in sorted(found, key=lambda each: int(each[1:])):
        counts = found[name]
        terminalreporter.write_line(
            f'{name}: equal in {counts["passed"]} of {sum(counts.values())} cases')


@pytest.fixture(scope='session')
def scenarios():
    return ROOT / 'scenarios'


@pytest.fixture(scope='session')
def program():
    """The program that was installed with the package."""
    return pathlib.Path(sysconfig.get_path('scripts'), 'ddpsim')


@pytest.fixture
def small():
    """A scenario as an object."""
    return {'workload': {'model': 'resnet50', 'batch': 32, 'optimizer': 'sgd'},
            'cluster': {'device': 'a100-40', 'nodes': 2, 'ranks_per_node': 4,
                        'intra_node': 'nvlink3', 'inter_node': 'ib-hdr'}}
