#!/usr/bin/env python3
"""Every key that commands write as JSON or CSV is in docs/results.md, as it is written.

    results_test.py --ddpsim PROGRAM [--update]

The lists of the page are made here: a command is run, its keys are taken from what it wrote, and
their types, units and meanings from `ddpsim list results`. `--update` writes them into the page,
between `<!-- Keys: NAME -->` and `<!-- End. -->`.

Exit code: 0; 1 if a list is not as the page has it, if a key has no meaning or a value of another
type, or if `ddpsim list results` has a key that no command here wrote.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / 'docs/results.md'
FIRST, SLOW_LINK = 'scenarios/examples/first.yaml', 'scenarios/seeds/comm-hooks-slow-link.yaml'
SMALL = ('--set', 'workload.model.widths=[64,96,64]', '--set', 'compare=[bucketed]')
# Replicas that are each sharded among four ranks.
SHARDED = ('--set', 'training={strategy: fsdp, replicate: 2, micro_batches: 2}', '--set',
           'compare=[bucketed, fsdp]')
# What `validate` predicts from: two sizes of all-reduces and no hooks, which takes a second.
CALIBRATE = ('calibrate', 'scenarios/examples/mlp-2ranks.yaml', '--backend', 'threads', '--ranks',
             '2', '--repeats', '1', '--smallest', '128 KiB', '--largest', '256 KiB', '--set',
             'training.hooks=[]', *SMALL, '-o', 'quick.yaml', '--quiet')

# What is run, by a name of its own.
COMMANDS = {
    'run': ('run', FIRST, '--why', '--steps', '3', '--run-ahead', '--ddp-statistics', '--set',
            'cluster.jitter=1%', '--seeds', '3', '--scaling',
            '16', '--cluster', 'dgx-h100', '--nodes', '2', '--set', 'cluster.price=2 USD/h',
            '--set', 'training.bucket_cap=25 MiB'),
    'run of ranks that differ': ('run', 'scenarios/examples/straggler.yaml', '--why', '--set',
                                 'cluster.exceptions=[{rank: 5, compute: 1.3, pause: 1 ms, at: '
                                 '40 %}, {node: 1, nic: 40 GB/s}]'),
    'run with broadcasts': ('run', FIRST, '--why', '--set', 'training.comm_hook=zero_step'),
    'run through the host': ('run', FIRST, '--why', '--set', 'cluster.through_host=20 GB/s'),
    'run of one rank': ('run', FIRST, '--set', 'cluster.ranks_per_node=1', '--scaling', '4'),
    'run of a description': ('run', 'described.yaml'),
    'run of shards': ('run', FIRST, '--why', *SHARDED),
    'run of zero2': ('run', FIRST, '--why', '--set', 'compare=[zero2]', '--set',
                     'training.zero2={reduce_bucket_size: 20000000}'),
    'run in one queue': ('run', FIRST, '--why', '--set', 'compare=[fsdp]', '--set',
                         'training={strategy: fsdp, cuda_device_max_connections: 1}'),
    'schedule of shards': ('schedule', FIRST, *SHARDED),
    'run --vary': ('run', FIRST, '--vary', 'training.comm_hook=none,fp16_compress'),
    'tune': ('tune', FIRST, '--uncertainty', '10%'),
    'tune of fsdp': ('tune', FIRST, '--set', 'training={strategy: fsdp}'),
    'tune of torch': ('tune', FIRST, '--set', 'training={strategy: zero1}'),
    'tune of a course': ('tune', FIRST, '--set',
                         'training={strategy: zero1, zero1: {variant: course}}'),
    'tune of megatron': ('tune', FIRST, '--set',
                         'training={strategy: zero1, zero1: {variant: megatron}}'),
    'tune of zero3': ('tune', FIRST, '--set', 'training={strategy: zero3}'),
    'sweep': ('sweep', FIRST, '--vary', 'cluster.ranks_per_node=1,2,0'),
    'plan': ('plan', FIRST, '--cluster', 'dgx-h100', '--gpus', '4,16', '--set',
             'cluster.price=2 USD/h'),
    'score': ('score', 'scenarios/measured/brandon-snider-2xh100.yaml'),
    'validate': ('validate', 'scenarios/examples/mlp-2ranks.yaml', '--backend', 'threads',
                 '--ranks', '2', '--steps', '1', '--warm-up', '0', '--repeats', '1',
                 '--calibration', 'quick.yaml', '--set',
                 'cluster.exceptions=[{rank: 1, compute: 1.2}]', *SMALL),
    'schedule of a step': ('schedule', FIRST),
    'schedule with broadcasts': ('schedule', FIRST, '--set', 'training.comm_hook=zero_step'),
    'schedule': ('schedule', FIRST, '--steps', '3', '--cluster', 'dgx-h100', '--nodes', '2',
                 '--set', 'training.micro_batches=2'),
    'doctor': ('doctor', '--seconds', '1'),
}
DESCRIBED = f"""workload: {{model: {ROOT}/tests/data/descriptions/gpt2.yaml}}
cluster: {{device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}}
"""


class Section:
    """A list of the page: of which commands, which part of what they wrote, and the groups of
    `ddpsim list results` that say what its keys mean, the first that has a key. `flag` is the one
    that they write it for, with the kind of file behind a dot where a flag takes several. A list
    of columns of CSV does not repeat what the lists `told` say."""

    def __init__(self, commands, part, groups, flag='--json', told=()):
        self.commands, self.part, self.groups, self.flag = commands, part, groups, flag
        self.told = told


RUNS = ('run', 'run of one rank', 'run of a description', 'run --vary', 'run of ranks that differ',
        'run with broadcasts', 'run through the host', 'run of shards', 'run of zero2',
        'run in one queue')
TUNED_SHARDS = ('tune of fsdp', 'tune of torch', 'tune of a course', 'tune of megatron',
                'tune of zero3')
SECTIONS = {
    'cluster': Section(('run', 'run of one rank', 'run of ranks that differ'), 'cluster',
                       ['cluster']),
    'memory': Section(RUNS, 'results[].memory', ['memory']),
    'bucket': Section(RUNS, 'results[].buckets[]', ['buckets']),
    'unit': Section(RUNS, 'results[].units[]', ['units', 'collectives', 'buckets', 'why']),
    'result': Section(RUNS, 'results[]',
                      ['run', 'units', 'throughput', 'scaling', 'seeds', 'memory', 'steps', 'why',
                       'collectives']),
    'run': Section(RUNS, '', ['run', 'described']),
    'run --csv': Section(('run', 'run --vary'), '',
                         ['run', 'throughput', 'memory', 'seeds', 'sweep', 'why'], '--csv',
                         ('result', 'run')),
    'choice': Section(('tune',), 'caps[]', ['tune']),
    'tune': Section(('tune',), '', ['tune', 'cluster', 'memory']),
    'sharding': Section(TUNED_SHARDS, 'shardings[]', ['shards']),
    'shards': Section(TUNED_SHARDS, '', ['shards', 'tune', 'cluster', 'memory']),
    'shards --csv': Section(('tune of fsdp',), '', ['shards'], '--csv', ('shards',)),
    'tune --csv': Section(('tune',), '', ['tune'], '--csv', ('tune',)),
    'sweep': Section(('sweep',), '', ['sweep', 'run', 'throughput', 'memory']),
    'sweep --csv': Section(('sweep',), '', ['sweep', 'run', 'throughput', 'memory'], '--csv',
                           ('sweep',)),
    'plan': Section(('plan',), '', ['plan', 'run', 'throughput', 'cluster', 'memory']),
    'plan --csv': Section(('plan',), '', ['plan', 'run', 'throughput', 'cluster', 'memory'],
                          '--csv', ('plan',)),
    'score': Section(('score',), '', ['score']),
    'score --csv': Section(('score',), '', ['score'], '--csv', ('score',)),
    'validate': Section(('validate',), '', ['validate', 'run', 'cluster']),
    'validate --csv': Section(('validate',), '', ['validate', 'run', 'throughput', 'memory'],
                              '--csv', ('result', 'validate')),
    'schedule': Section(('schedule', 'schedule with broadcasts', 'schedule of shards'), '',
                        ['schedule', 'units', 'collectives', 'cluster', 'memory']),
    'schedule --csv': Section(('schedule of a step',), '', ['schedule', 'buckets'], '--csv',
                              ('schedule', 'bucket')),
    'hooks log': Section(('run',), '', ['hooks-log'], '--hooks-log.json'),
    'hooks log, CSV': Section(('run of one rank',), '', ['hooks-log'], '--hooks-log.csv',
                              ('hooks log',)),
    'doctor': Section(('doctor',), '', ['doctor']),
}
# Objects that have a list of their own, by the end of their path.
SHARED = {'cluster': 'cluster', 'memory': 'memory', 'results[]': 'result', 'buckets[]': 'bucket',
          'units[]': 'unit',
          'kinds[]': 'result', 'predicted': 'result', 'measured': 'result', 'error': 'result',
          'at_peak': 'memory', 'caps[]': 'choice', 'best_pair': 'choice',
          'best_even_cap': 'choice', 'best_overflow_cap': 'choice', 'given': 'choice',
          'one_bucket': 'choice', 'per_parameter': 'choice', 'mg_wfbp': 'choice',
          'shardings[]': 'sharding', 'advised_sharding': 'sharding', 'best_sharding': 'sharding',
          'given_sharding': 'sharding', 'default_sharding': 'sharding'}
# The sections of these lists.
ANCHORS = {'cluster': 'the-cluster', 'memory': 'memory', 'result': 'a-result',
           'bucket': 'a-bucket', 'unit': 'a-unit', 'choice': 'a-choice-of-buckets',
           'sharding': 'a-sharding'}
# Groups for what lies below a key.
BELOW = {'why': 'why', 'steps': 'steps', 'run_ahead': 'steps', 'ddp_statistics': 'steps',
         'scaling': 'scaling', 'seeds': 'seeds', 'described': 'described',
         'collectives': 'collectives', 'units': 'units', 'kinds': 'kinds of steps',
         'at_peak': 'memory', 'behind_update': 'units'}
# Mappings whose keys are those of a scenario.
OF_SCENARIOS = {'set'}


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.written = path.resolve(), pathlib.Path(folder), {}
        (self.folder / 'described.yaml').write_text(DESCRIBED)
        (self.folder / 'scenarios').symlink_to(ROOT / 'scenarios')
        subprocess.run([self.path, *CALIBRATE], cwd=self.folder, check=True)
        listed = subprocess.run([self.path, 'list', 'results', '--json', '-'], text=True,
                                capture_output=True, check=True).stdout
        self.meanings = {(row['of'], row['value']): row for row in json.loads(listed)}

    def wrote(self, name, flag):
        """What a command of COMMANDS wrote for a flag. It is run once, for all flags."""
        if name not in self.written:
            flags = {each.flag for each in SECTIONS.values() if name in each.commands}
            file = {each: self.folder / f'{name} {each.split(".")[0]}.{each.split(".")[-1]}'
                    for each in flags}
            files = [word for each in sorted(flags) for word in (each.split('.')[0], file[each])]
            done = subprocess.run([self.path, *COMMANDS[name], *files], cwd=self.folder, text=True,
                                  capture_output=True)
            # A sweep of which a point is refused ends with 2 and writes all points.
            if done.returncode not in ((0, 2) if name == 'sweep' else (0,)):
                sys.exit(f'{" ".join(COMMANDS[name])}: {done.stderr}')
            self.written[name] = {each: file[each].read_text() for each in flags}
        return self.written[name][flag]


def parts(value, path):
    """The objects at a path such as `results[].memory` of what a command wrote."""
    if isinstance(value, list):
        return [found for each in value for found in parts(each, path.removeprefix('[]'))]
    if not path:
        return [value] if isinstance(value, dict) else []
    key, _, rest = path.partition('.')
    name = key.removesuffix('[]')
    return parts(value[name], rest) if isinstance(value, dict) and name in value else []


TYPES = {'text': str, 'whole number': int, 'number': (int, float), 'true or false': bool,
         'list': list, 'object': dict}


class Lists:
    """The lists, made one after the other: those of shared objects come first."""

    def __init__(self, program):
        self.program, self.keys, self.problems, self.seen = program, {}, [], set()

    def meaning(self, path, groups):
        names = [each.removesuffix('[]') for each in path.split('.')]
        below = [BELOW[each] for each in reversed(names[:-1]) if each in BELOW]
        for group in [*below, *groups]:
            if (group, names[-1]) in self.program.meanings:
                return self.program.meanings[group, names[-1]]
        self.problems.append(f'`ddpsim list results` has no meaning of {path} ({groups})')
        return {'type': 'text', 'unit': '', 'meaning': ''}

    def walk(self, value, path, found, shared=(), base=''):
        """Adds to `found` (path to values) what is in `value`. `shared` are the paths of the list
        that has the keys below the path `base`, which are not repeated."""
        for key, each in value.items():
            if '.' in key:  # a key of a scenario
                continue
            self.seen.add(key)
            inner = f'{path}.{key}' if path else key
            if inner.removeprefix(base + '.') not in shared:
                found.setdefault(inner, []).append(each)
            if key in OF_SCENARIOS:
                continue
            inside, items = inner, [each]
            while items and isinstance(items[0], list):
                inside, items = inside + '[]', [item for part in items for item in part]
            below = SHARED.get(inside.split('.')[-1])
            for item in items:
                if isinstance(item, dict) and below:
                    self.walk(item, inside, found, list(self.keys.get(below, found)), inside)
                elif isinstance(item, dict):
                    self.walk(item, inside, found, shared, base)

    def json_list(self, section):
        found = {}
        for name in section.commands:
            for part in parts(json.loads(self.program.wrote(name, section.flag)), section.part):
                self.walk(part, '', found)
        return found

    def csv_list(self, section):
        found = {}
        for name in section.commands:
            header, *_ = self.program.wrote(name, section.flag).splitlines()
            for column in header.split(','):
                if '.' not in column:  # a key of the scenario
                    self.seen.add(column)
                    found[column] = []
        return found

    def make(self, name, section):
        """The list as lines of the page."""
        if not section.flag.endswith('csv'):
            found = self.json_list(section)
            self.keys[name] = list(found)
            return bullets([self.line(path, values, section) for path, values in found.items()])
        found = self.csv_list(section)
        columns = 'The columns are ' + ', '.join(f'`{each}`' for each in found) + '.'
        told = {path.split('.')[-1] for each in section.told for path in self.keys[each]}
        others = [self.line(path, [], section) for path in found if path not in told]
        return '\n\n'.join(each for each in (wrapped(columns), bullets(others)) if each)

    def line(self, path, values, section):
        meaning = self.meaning(path, section.groups)
        kind = TYPES[meaning['type']]
        for value in values:
            if value is not None and (not isinstance(value, kind)
                                      or isinstance(value, bool) != (kind is bool)):
                self.problems.append(f'{path} is {json.dumps(value)[:60]}, and its type '
                                     f'"{meaning["type"]}"')
                break
        what = ', '.join(each for each in (meaning['type'], meaning['unit']) if each)
        shared = next((SHARED[each] for each in (path.split('.')[-1], path.split('.')[-1] + '[]')
                       if each in SHARED and kind in (dict, list)), None)
        see = f' Its keys: [{shared}](#{ANCHORS[shared]}).' if shared else ''
        return f'**`{path}`**: {what}. {meaning["meaning"]}{see}'


def wrapped(text, first='', rest=''):
    return textwrap.fill(text, 118, initial_indent=first, subsequent_indent=rest,
                         break_long_words=False, break_on_hyphens=False)


def bullets(lines):
    return '\n'.join(wrapped(line, '- ', '  ') for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', type=pathlib.Path, required=True)
    parser.add_argument('--update', action='store_true')
    arguments = parser.parse_args()
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory(prefix='ddpsim-results-') as folder:
        lists = Lists(Program(arguments.ddpsim, folder))
        new = page
        for name, section in SECTIONS.items():
            begin, end = f'<!-- Keys: {name} -->\n', '\n<!-- End. -->'
            if page.count(begin) != 1:
                sys.exit(f'{PAGE}: {page.count(begin)} lines "{begin.strip()}", not one')
            before, rest = new.split(begin)
            _, after = rest.split(end, 1)
            new = before + begin + lists.make(name, section) + end + after
    problems = lists.problems + [
        f'no command here writes {value}, of the group "{group}" of `ddpsim list results`'
        for group, value in lists.program.meanings if value not in lists.seen]
    if arguments.update:
        PAGE.write_text(new)
    elif new != page:
        old = set(page.splitlines())
        problems += [f'docs/results.md has another line; write it with --update: {line}'
                     for line in new.splitlines() if line not in old]
        problems += ['docs/results.md is not in the order in which keys are written']
    print('\n'.join(problems) or 'every key is in docs/results.md')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
