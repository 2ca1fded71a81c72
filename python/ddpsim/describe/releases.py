"""The releases of PyTorch whose choices a description can mean."""
from .errors import DescribeError

KNOWN = ('2.6', '2.11', '2.13')
NEWEST = KNOWN[-1]


def check_release(release):
    if release not in KNOWN:
        raise DescribeError(f'release: unknown release of PyTorch "{release}"; known: '
                            f'{", ".join(KNOWN)}')


def at_least(release, other):
    return _numbers(release) >= _numbers(other)


def _numbers(release):
    return [int(part) for part in release.split('.')]
