"""Long calls: other threads go on, progress is told, Ctrl-C ends them."""
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import ddpsim

# A search of some seconds.
LONG = {'workload': {'model': 'resnet50', 'batch': 8},
        'cluster': {'device': 'a100-40', 'nodes': 2, 'inter_node': 'ethernet-10g'},
        'training': {'find_unused_parameters': True}}


def test_progress_is_told(small):
    told = []
    ddpsim.sweep(small, {'cluster.nodes': '2..40'}, progress=lambda what, part: told.append(part))
    assert told == sorted(told) and told[0] >= 0 and told[-1] <= 1
    assert len(told) >= 1


def test_an_error_of_the_progress_function_comes_out(small):
    def fail(what, part):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        ddpsim.sweep(small, {'cluster.nodes': '2..200'}, progress=fail)


def test_other_threads_go_on(small):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)
    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    ddpsim.sweep(small, {'cluster.nodes': '2..60'}, jobs=1, progress=False)
    taken = time.perf_counter() - begin
    done.set()
    thread.join()
    # With Python's lock held it would count once or twice. A busy machine counts more slowly.
    assert taken > 0.1 and counted[0] > 100 * taken


def test_calls_of_several_threads_agree(small):
    expected = ddpsim.run(small).record
    study = ddpsim.Study(small)
    steps = {cap: study.step_ms(bucket_cap=cap << 20) for cap in range(1, 40)}
    wrong = []

    def ask():
        for cap, step in steps.items():
            if study.step_ms(bucket_cap=cap << 20) != step:
                wrong.append(cap)
        if ddpsim.run(small).record != expected:
            wrong.append('run')
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize('call', ["ddpsim.sweep(small, {'cluster.nodes': '2..5000'})",
                                  'ddpsim.tune(long)'])
def test_ctrl_c_ends_a_call(small, call):
    script = (f'import ddpsim, signal, sys, time\nsmall = {small!r}\nlong = {LONG!r}\n'
              'signal.signal(signal.SIGINT, signal.default_int_handler)\n'
              'ddpsim.sweep, ddpsim.tune  # imported: what is interrupted is the call\n'
              "print('begun', flush=True)\nbegin = time.perf_counter()\n"
              f'try:\n    {call}\nexcept KeyboardInterrupt:\n'
              "    print('interrupted', flush=True)\n    sys.exit(7)\nprint('ended')\n")
    process = subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'begun\n'
    time.sleep(0.5)
    begin = time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == 'interrupted\n'
    assert time.perf_counter() - begin < 3
    assert process.wait(timeout=60) == 7  # and not by a crash at the end
