"""Sweeps whose points the workers of an executor compute."""
import collections
import concurrent.futures
import json
import os
import signal
import subprocess

import pytest

import ddpsim
from ddpsim import _executors

VARY = {'training.bucket_cap': '1MiB..20MiB+1MiB', 'cluster.nodes': [1, 2, 4]}


class Counting(concurrent.futures.ThreadPoolExecutor):
    """Knows how often each point was sent out; from `fail_from` on blocks fail."""

    def __init__(self, fail_from=None):
        super().__init__(2)
        self.sent = collections.Counter()
        self.blocks, self.fail_from = 0, fail_from

    def submit(self, function, task, points, *rest):
        self.blocks += 1
        self.sent.update(points)
        if self.fail_from is not None and self.blocks > self.fail_from:
            return super().submit(self.lost)
        return super().submit(function, task, points, *rest)

    @staticmethod
    def lost():
        raise ConnectionError('the worker is gone')


@pytest.mark.parametrize('kind', [concurrent.futures.ThreadPoolExecutor,
                                  concurrent.futures.ProcessPoolExecutor])
@pytest.mark.parametrize('of', ['dict', 'file'])
def test_an_executor_finds_what_one_process_finds(small, scenarios, kind, of):
    scenario = small if of == 'dict' else scenarios / 'examples/first.yaml'
    key = 'cluster.nodes' if of == 'dict' else 'cluster.ranks_per_node'
    vary = {'training.bucket_cap': ['1 MiB', '25 MiB'], key: [1, 2, 4, 8]}
    alone = ddpsim.sweep(scenario, vary)
    with kind(2) as executor:
        shared = ddpsim.sweep(scenario, vary, executor=executor)
    assert shared.rows() == alone.rows()
    assert shared.record == alone.record
    assert shared.report() == alone.report()


@pytest.mark.parametrize('asked', [ddpsim.sweep, ddpsim.vary])
def test_points_that_do_not_fit_are_noted(small, asked):
    found = asked(small, {'workload.batch': [1, 4096]})
    assert len(found.notes) == 1 and 'predicted all the same' in found.notes[0]


def test_rows_are_kept_and_not_computed_again(small, tmp_path):
    file = tmp_path / 'rows.csv'
    with Counting() as executor:
        some = ddpsim.sweep(small, {**VARY, 'cluster.nodes': [1, 2]}, executor=executor, csv=file)
        assert sorted(executor.sent.elements()) == list(range(40))
    assert len(some.rows()) > 0
    with Counting() as executor:
        ddpsim.sweep(small, VARY, executor=executor, csv=file)
        assert sum(executor.sent.values()) == 20  # of the third number of nodes
    whole = file.read_bytes()
    with Counting() as executor:
        again = ddpsim.sweep(small, VARY, executor=executor, csv=file)
        assert executor.blocks == 0
    assert file.read_bytes() == whole
    assert again.rows() == ddpsim.sweep(small, VARY).rows()
    assert again.notes == ()
    # Rows without a checksum, of an earlier release: all that is there, and a note.
    rows = [line.rpartition(',')[0] for line in file.read_text().splitlines()]
    file.write_text('\n'.join(rows) + '\n')
    unsealed = ddpsim.sweep(small, VARY, csv=file)
    assert unsealed.rows() == again.rows() and 'checksum' in unsealed.notes[0]
    other = tmp_path / 'other.csv'  # without an executor
    assert ddpsim.sweep(small, VARY, csv=other).rows() == again.rows()
    assert other.read_bytes() == whole


def test_the_file_is_that_of_the_program(scenarios, program, tmp_path):
    scenario, vary = str(scenarios / 'examples/first.yaml'), {'workload.batch': '1..6'}
    subprocess.run([program, 'sweep', scenario, '--vary', 'workload.batch=1..6', '-q', '--csv',
                    tmp_path / 'program.csv'], check=True)
    ddpsim.sweep(scenario, vary, csv=tmp_path / 'python.csv')
    assert (tmp_path / 'python.csv').read_bytes() == (tmp_path / 'program.csv').read_bytes()


def test_what_was_computed_stays_when_workers_are_lost(small, tmp_path):
    file = tmp_path / 'rows.csv'
    with Counting(fail_from=30) as executor, pytest.raises(ConnectionError):
        ddpsim.sweep(small, VARY, executor=executor, csv=file)
    kept = len(file.read_text().splitlines()) - 1
    with Counting() as executor:
        finished = ddpsim.sweep(small, VARY, executor=executor, csv=file)
        strategies = len(finished.rows()) // 60
        assert sum(executor.sent.values()) == 60 - kept // strategies
    assert finished.rows() == ddpsim.sweep(small, VARY).rows()


def test_a_block_that_is_lost_once_is_sent_out_again(small):
    class Forgetful(Counting):
        def submit(self, function, task, points, *rest):
            future = super().submit(function, task, points, *rest)
            if self.sent[points[0]] > 1 or points[0] % 3:
                return future
            return concurrent.futures.ThreadPoolExecutor.submit(self, self.lost)

    with Forgetful() as executor:
        found = ddpsim.sweep(small, VARY, executor=executor)
        assert set(executor.sent.values()) == {1, 2}
    assert found.rows() == ddpsim.sweep(small, VARY).rows()


def test_what_an_executor_cannot_be(small):
    with pytest.raises(ddpsim.InputError, match='^executor: expected an executor such as'):
        ddpsim.sweep(small, VARY, executor=4)
    with Counting() as executor:
        with pytest.raises(ddpsim.InputError, match='jobs and executor both'):
            ddpsim.sweep(small, VARY, executor=executor, jobs=2)
        with pytest.raises(ddpsim.InputError, match='fastest'):
            ddpsim.sweep(small, VARY, executor=executor, best='fastest')
        with pytest.raises(ddpsim.InputError, match='sweep.csv.*no result of this sweep'):
            with open('sweep.csv', 'w', encoding='utf-8') as file:
                file.write('a,b\n1,2\n')
            ddpsim.sweep(small, VARY, executor=executor, csv='sweep.csv')
        assert executor.blocks == 0


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_worker_that_reads_other_files_is_found_out(scenarios):
    request = {'files': [str(scenarios / 'examples/first.yaml')], 'memory': {}, 'set': [],
               'laws_only': False, 'axes': ['workload.batch=1,2'], 'csv': ''}
    task = _executors.Task(json.dumps(request), 'of another version')
    with pytest.raises(ddpsim.InputError, match='^a worker of the executor reads other files'):
        _executors.compute(task, [0], 1)


def test_a_block_holds_few_points():
    assert _executors.blocks_of([]) == []
    assert _executors.blocks_of(list(range(100))) == [[n] for n in range(100)]
    blocks = _executors.blocks_of(list(range(1_000_000)))
    assert max(len(block) for block in blocks) == 245 and len(blocks) <= 4096
    assert {len(block) for block in _executors.blocks_of(list(range(64 * 1000)))} == {64}
    assert [point for block in blocks for point in block] == list(range(1_000_000))


@pytest.mark.parametrize('given', ['executor', 'client'])
def test_dask_ends_a_sweep_though_a_worker_is_killed(small, tmp_path, given):
    distributed = pytest.importorskip('distributed', reason='NOT RUN: no distributed (Dask)')
    dask = pytest.importorskip('dask')
    killed = []
    # Where other programs keep the processors busy, a process may say nothing for longer than 30 s.
    patient = {f'distributed.comm.timeouts.{each}': '300s' for each in ('tcp', 'connect')}
    with dask.config.set(patient), \
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                     dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        def kill_one(what, fraction):
            if fraction > 0.2 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)
        workers = client if given == 'client' else client.get_executor()
        shared = ddpsim.sweep(small, VARY, executor=workers, csv=tmp_path / 'rows.csv',
                              progress=kill_one)
    assert killed
    alone = ddpsim.sweep(small, VARY)
    assert shared.rows() == alone.rows()  # each once, in the order of the grid
    lines = (tmp_path / 'rows.csv').read_text().splitlines()
    assert len(lines) == len(set(lines)) == 1 + len(alone.rows())
