"""python -m ddpsim.measure, for real on a CPU: what it writes, that it goes on where it was
interrupted, and what it says of wrong words."""
import contextlib
import io
import json
import math
import os
import re
import runpy
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip('torch')

SEALED_END = re.compile(r'\nend: ddpsim.operations/1  # \d+ lines, crc32 [0-9a-f]{8}\n$')
SETTINGS = {**os.environ, 'PYTHONPATH': os.pathsep.join(p for p in sys.path if p),
            'OMP_NUM_THREADS': '1'}
DESCRIPTION = '''format: ddpsim.workload/2
batch: 1
kernels:
  - {op: x, kind: gemm, type: fp32, gemm: {m: 64, n: 64, k: 64}, host: 1 us, read: 1, written: 1}
layers: [{name: a, forward: [0], backward: [0]}]
parameters: [{name: w, shape: [1], layer: 0, after: 0}]
'''


def words_of(*words):
    return [sys.executable, '-W', 'ignore', '-m', 'ddpsim.measure', *words]


def measure(*words, where):
    """As the command, within this interpreter, which has imported torch."""
    folder, arguments = os.getcwd(), sys.argv
    code = 0
    with (contextlib.redirect_stdout(io.StringIO()) as out,
          contextlib.redirect_stderr(io.StringIO()) as err):
        try:
            os.chdir(where)
            sys.argv = ['measure', *words]
            runpy.run_module('ddpsim.measure', run_name='__main__')
        except SystemExit as ending:
            code = ending.code or 0
        finally:
            os.chdir(folder)
            sys.argv = arguments
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def rows_of(file):
    return [json.loads(line[4:]) for line in file.read_text().splitlines()
            if line.startswith('  - ')]


def value_of(file, key):
    return re.search(rf'^{key}: (.*)$', file.read_text(), re.MULTILINE)[1]


@pytest.fixture(scope='module')
def table(tmp_path_factory):
    """A table of this machine's processor, whole."""
    folder = tmp_path_factory.mktemp('measured')
    done = measure('operations', '-o', 'cpu.yaml', '--device', 'cpu', '--classes', 'gemm,pattern',
                   where=folder)
    assert done.returncode == 0, done.stderr
    return folder / 'cpu.yaml'


def test_a_table_says_what_was_measured_where(table):
    rows = rows_of(table)
    assert {next(iter(row)) for row in rows} == {'gemm', 'pattern'}
    assert all(float(row['time'].removesuffix(' us')) > 0 for row in rows)
    assert value_of(table, 'format') == 'ddpsim.operations/1'
    import torch
    assert json.loads(value_of(table, 'torch')) == torch.__version__
    assert re.fullmatch(r'\d{4}-\d\d-\d\d', json.loads(value_of(table, 'date')))
    assert float(value_of(table, 'seconds')) > 0
    assert SEALED_END.search(table.read_text())


def test_a_product_does_more_than_a_smaller_one(table):
    us = {row['gemm']['m']: float(row['time'].removesuffix(' us')) for row in rows_of(table)
          if row.get('gemm', {}).get('n') == 256 and row['type'] == 'fp32'
          and 'along_k' not in row['gemm']}
    assert set(us) == {64, 1024}
    assert us[64] < us[1024]  # of sixteen times the multiplications


def test_a_second_start_measures_nothing_twice(table):
    before = table.read_text()
    done = subprocess.run(
        words_of('operations', '-o', table.name, '--device', 'cpu', '--classes', 'gemm,pattern'),
        text=True, capture_output=True, cwd=table.parent, env=SETTINGS)
    assert done.returncode == 0
    assert '0 operations to measure' in done.stderr
    assert table.read_text() == before


def test_an_interrupted_start_is_gone_on_with(tmp_path):
    file = tmp_path / 'cpu.yaml'
    started = subprocess.Popen(
        words_of('operations', '-o', file.name, '--device', 'cpu', '--seconds', '100'),
        cwd=tmp_path, env=SETTINGS, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while not file.exists() and started.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait()
    first = rows_of(file)
    assert first
    assert SEALED_END.search(file.read_text())
    done = measure('operations', '-o', file.name, '--device', 'cpu', where=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(file)
    assert rows[:len(first)] == first
    assert {next(iter(row)) for row in rows} == {'gemm', 'conv', 'pattern'}
    keys = [json.dumps({**row, 'time': ''}, sort_keys=True) for row in rows]
    assert len(set(keys)) == len(keys)


def test_a_short_time_measures_some_and_says_what_is_missing(tmp_path):
    done = measure('operations', '-o', 'cpu.yaml', '--device', 'cpu', '--seconds', '0.001',
                   where=tmp_path)
    assert done.returncode == 0
    assert 'are missing yet: the same command goes on with them' in done.stderr


def test_the_program_prices_kernels_by_the_table(table, program):
    folder = table.parent
    (folder / 'd.yaml').write_text(DESCRIPTION)
    (folder / 's.yaml').write_text('workload: {model: d.yaml}\n'
                                   'cluster: {device: {base: h200, operations: cpu.yaml}}\n'
                                   'compare: [none]\n')
    done = subprocess.run([program, 'run', 's.yaml'], cwd=folder, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert '1 of 1 distinct kernels priced by measured operations' in done.stdout


class FakeGpu:
    """A GPU with one queue and a host that enqueues kernels; time passes as they do. An event is
    over 1.4 us after what stands before it."""
    uint8 = None

    def __init__(self):
        self.host = self.free = 0.0
        self.flushes = 0
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                pass

            def record(self):
                gpu.launch(0)
                gpu.free += 1.4e-6
                self.at = gpu.free

            def synchronize(self):
                gpu.host = max(gpu.host, gpu.free)

            def elapsed_time(self, other):
                return (other.at - self.at) * 1e3

        class Cuda:
            @staticmethod
            def synchronize(device):
                gpu.host = max(gpu.host, gpu.free)
        Cuda.Event = Event
        self.cuda = Cuda

    def launch(self, seconds, host=5e-6):
        self.host += host
        self.free = max(self.free, self.host) + seconds

    def perf_counter(self):
        return self.host

    def tensor(self, seconds):
        gpu = self

        class Tensor:
            def zero_(self):
                gpu.flushes += seconds > 1e-5
                gpu.launch(seconds)
        return Tensor()

    def empty(self, *_, **__):
        return self.tensor(60e-6)

    def zeros(self, *_, **__):
        return self.tensor(1.2e-6)


def test_a_gpu_is_timed_without_the_host_and_the_events(monkeypatch):
    from ddpsim.measure import clocks
    gpu = FakeGpu()
    monkeypatch.setattr(clocks, 'torch', gpu)
    monkeypatch.setattr(clocks, 'time', gpu)
    clock = clocks.GpuClock('cuda')
    assert clock.events == pytest.approx(1.4e-6)

    def two_kernels():  # the host is late with the second one
        gpu.launch(10e-6)
        gpu.launch(10e-6, host=100e-6)
    gpu.flushes = 0
    assert clock.time(two_kernels) == pytest.approx(20e-6)
    # Of 60 us each, to cover 105 us of the host twice: four, and 7 repeats.
    assert gpu.flushes == 4 * 7


@pytest.mark.parametrize('words, said', [
    (('operations',), 'the following arguments are required: -o/--output'),
    ((), 'required: operations|host'),
    (('operations', '-o', 'x.yaml', '--seconds', '0'), 'expected seconds, above zero, got "0"'),
    (('operations', '-o', 'x.yaml', '--classes', 'gem'), 'expected some of gemm,conv'),
    (('operations', '-o', 'x.yaml', '--device', 'gpu'), '--device: expected cuda, cuda:1 or cpu'),
    (('operations', '-o', 'x.yaml', '--device', 'meta'), 'only CUDA devices and CPUs'),
    (('operations', '-o', 'none/x.yaml', '--device', 'cpu', '--seconds', '0.001'),
     '--output: none/x.yaml: No such file or directory'),
    (('operations', '-o', 'other.yaml', '--device', 'cpu'),
     'other.yaml is there and no table of this command'),
    (('operations', '-o', 'card.yaml', '--device', 'cpu'), 'card.yaml is of device a card'),
    (('host', '--reference', 'none.yaml'), '--reference: none.yaml: No such file'),
    (('host', '--reference', 'other.yaml'), 'expected a file of `python -m ddpsim.measure host`'),
    (('host', '--reference', 'empty.yaml'), 'expected `measured` with a time in us of each of')])
def test_what_is_wrong_is_one_line(tmp_path, monkeypatch, capsys, words, said):
    (tmp_path / 'other.yaml').write_text('mine: yes\n')
    (tmp_path / 'card.yaml').write_text('format: ddpsim.operations/1\nwritten_by: ddpsim.measure\n'
                                        'device: "a card"\noperations:\nend: x\n')
    (tmp_path / 'empty.yaml').write_text('format: ddpsim.host/1\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['measure', *words])
    with pytest.raises(SystemExit) as ended:  # in this interpreter, which has imported torch
        runpy.run_module('ddpsim.measure', run_name='__main__')
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ''
    lines = printed.err.splitlines()
    assert said in lines[-1]
    assert all(line.startswith('measure: ') for line in lines)


def test_a_file_that_was_damaged_is_refused(tmp_path):
    words = ('host', '--seconds', '0.1', '-o', 'here.yaml')
    assert measure(*words, where=tmp_path).returncode == 0
    file = tmp_path / 'here.yaml'
    file.write_text(re.sub(r'"add": "\d', '"add": "77', file.read_text()))
    done = measure(*words, '--reference', 'here.yaml', where=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert 'it is not as ddpsim wrote it' in done.stderr


def test_a_host_is_over_another_by_the_mean_of_five_ratios(tmp_path):
    done = measure('host', '--seconds', '0.3', '-o', 'here.yaml', where=tmp_path)
    assert done.returncode == 0, done.stderr
    here = json.loads(value_of(tmp_path / 'here.yaml', 'measured'))
    assert set(here) == {'add', 'view', 'linear', 'layer_norm', 'conv2d'}
    assert 'no factor' in done.stderr
    assert not re.search('^factor: ', (tmp_path / 'here.yaml').read_text(), re.MULTILINE)
    # A host half as quick, and one that is itself 1.5 times the reference.
    slow = {name: f'{2 * float(us.removesuffix(" us"))} us' for name, us in here.items()}
    text = re.sub('  # .* lines, crc32 .*', '', (tmp_path / 'here.yaml').read_text())
    slow_text = text.replace(json.dumps(here), json.dumps(slow))
    (tmp_path / 'slow.yaml').write_text(slow_text)
    (tmp_path / 'known.yaml').write_text(slow_text.replace('end:', 'factor: 1.5\nend:'))
    # What a host takes moves from run to run: the factor is of the times written beside it.
    for name, of_other in (('slow', 1), ('known', 1.5)):
        done = measure('host', '--seconds', '0.5', '--reference', f'{name}.yaml', '-o', 'f.yaml',
                       where=tmp_path)
        assert done.returncode == 0, done.stderr
        now = json.loads(value_of(tmp_path / 'f.yaml', 'measured'))
        ratios = [float(now[each].removesuffix(' us')) / float(slow[each].removesuffix(' us'))
                  for each in slow]
        factor = float(value_of(tmp_path / 'f.yaml', 'factor'))
        # The factor is written to a thousandth.
        assert factor == pytest.approx(of_other * math.prod(ratios) ** (1 / 5), abs=0.002)


def test_the_program_takes_a_host(tmp_path, program):
    (tmp_path / 'slow.yaml').write_text(
        'format: ddpsim.host/1\nwritten_by: ddpsim.measure\nmeasured: {"add": "9 us", "view": '
        '"9 us", "linear": "9 us", "layer_norm": "9 us", "conv2d": "9 us"}\nend: ddpsim.host/1\n')
    done = measure('host', '--seconds', '0.2', '--reference', 'slow.yaml', '-o', 'h.yaml',
                   where=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / 'd.yaml').write_text(DESCRIPTION)
    done = subprocess.run([program, 'run', 'd.yaml', '--set', 'cluster.device=h200', '--set',
                           'cluster.host=h.yaml'], cwd=tmp_path, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
