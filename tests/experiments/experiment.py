"""What the experiments share: hosts to measure on, when and where that was, and kept results.

An experiment holds predictions against real runs. It prints what it found as text and, with
--json FILE, adds the run to the results in FILE. tests/experiments/results/ holds such a file for
each experiment, and tools/accuracy writes docs/accuracy.md from them:

    {"format": "ddpsim.experiment/1", "experiment": "tests/experiments/comm_hooks.py",
     "runs": [{"date", "revision", "version", "machine", "load_before", "command",
               "conditions": [...], "settings": {...}, "summary": {...}, "cases": [{...}, ...]}]}

Runs stand in the order they were made. Errors are fractions: predicted over measured, minus 1. A
run keeps its cases until later runs have measured every one of them again. Its summary stays, so
that the file tells how results spread over runs.
"""
import datetime
import json
import math
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LINKS = ROOT / 'tests/links'
sys.path.insert(0, str(LINKS))
import pace  # of tests/links

FORMAT = 'ddpsim.experiment/1'
MIB = 1 << 20


# The machine.

def first_line(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    said = done.stdout.strip().splitlines()
    return said[0] if done.returncode == 0 and said else 'unknown'


def revision():
    return first_line(['git', 'describe', '--always', '--dirty'])


def machine():
    cpu = 'unknown CPU'
    with open('/proc/cpuinfo') as file:
        for line in file:
            if line.startswith('model name'):
                cpu = line.split(':', 1)[1].strip()
                break
    return f'{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}'


def command_line():
    script = pathlib.Path(sys.argv[0]).resolve()
    name = script.relative_to(ROOT) if script.is_relative_to(ROOT) else script
    return shlex.join([str(name), *sys.argv[1:]])


def provenance(ddpsim, rates=()):
    """When, where and with what a run is made, and how fit for measuring the machine is: what
    links of these rates let through, and whether processors compute at one pace. Takes half a
    minute, and prints what it found, for what follows takes longer."""
    if not os.access(ddpsim, os.X_OK):
        sys.exit(f'{ddpsim}: no such program; build it or give --ddpsim')
    made = {'date': f'{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}',
            'revision': revision(), 'version': first_line([ddpsim, '--version']),
            'machine': machine(),
            'load_before': ' '.join(f'{value:.2f}' for value in os.getloadavg()),
            'command': command_line()}
    made['conditions'] = [*map(lets_through, rates), pace.measure()[0]]
    print('\n'.join(provenance_lines(made)), file=sys.stderr)
    return made


def provenance_kept(folder, reuse, ddpsim, rates):
    """The provenance in that folder of results; made first unless it may be used as it is."""
    taken = folder / 'provenance.json'
    if not (reuse and taken.exists()):
        taken.write_text(json.dumps(provenance(ddpsim, rates), indent=1) + '\n')
    return json.loads(taken.read_text())


def provenance_lines(made):
    return [made['date'], f'{made["machine"]}, load before {made["load_before"]}',
            f'revision {made["revision"]}, {made["version"]}', made['command'], *made['conditions']]


# Two hosts.

def on_hosts(rate, command, limit):
    """What `command`, run once in each of two hosts, prints; ends this program if it fails."""
    words = [*map(str, command)]
    try:
        done = subprocess.run([LINKS / 'hosts', '2', rate, *words], capture_output=True, text=True,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        sys.exit(f'not done after {limit:g} s at {rate}: {shlex.join(words)}')
    if done.returncode != 0:
        print(done.stderr, end='', file=sys.stderr)
        print(f'exit {done.returncode} at {rate}: {shlex.join(words)}', file=sys.stderr)
        sys.exit(77 if done.returncode == 77 else 1)
    return done.stdout


def lets_through(rate):
    """A sentence on one stream between two hosts."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-goodput-') as scratch:
        best = float(on_hosts(rate, [LINKS / 'goodput.py', f'{scratch}/stop', '--seconds', 5], 300))
    return f'a link of {rate} lets {best:.3g} Gbit/s through (payload is 0.956 of a rate)'


def validate(arguments, rate, scenario, caps, file, repeats=15):
    """The results of one `ddpsim validate`, also left in `file`. Each kernel, all-reduce and other
    collective is measured `repeats` times to predict from."""
    with tempfile.TemporaryDirectory(prefix='ddpsim-rendezvous-') as meeting:
        on_hosts(rate,
                 [arguments.ddpsim, 'validate', scenario, '--backend', 'gloo',
                  '--rendezvous', f'file:{meeting}', '--interface', 'link0',
                  '--caps', ','.join(f'{cap:g}MiB' for cap in caps), '--steps', arguments.steps,
                  '--repeats', repeats, '--warm-up', 5, '--json', file,
                  *shlex.split(arguments.validate_arguments)], arguments.limit)
    return read_validation(file)


def read_validation(file):
    with open(file) as source:
        document = json.load(source)
    if document['format'] != 'ddpsim.validate/1':
        sys.exit(f'{file}: expected format ddpsim.validate/1, got {document["format"]}')
    return [result for result in document['results'] if result['strategy'] != 'none']


# Arguments.

def common_arguments(parser):
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim', help='the program')
    parser.add_argument('--limit', type=float, default=1800, help='seconds an invocation may take')
    parser.add_argument('--json', help='add this run to the results in this file')


def validate_arguments(parser):
    parser.add_argument('--steps', type=int, default=20, help='measured steps of each case')
    parser.add_argument('--validate-arguments', default='',
                        help='more of them for `ddpsim validate`, in one word')


# Judging.

def percentile(values, share):
    """The smallest value that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def error_summary(errors, within):
    """What a run's errors come to; `within`: how many are at most that."""
    sizes = [abs(error) for error in errors]
    return {'cases': len(sizes), 'median_error': statistics.median(sizes),
            'ninth_decile_error': percentile(sizes, 0.9), 'worst_error': max(sizes),
            'within': within, 'cases_within': sum(size <= within for size in sizes)}


class Targets:
    """What was to hold, and whether it did."""

    def __init__(self):
        self.lines, self.met = [], True

    def __call__(self, text, met):
        self.met = self.met and met
        self.lines.append(f'* {text}: {"met" if met else "not met"}')

    def note(self, text):
        self.lines.append(f'* {text}')

    def exit_code(self):
        return 0 if self.met else 3


# Results.

def rounded(value):
    """Numbers of a result with six significant digits, which is more than any clock tells."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    if not isinstance(value, float):
        return value
    value = float(f'{value:.6g}')
    return int(value) if value.is_integer() and abs(value) >= 1000 else value


def text_of(document):
    """JSON with a line for each innermost object: a changed case is a changed line."""
    def lines(items, brackets, indent):
        inner = ' ' * (indent + 1)
        return (brackets[0] + '\n' + ',\n'.join(inner + item for item in items) + '\n'
                + ' ' * indent + brackets[1])

    def laid_out(value, indent):
        parts = [*value.values()] if isinstance(value, dict) else value
        if isinstance(value, dict) and any(isinstance(part, (dict, list)) for part in parts):
            return lines([f'{json.dumps(key)}: {laid_out(part, indent + 1)}'
                          for key, part in value.items()], '{}', indent)
        if isinstance(value, list) and any(isinstance(part, (dict, str)) for part in parts):
            return lines([laid_out(part, indent + 1) for part in parts], '[]', indent)
        return json.dumps(value)
    return laid_out(document, 0) + '\n'


def computed_now(program):
    """Of a run that measures nothing: when, where and with what it was computed."""
    return {'date': f'{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}',
            'revision': revision(), 'version': first_line([program, '--version']),
            'machine': machine(), 'command': command_line()}


def keys_of(run, key):
    return {tuple(case[part] for part in key) for case in run.get('cases', [])}


def with_run(document, run, key):
    """The results with one run more. `key` names what tells cases apart: a run all of whose cases
    were measured again later loses them."""
    runs = [*document['runs'], rounded(run)]
    seen = set()
    for each in reversed(runs):
        keys = keys_of(each, key)
        if keys and keys <= seen:
            del each['cases']
        seen |= keys
    return {**document, 'runs': runs}


def add_run(file, experiment, run, key):
    file = pathlib.Path(file)
    name = str(pathlib.Path(experiment).resolve().relative_to(ROOT))
    empty = {'format': FORMAT, 'experiment': name, 'runs': []}
    document = json.loads(file.read_text()) if file.exists() else empty
    if (document['format'], document['experiment']) != (FORMAT, name):
        sys.exit(f'{file}: holds results of {document["experiment"]}, not of {name}')
    part = file.with_name(file.name + '.part')
    part.write_text(text_of(with_run(document, run, key)))
    part.rename(file)
