"""Tests of the installed package. They read the scenarios of this source tree, and of its tests
what an H200 measured; nothing else of it."""
import pathlib
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
