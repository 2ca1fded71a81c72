#!/usr/bin/env python3
"""Files as they are written and read again, and limits of the machine: what a user loses nothing
to, and is told in one line.

    files_test.py --list                    names the cases
    files_test.py --ddpsim PROGRAM CASE
"""
import argparse
import fcntl
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = TREE / 'scenarios' / 'examples'
FIRST = EXAMPLES / 'first.yaml'
SMALL = """\
name: small
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
training: {bucket_cap: 16 KiB, first_bucket_cap: 4 KiB}
"""
PROGRAM = None


def expect(condition, *facts):
    if not condition:
        sys.exit('not as expected: ' + '\n'.join(str(fact) for fact in facts))


def nobody_else():
    """A user who has no process, nor has one in a test that runs beside this one."""
    return 60_000 + os.getpid() % 5_000


def ddpsim(*words, limits=(), user=None, **rest):
    """Runs the program under `limits`, pairs of a resource and its limit, as `user`."""
    def before():
        for what, most in limits:
            resource.setrlimit(what, (most, most))
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True,
                          preexec_fn=before, errors='backslashreplace', timeout=300, **rest)


def expect_one_line(done, code, *parts):
    """Ended with `code` and one line on stderr, which has all `parts`."""
    expect(done.returncode == code, done.args, done.returncode, done.stdout[-500:], done.stderr)
    expect(done.stderr.startswith('ddpsim: ') and done.stderr.count('\n') == 1, done.stderr)
    for part in parts:
        expect(part in done.stderr, f'"{part}" is missing in', done.stderr)


def sealed_profile(folder):
    """A profile as the program writes it."""
    path = folder / 'profile.yaml'
    done = ddpsim('import', 'torch-profile', EXAMPLES / 'profiles/profile.yaml', '-o', path, '-q')
    expect(done.returncode == 0, done.stderr)
    return path


def read(path):
    return ddpsim('import', 'torch-profile', path, '-q')


def damage(folder):
    """a file in which a line is missing or a digit changed is refused"""
    path = sealed_profile(folder)
    whole = path.read_text()
    lines = whole.splitlines(keepends=True)
    expect(re.search(r'\nend: ddpsim.workload/1  # \d+ lines, crc32 [0-9a-f]{8}\n$', whole), whole)
    for left_out in range(0, len(lines), 5):
        path.write_text(''.join(lines[:left_out] + lines[left_out + 1:]))
        expect_one_line(read(path), 2, 'profile.yaml:')
    for at in [found.start() for found in re.finditer(r'\d', whole)][::97]:
        path.write_text(whole[:at] + str((int(whole[at]) + 1) % 10) + whole[at + 1:])
        expect_one_line(read(path), 2, 'this file is not as ddpsim wrote it', 'remove the comment')


def edited(folder):
    """a file without a checksum is read, with a note; line ends of another system change nothing"""
    path = sealed_profile(folder)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'\n', b'\r\n'))
    expect(read(path).returncode == 0, read(path).stderr)
    scenario = folder / 's.yaml'
    scenario.write_text('name: s\nworkload: {model: profile.yaml}\n'
                        'cluster: {device: t4, ranks_per_node: 2, intra_node: pcie3}\n')
    expect('checksum' not in ddpsim('run', scenario).stderr)
    path.write_text(re.sub('  # .* lines, crc32 .*', '', whole.decode()))
    done = ddpsim('run', scenario)
    expect(done.returncode == 0 and 'note: ' in done.stderr
           and 'profile.yaml has no checksum in its last line' in done.stderr, done.stderr)


def mode(folder):
    """a replaced file keeps its mode, and its owner where that can be kept"""
    path = folder / 'a.json'
    for bits in (0o600, 0o640, 0o666):
        path.write_text('old')
        path.chmod(bits)
        if os.geteuid() == 0:
            os.chown(path, 1234, 1235)
        expect(ddpsim('run', FIRST, '-q', '--json', path).returncode == 0)
        there = path.stat()
        expect(stat.S_IMODE(there.st_mode) == bits, oct(there.st_mode))
        expect(there.st_size > 100)
        if os.geteuid() == 0:
            expect((there.st_uid, there.st_gid) == (1234, 1235), there)


def links(folder):
    """a file with two names keeps both, and a link to no file leads to the result"""
    path, other = folder / 'a.json', folder / 'other.json'
    path.write_text('x' * 100_000)
    os.link(path, other)
    expect(ddpsim('run', FIRST, '-q', '--json', path).returncode == 0)
    expect(path.samefile(other) and other.read_text().endswith('}\n'), other.read_text()[-50:])
    (folder / 'sub').mkdir()
    link = folder / 'link.csv'
    link.symlink_to('sub/real.csv')
    expect(ddpsim('run', FIRST, '-q', '--csv', link).returncode == 0)
    expect(link.is_symlink() and (folder / 'sub/real.csv').stat().st_size > 100)
    expect_one_line(ddpsim('run', FIRST, '-q', '--csv', link, '--json', folder / 'sub/real.csv'), 2,
                    'are one file')


def in_place(folder):
    """a file that may be written is, in a folder that may not"""
    if os.geteuid() != 0:
        return
    folder.chmod(0o755)
    closed = folder / 'closed'
    closed.mkdir()
    path = closed / 'a.json'
    path.write_text('x' * 100_000)
    path.chmod(0o666)
    closed.chmod(0o555)
    done = ddpsim('list', 'devices', '-q', '--json', path, user=1234)
    expect(done.returncode == 0 and path.read_text().endswith(']\n'), done.stderr)
    expect(os.listdir(closed) == ['a.json'])
    path.chmod(0o444)
    expect_one_line(ddpsim('list', 'devices', '-q', '--json', path, user=1234), 4,
                    'Permission denied')


def catalogue(folder):
    """a result does not overwrite an entry of the catalogue"""
    entry = TREE / 'scenarios/catalogue/devices/t4.yaml'
    before = entry.read_bytes()
    expect_one_line(ddpsim('run', FIRST, '-q', '--json', entry), 2,
                    'would overwrite a file of the catalogue')
    expect(entry.read_bytes() == before)


def measured(folder):
    """what was measured is kept elsewhere if its file cannot be written in the end"""
    (folder / 's.yaml').write_text(SMALL)
    place = folder / 'sub'
    place.mkdir()
    running = subprocess.Popen(
        [PROGRAM, 'calibrate', 's.yaml', '--backend', 'threads', '--ranks', '2', '--repeats', '2',
         '--largest', '64 KiB', '-q', '-o', 'sub/machine.yaml'],
        cwd=folder, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    place.rmdir()
    _, said = running.communicate(timeout=280)
    expect(running.returncode != 0 and said.count('\n') == 1, said)
    expect('cannot be written' in said and 'what was measured is in ./machine.kept.yaml' in said,
           said)
    done = ddpsim('run', folder / 's.yaml', '-q', '--set', 'cluster.calibration=machine.kept.yaml')
    expect(done.returncode == 0, done.stderr)


def size_limit(folder):
    """a limit on the size of files is an error like a full disk"""
    for flag in ('--json', '--csv', '--trace'):
        done = ddpsim('run', FIRST, '-q', flag, 'out', cwd=folder,
                      limits=[(resource.RLIMIT_FSIZE, 1000)])
        expect_one_line(done, 4, 'out: cannot be written: File too large')
    expect(os.listdir(folder) == [], os.listdir(folder))


def threads(folder):
    """where threads cannot be started fewer compute, and where none can one line says so"""
    csv = folder / 'rows.csv'
    processors = len(os.sched_getaffinity(0))
    done = ddpsim('sweep', FIRST, '--vary', 'training.bucket_cap=1KiB..400KiB', '--csv', csv,
                  '--jobs', '900', '--set', 'compare=[flat]')
    expect(done.returncode == 0 and 'threads are no quicker than '
           f'{8 * processors} on {processors} processor' in done.stderr, done.stderr)
    expect(len(csv.read_text().splitlines()) == 1 + 400)
    for most in (60, 70, 80, 100, 150):
        done = ddpsim('sweep', FIRST, '--vary', 'training.bucket_cap=1MiB,2MiB', '--csv',
                      folder / f'{most}.csv', limits=[(resource.RLIMIT_AS, most << 20)])
        expect(done.returncode in (0, 4, 2, 127) and 'terminate' not in done.stderr
               and 'std::' not in done.stderr, most, done.returncode, done.stderr)


def processes(folder):
    """where a user may start no more processes or threads, every command says so or does without"""
    if os.geteuid() != 0:
        return
    folder.chmod(0o777)
    (folder / 's.yaml').write_text(SMALL)
    user = nobody_else()  # all of the limit is ours
    rank = ['--ranks', '2', '--timeout', '2 s', '-q']
    sweep = ['sweep', FIRST, '--vary', 'training.bucket_cap=1MiB..4MiB', '-q', '--csv']
    # One line for each rank, or one alone; what needs no thread works.
    cases = [(['run', FIRST, '-q'], 1, 0, ''), (['tune', FIRST, '-q'], 1, 0, ''),
             ([*sweep, folder / '1.csv'], 1, 4, 'no thread could be started'),
             ([*sweep, folder / '2.csv'], 2, 0, '1 computes all points'),
             (['validate', folder / 's.yaml', *rank], 1, 4, 'rank 0 of 2 could not be started'),
             (['validate', folder / 's.yaml', *rank], 2, 4, 'rank 1 of 2 could not be started'),
             (['validate', folder / 's.yaml', *rank], 3, 4, 'ulimit -u'),
             (['validate', folder / 's.yaml', *rank, '--backend', 'threads'], 1, 4,
              'thread 0 of 2 could not be started'),
             (['validate', folder / 's.yaml', *rank, '--backend', 'threads'], 4, 4, 'ulimit -u'),
             (['calibrate', folder / 's.yaml', *rank, '-o', folder / 'c.yaml'], 1, 4, 'rank 0 of'),
             (['describe', EXAMPLES / 'python/describe.py:make', '-o', folder / 'd.yaml'], 1, 4,
              'ulimit -u'),
             (['doctor', '-q'], 1, 0, ''), (['doctor', '-q'], 2, 0, ''),
             (['explore', FIRST, '--for', '1s'], 1, 4, 'no thread could be started'),
             (['explore', FIRST, '--for', '1s'], 2, 0, 'open this address')]
    for words, most, code, part in cases:
        done = ddpsim(*words, user=user, cwd=folder, limits=[(resource.RLIMIT_NPROC, most)])
        facts = words, most, done.returncode, done.stderr
        expect(done.returncode == code and part in done.stderr, *facts)
        expect(not re.search(r'terminate|std::|what\(\)|\.cc:|filesystem error', done.stderr),
               *facts)
        expect(done.stderr.count('\n') <= 2, *facts)


def locks(folder):
    """another user's lock of a sweep's file is heeded, and one that cannot be taken is told"""
    if os.geteuid() != 0:
        return
    folder.chmod(0o777)
    user = nobody_else()
    words = ['sweep', FIRST, '--vary', 'training.bucket_cap=1MiB..3MiB', '-q', '--csv']
    lock = folder / 'a.csv.lock'
    lock.write_text('4321\n')
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = ddpsim(*words, folder / 'a.csv', user=user)
        expect_one_line(done, 4, 'another process of ddpsim (process 4321) is writing it')
    lock.chmod(0o600)
    done = ddpsim(*words, folder / 'a.csv', user=user)
    expect(done.returncode == 0 and 'a.csv: no lock can be taken' in done.stderr, done.stderr)


def sealed_files(folder):
    """what a program of ours wrote and this tree keeps has a checksum"""
    found = 0
    for path in [*(TREE / 'scenarios').rglob('*.yaml'), *(TREE / 'tests').rglob('*.yaml')]:
        text = path.read_text()
        if re.search(r'^(written_by:|format: ddpsim.calibration)', text, re.M):
            expect(re.search(r'^end: .*  # \d+ lines, crc32 [0-9a-f]{8}$', text, re.M), path)
            found += 1
    expect(found >= 2, found)


def temporary(folder):
    """a TMPDIR that is none is named"""
    (folder / 's.yaml').write_text(SMALL)
    done = ddpsim('validate', folder / 's.yaml', '--ranks', '2', '-q',
                  env=os.environ | {'TMPDIR': '/nope'})
    expect_one_line(done, 4, 'TMPDIR')
    expect('filesystem error' not in done.stderr, done.stderr)


def memory(folder):
    """YAML of millions of values is refused before it takes memory, and none is said in one line"""
    path = folder / 's.yaml'
    for text in ('a: [' + '1,' * 4_000_000 + '1]\n', '[' * 4_000_000, '- 1\n' * 2_000_000):
        path.write_text(text)
        done = ddpsim('run', path, limits=[(resource.RLIMIT_AS, 400 << 20)])
        expect_one_line(done, 2, 's.yaml:1:1: ', 'at most 1500000 are read')
    path.write_text('a: [' + '1,' * 1_400_000 + '1]\n')
    done = ddpsim('run', path, limits=[(resource.RLIMIT_AS, 200 << 20)])
    expect_one_line(done, 4, 'not enough memory')


def escapes(folder):
    """Markdown and errors obey nothing, and no line is endless"""
    path = folder / 's.yaml'
    path.write_text(FIRST.read_text().replace('name: ', 'name: "\\e]0;x\\a\u202e\u2066\u061c" # '))
    done = ddpsim('run', path, '-q', '--markdown', '-')
    expect(done.returncode == 0, done.stderr)
    expect(not re.search('[\x1b\x07\u202e\u2066\u061c]', done.stdout), done.stdout[:300])
    expect('\\u202e' in done.stdout.replace('\\\\', '\\'), done.stdout[:300])
    done = ddpsim('run', '/x' * 18_000 + '/end.yaml')
    expect_one_line(done, 2, ' ... ', 'end.yaml: no such file')
    expect(len(done.stderr) < 3100, len(done.stderr))


def secrets(folder):
    """a line of a file that is no YAML of ours is not quoted"""
    (folder / 'shadow').write_text('root:$6$abc:19000:0:99999:7:::\nbin:*:1\n')
    path = folder / 's.yaml'
    path.write_text('name: x\nworkload: {model: resnet50, batch: 8}\n'
                    'cluster: {device: shadow, ranks_per_node: 2, intra_node: nvlink4}\n')
    for words in ([], ['--set', 'cluster.device=./shadow']):
        done = ddpsim('run', path, *words, cwd=folder)
        expect(done.returncode == 2 and '$6$' not in done.stdout + done.stderr, done.stderr)


CASES = [damage, edited, mode, links, in_place, catalogue, measured, size_limit, threads, processes,
         locks, sealed_files, temporary, memory, escapes, secrets]


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--ddpsim')
    parser.add_argument('case', nargs='?')
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(case.__doc__ for case in CASES))
        return
    PROGRAM = os.path.abspath(arguments.ddpsim)
    for case in CASES:
        if arguments.case in (None, case.__doc__, case.__name__):
            with tempfile.TemporaryDirectory() as folder:
                case(pathlib.Path(folder))


if __name__ == '__main__':
    main()
