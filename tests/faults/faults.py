#!/usr/bin/env python3
"""What becomes of a job in which something goes wrong: kinds of faults, moments, ways to run.

    tests/faults/faults.py --ddpsim PROGRAM [--backend NAME...] [--kind NAME...] [--moment NAME...]
    tests/faults/faults.py --ddpsim PROGRAM --few        the part that the test suite runs
    tests/faults/faults.py --list                        what there is
        --module FOLDER    of the module with a fake GPU, for the ranks named gpu
        --busy             each case beside as many programs that are never done as processors
        --results FILE     also writes the table as Markdown (tests/faults/results.md)

Each case is a job of two ranks that validates a small step. One rank fails at a moment (fault.c
sees to that), or something else is wrong all the time: strangers connect, two programs that are
never done take the processors, the disk is full. A row of the table says what every rank said, the
exit code, how long after the fault the job had ended, and what it left behind. It is good if

  a job that must fail ends with code 4 (1 where a plugin ends it) within the timeout and 3 s, with
  a line for the fault, and no `terminate called`; one that must not fail ends with code 0;
  no process of it is left, no file where its ranks met, and no key in Redis.

Where ranks were started one by one, a stopped or killed rank is its launcher's to end: it counts
that the other ranks end, and what the fallen rank had written to a shared place stays there.

Exit code: 0; 1 if a row is bad; 2 for a wrong call; 77 if nothing could be run.
"""
import argparse
import collections
import datetime
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 3  # seconds; of every rank
GRACE = 3  # seconds beyond it
LAUNCHER = TIMEOUT + GRACE  # seconds that hosts give the others after a rank has failed
LATE = 90  # seconds a job that has no fault may take on a loaded machine

SCENARIO = '''name: small
workload:
  model: {family: mlp, widths: [64, 96, 64, 32]}
  batch: 8
  dtype: fp32
  optimizer: sgd
cluster:
  device: generic-cpu
  launch: sync
  ranks_per_node: 2
  intra_node: {latency: 30 us, bandwidth: 1 GB/s}
training:
  bucket_cap: 16 KiB
  first_bucket_cap: 4 KiB
  hooks: [{plugin: {name: fault, parameter: "*", passes: 1}}]
compare: [flat, bucketed]
'''
# Calls of the hook: one for each of six parameters in a step. A run of `none`, from which the
# gradients to expect are known, comes before one checked step of `flat` and one of `bucketed`.
PARAMETERS = 6
CHECKED = f'hook:{PARAMETERS + 3}'
AFTERWARDS = f'hook:{3 * PARAMETERS + 3}'

# Calls of a fake GPU's collectives: `flat` has one, then come those of `bucketed`.
COLLECTIVES = {'gradient check': 'collective:2', 'calibration': 'collective:12',
               'step': 'collective:40'}

BACKENDS = ['processes', 'threads', 'folder', 'redis', 'hosts', 'gpu']
FAULTS = ['kill', 'stop', 'segfault', 'exit', 'threads']
MOMENTS = ['rendezvous', 'connect', 'gradient check', 'calibration', 'step', 'output']
THROUGHOUT = ['outsider', 'busy', 'disk full']
# One of each kind and of each moment; the rest is for the whole table.
FEW = {('processes', 'kill', 'connect'), ('processes', 'stop', 'step'),
       ('processes', 'segfault', 'gradient check'), ('processes', 'threads', 'connect'),
       ('processes', 'exit', 'step'), ('processes', 'outsider', 'throughout'),
       ('processes', 'disk full', 'output'), ('processes', 'kill', 'rendezvous'),
       ('folder', 'stop', 'rendezvous'), ('processes', 'disk full', 'rendezvous'),
       ('gpu', 'kill', 'step'), ('gpu', 'stop', 'step')}

Row = collections.namedtuple('Row', 'backend kind moment code seconds said left wrong')


def cases():
    for backend in BACKENDS:
        for kind in FAULTS:
            for moment in MOMENTS:
                if backend == 'threads' and (moment in ('rendezvous', 'output') or kind == 'stop'):
                    continue  # nobody to meet; who stops all ranks stops the job
                if kind == 'stop' and moment == 'output':
                    continue  # nobody waits any more: the job goes on when the rank does
                if kind in ('exit', 'threads') and moment == 'output':
                    continue  # the work is done by then
                if kind == 'threads' and moment in ('gradient check', 'calibration', 'step'):
                    continue  # all threads are there
                if kind == 'exit' and (moment in ('rendezvous', 'connect') or backend == 'gpu'):
                    continue  # of hooks alone
                yield backend, kind, moment
        for kind in THROUGHOUT:
            yield backend, kind, 'output' if kind == 'disk full' else 'throughout'
        if backend != 'gpu':
            yield backend, 'outsider', 'step'
        if backend not in ('threads', 'redis'):  # these meet in no folder
            yield backend, 'disk full', 'rendezvous'
            yield backend, 'disk full', 'connect'


class Redis:
    """A server of its own."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = str(probe.getsockname()[1])
        self.server = subprocess.Popen(
            ['redis-server', '--port', self.port, '--save', '', '--bind', '127.0.0.1'],
            stdout=subprocess.DEVNULL)
        for _ in range(500):
            if self.ask('ping') == 'PONG':
                return
            time.sleep(0.02)
        raise RuntimeError('redis-server does not answer')

    def ask(self, *words):
        return subprocess.run(['redis-cli', '-p', self.port, *words], capture_output=True,
                              text=True, check=False).stdout.strip()

    def close(self):
        self.server.kill()
        self.server.wait()


class Job:
    """One case, in a folder of its own."""

    def __init__(self, tools, case):
        self.tools, (self.backend, self.kind, self.moment) = tools, case
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='ddpsim-fault-'))
        self.meet = self.folder / 'meet'
        self.temporary = self.folder / 'tmp'
        self.temporary.mkdir()
        self.log = self.folder / 'when'
        self.redis = Redis() if self.backend == 'redis' else None
        self.placed = self.backend in ('folder', 'redis', 'hosts')  # somebody else starts the ranks
        self.faulty_rank = 0 if self.moment == 'output' else 1
        # Which of the threads of a process connects, fault.c cannot know. It counts forks, and the
        # first of a job on GPUs looks for them.
        first_fork = 1 if self.backend == 'gpu' else 0
        self.faulty = 'all' if self.backend == 'threads' and self.moment == 'connect' else \
            str(self.faulty_rank + first_fork)

    def arguments(self):
        words = [self.tools.ddpsim, 'validate', str(self.tools.scenario), '--plugin',
                 str(self.tools.library), '--timeout', f'{TIMEOUT} s', '--repeats', '1',
                 '--warm-up', '1', '--quiet']
        endless = self.moment == 'step' and self.kind in FAULTS
        words += ['--steps', '100000' if endless else '2']
        if self.moment != 'calibration':
            words += ['--calibration', str(self.tools.calibration)]
        full = self.kind == 'disk full' and self.moment == 'output'
        words += ['--json', '/dev/full' if full else 'result.json']
        if self.backend == 'threads':
            words += ['--backend', 'threads', '--ranks', '2']
        elif self.backend == 'gpu':
            words[words.index('--plugin'):words.index('--timeout')] = ['--set', 'training.hooks=[]']
            words += ['--backend', 'nccl', '--gpus-share', '--ranks', '2']
        elif self.backend == 'processes':
            words += ['--ranks', '2']
        elif self.backend == 'redis':
            words += ['--rendezvous', f'redis://127.0.0.1:{self.redis.port}', '--interface', 'lo']
        elif self.backend == 'folder':
            words += ['--rendezvous', f'file:{self.meet}', '--interface', 'lo']
        else:
            words += ['--rendezvous', f'file:{self.meet}', '--interface', 'link0']
            words = [str(HERE.parent / 'links' / 'hosts'), '2', 'unlimited'] + words
        return words

    def environment(self, rank=None):
        values = {**os.environ, 'TMPDIR': str(self.temporary)}
        if self.by_library():
            moments = {'gradient check': CHECKED, 'calibration': AFTERWARDS, 'step': AFTERWARDS}
            moment = (COLLECTIVES if self.backend == 'gpu' else moments).get(self.moment,
                                                                            self.moment)
            kind = 'disk' if self.kind == 'disk full' else self.kind
            values.update(LD_PRELOAD=str(self.tools.library), FAULT_RANK=self.faulty,
                          FAULT_MOMENT=moment, FAULT_KIND=kind, FAULT_LOG=str(self.log))
        if self.backend == 'gpu':
            values['DDPSIM_MODULES'] = self.tools.module
            if self.kind == 'stop':
                # Then its work counts as never done. A busy machine is late by less.
                values['DDPSIM_FAKE_PATIENCE'] = '1000'
        if rank is not None:
            values.update(RANK=str(rank), WORLD_SIZE='2', LOCAL_RANK=str(rank),
                          LOCAL_WORLD_SIZE='2')
        # A stopped rank is theirs to end, and the other has said by then that it does not answer.
        values['LINK_GRACE'] = '1' if self.kind == 'stop' else str(LAUNCHER)
        return values

    def by_library(self):
        """Does fault.c make this fault?"""
        return self.kind in FAULTS + ['outsider'] or self.kind == 'disk full' and \
            self.moment != 'output'

    def start(self):
        places = [0, 1] if self.backend in ('folder', 'redis') else [None]
        started = []
        for place in places:
            error = open(self.folder / f'err{place}', 'wb')
            with error:
                started.append(subprocess.Popen(
                    self.arguments(), env=self.environment(place), stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=error, start_new_session=True,
                    cwd=self.folder))
        return places, started

    def run(self):
        begun = time.time()
        places, started = self.start()
        loops = [subprocess.Popen([sys.executable, '-c', 'while True: pass'])
                 for _ in range(os.cpu_count() if self.kind == 'busy' or self.tools.busy else 0)]
        fallen = self.faulty_rank if self.placed and self.backend != 'hosts' and \
            self.kind in ('kill', 'stop', 'segfault') else -1
        survivors = [each for place, each in zip(places, started) if place != fallen]
        late = False
        for each in survivors:
            try:
                each.wait(timeout=LATE)
            except subprocess.TimeoutExpired:
                late = True
        ended = time.time()
        for loop in loops:
            loop.kill()
            loop.wait()
        codes = [each.returncode for each in survivors]
        left = self.left_processes(started, fallen)
        self.clean_up(started)
        left += self.left_files(fallen >= 0 or self.backend == 'hosts')
        said = self.said(places)
        fault = float(self.log.read_text()) if self.log.exists() else None
        return self.judge(codes, ended - (fault or begun), said, left, late, fault)

    def left_processes(self, started, fallen):
        left = []
        for place, each in enumerate(started):
            if place == fallen:
                continue
            try:
                os.killpg(each.pid, 0)
                left.append('a process')
            except OSError:
                pass
        return left

    def clean_up(self, started):
        for each in started:
            try:
                os.killpg(each.pid, signal.SIGKILL)
            except OSError:
                pass
            each.wait()

    def left_files(self, fallen):
        """What is left where ranks met; what only a fallen rank could have removed is allowed."""
        left = [f'{path.name}' for path in self.temporary.rglob('*')]
        early = self.moment in ('rendezvous', 'connect')
        if not (fallen and early):
            left += [path.name for path in self.meet.rglob('*')] if self.meet.exists() else []
        if self.redis:
            keys = self.redis.ask('dbsize')
            if keys != '0' and not (fallen and early):
                left.append(f'{keys} keys')
            self.redis.close()
        return left

    def said(self, places):
        lines = []
        for place in places:
            text = (self.folder / f'err{place}').read_text(errors='replace')
            lines += [line for line in text.replace('\r', '\n').splitlines()
                      if line.startswith(('ddpsim: ', 'terminate')) or 'what()' in line]
        return lines

    def judge(self, codes, seconds, said, left, late, fault):
        wrong = [f'left: {", ".join(left)}'] if left else []
        if late:
            wrong.append('did not end')
        if any('terminate' in line or 'what()' in line for line in said):
            wrong.append('terminate called')
        must_fail = self.kind not in ('outsider', 'busy')
        if must_fail:
            died = -signal.SIGKILL if self.kind == 'kill' else -signal.SIGSEGV
            alone = self.backend == 'threads' and self.kind in ('kill', 'segfault')
            # A plugin that ends the program is the user's code: neither the machine nor the input.
            good = [died if alone else 1 if self.kind == 'exit' else 4]
            if self.kind == 'exit' and len(codes) > 1:  # the other rank has lost this one
                good += [4]
            if self.backend == 'hosts':  # they say what the first rank to fail ended with
                good += [128 - died]
            # Where the disk is full, who writes nothing has done its work.
            if self.kind == 'disk full' and len(codes) > 1 and self.moment == 'output':
                good += [0]
            # Rank 0 writes after all have parted.
            parted = self.moment == 'output' and self.kind in FAULTS and self.placed
            if parted:
                good = good + [0]
            if any(code not in good for code in codes):
                wrong.append(f'code not {good[0]}')
            if not said and self.backend != 'threads' and not parted:
                wrong.append('no line')
            if fault is None and self.by_library():
                wrong.append('no fault was made')
            limit = TIMEOUT + GRACE
            if self.by_library() and seconds > limit:
                wrong.append(f'later than {limit} s')
        elif any(codes):
            wrong.append('code not 0')
        if self.kind == 'outsider' and fault is None:
            wrong.append('no outsider came in')
        shutil.rmtree(self.folder)
        code = ' '.join(str(each) for each in codes)
        return Row(self.backend, self.kind, self.moment, code, seconds, said, left, wrong)


class Tools:
    """What all cases need: the library that makes faults, a scenario, a calibration."""

    def __init__(self, ddpsim, module, busy):
        self.ddpsim = str(pathlib.Path(ddpsim).resolve())
        self.module, self.busy = module and str(pathlib.Path(module).resolve()), busy
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='ddpsim-faults-'))
        self.library = self.folder / 'fault.so'
        header = HERE.parents[1] / 'backend' / 'plugin'
        subprocess.run(['cc', '-shared', '-fPIC', '-O1', '-I', str(header), '-o',
                        str(self.library), str(HERE / 'fault.c'), '-ldl'], check=True)
        self.scenario = self.folder / 'small.yaml'
        self.scenario.write_text(SCENARIO)
        self.calibration = self.folder / 'calibration.yaml'
        subprocess.run([self.ddpsim, 'calibrate', str(self.scenario), '--backend', 'threads',
                        '--ranks', '2', '--repeats', '1', '--smallest', '128 KiB', '--largest',
                        '256 KiB', '--set', 'training.hooks=[]', '-o', str(self.calibration),
                        '--quiet'], check=True)

    def close(self):
        shutil.rmtree(self.folder)


def missing(backend, module):
    """Why nothing can be run that way here; None: it can."""
    if backend == 'gpu' and not module:
        return '--module names no folder'
    if backend == 'redis' and not shutil.which('redis-server'):
        return 'redis-server is not installed'
    if backend == 'hosts' and (os.geteuid() != 0 or not shutil.which('tc')):
        return 'hosts need root, ip and tc'
    return None


def show(row):
    verdict = 'bad: ' + '; '.join(row.wrong) if row.wrong else 'good'
    print(f'{row.backend:10} {row.kind:10} {row.moment:15} {row.code:>6} {row.seconds:7.1f}  '
          f'{", ".join(row.left) or "nothing":10} {verdict}')
    for line in row.said:
        print(f'{"":20} {line}')
    sys.stdout.flush()


def table(rows, busy):
    """The rows as Markdown."""
    head = ['ranks', 'fault', 'moment', 'exit code', 'seconds later', 'left', 'what was said']
    lines = [f'| {" | ".join(head)} |', '|---|---|---|--:|--:|---|---|']
    for row in rows:
        said = '<br>'.join(re.sub(r'/tmp/ddpsim-fault-\w+', '', line).replace('|', '\\|')
                           for line in row.said) or '-'
        verdict = f'**{"; ".join(row.wrong)}**<br>' if row.wrong else ''
        lines.append(f'| {row.backend} | {row.kind} | {row.moment} | {row.code} | '
                     f'{row.seconds:.1f} | {", ".join(row.left) or "nothing"} | {verdict}{said} |')
    bad = sum(1 for row in rows if row.wrong)
    beside = ', beside as many busy programs as processors' if busy else ''
    return ('# What becomes of a job in which something goes wrong\n\n'
            '`tests/faults/faults.py --results` writes this table and says what its columns are '
            'and what is good.\n'
            f'{len(rows)} cases{beside}, {bad} bad; {datetime.date.today()}, {os.cpu_count()} '
            f'processors, `--timeout` {TIMEOUT} s.\n\n' + '\n'.join(lines) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ddpsim')
    parser.add_argument('--module')
    parser.add_argument('--busy', action='store_true')
    parser.add_argument('--results')
    parser.add_argument('--few', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--backend', nargs='+', choices=BACKENDS, default=BACKENDS)
    parser.add_argument('--kind', nargs='+', choices=FAULTS + THROUGHOUT,
                        default=FAULTS + THROUGHOUT)
    parser.add_argument('--moment', nargs='+', choices=MOMENTS + ['throughout'],
                        default=MOMENTS + ['throughout'])
    wanted = parser.parse_args()
    chosen = [case for case in cases() if case[0] in wanted.backend and case[1] in wanted.kind
              and case[2] in wanted.moment and (not wanted.few or case in FEW)]
    if wanted.list:
        print('\n'.join(', '.join(case) for case in chosen))
        return 0
    if not wanted.ddpsim:
        parser.error('--ddpsim PROGRAM is needed')
    for backend in BACKENDS:
        reason = missing(backend, wanted.module)
        if reason and any(case[0] == backend for case in chosen):
            print(f'not run: {backend}: {reason}')
            chosen = [case for case in chosen if case[0] != backend]
    if not chosen:
        return 77
    tools = Tools(wanted.ddpsim, wanted.module, wanted.busy)
    try:
        print(f'{"ranks":10} {"fault":10} {"moment":15} {"code":>6} {"s later":>7}  {"left":10}')
        rows = []
        for case in chosen:
            rows.append(Job(tools, case).run())
            show(rows[-1])
    finally:
        tools.close()
    if wanted.results:
        pathlib.Path(wanted.results).write_text(table(rows, wanted.busy))
    bad = sum(1 for row in rows if row.wrong)
    print(f'{len(rows)} cases, {bad} bad')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
