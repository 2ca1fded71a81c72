"""Tests of the installed package. They read the scenarios of this source tree, and of its tests
what an H200 measured; nothing else of it.

Tests that hold many models and settings against torch have hundreds of cases. The suite tries one
in so many of a test marked `one_in(n)`, which are spread over all that it is given; `--every` tries
all. Those marked `oracle(name)` hold a rule of tests/README.md; with `--every` what became of each
rule is printed (tests/torch/shards.py)."""
import collections
import pathlib
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption('--every', action='store_true', help='try every case of every test')


def pytest_configure(config):
    config.addinivalue_line('markers', 'one_in(n): the suite tries every n-th case, --every all')
    config.addinivalue_line('markers', 'oracle(name): holds this rule of tests/README.md')


def pytest_collection_modifyitems(config, items):
    if config.getoption('every'):
        return
    seen = collections.Counter()
    kept, left_out = [], []
    for item in items:
        mark = item.get_closest_marker('one_in')
        number = seen[item.function]
        seen[item.function] += 1
        (kept if mark is None or number % mark.args[0] == 0 else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


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
