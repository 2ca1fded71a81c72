#!/usr/bin/python3
"""Whether the JSON Schemas that `ddpsim schema` prints say of YAML files what ddpsim itself says.

    schema_test.py --ddpsim PROGRAM good      accepted: every YAML file of the repository, what
                                              ddpsim writes, every default and example, and
                                              every file of parts.py
    schema_test.py --ddpsim PROGRAM broken    refused by both, in the same place: every file of
                                              broken.py

Exit code 0: so it is; 3: it is not, and where is printed; 77: this Python has no jsonschema (1 with
DDPSIM_TORCH=required).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f'schema_test: {missing}', file=sys.stderr)
    sys.exit(1 if os.environ.get('DDPSIM_TORCH') == 'required' else 77)
import broken
import parts

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / 'scenarios'
FORMATS = ('scenario', 'workload', 'description', 'link', 'calibration', 'cluster', 'device',
           'host', 'operations', 'model')
# How a scenario uses a file of each other format.
USERS = {
    'workload': 'workload: {model: broken.yaml}\ncluster: {device: h100-sxm}\n',
    'description': 'workload: {model: broken.yaml}\ncluster: {device: h100-sxm}\n',
    'link': 'workload: {model: resnet18, batch: 8}\n'
            'cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: broken.yaml}\n',
    'calibration': 'workload: {model: resnet18, batch: 8}\ncluster: {calibration: broken.yaml}\n',
    'cluster': 'workload: {model: resnet18, batch: 8}\ncluster: broken.yaml\n',
    'device': 'workload: {model: resnet18, batch: 8}\ncluster: {device: broken.yaml}\n',
    'host': 'workload: {model: resnet18, batch: 8}\ncluster: {device: h200, host: broken.yaml}\n',
    'operations': 'workload: {model: resnet18, batch: 8}\n'
                  'cluster: {device: {base: h200, operations: broken.yaml}}\n',
    'model': 'workload: {model: broken.yaml, batch: 8, sequence: 8}\ncluster: {device: h100-sxm}\n',
}


class Core(yaml.SafeLoader):
    """YAML 1.2's core schema, by which editors read: no dates, and yes is a word."""
    yaml_implicit_resolvers = {}


for tag, pattern, first in (
        ('null', r'~|null|Null|NULL|', ['~', 'n', 'N', '']),
        ('bool', r'true|True|TRUE|false|False|FALSE', list('tTfF')),
        ('int', r'[-+]?[0-9]+', list('-+0123456789')),
        ('float', r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?', list('-+0123456789.'))):
    Core.add_implicit_resolver(f'tag:yaml.org,2002:{tag}', re.compile(f'(?:{pattern})$'), first)
Core.add_constructor('tag:yaml.org,2002:int', lambda loader, node: int(node.value))


def schemas(program):
    validators = {}
    for name in FORMATS:
        text = subprocess.run([program, 'schema', name], check=True, capture_output=True,
                              text=True).stdout
        schema = json.loads(text)
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[name] = jsonschema.Draft202012Validator(schema)
    return validators


def format_of(file, content):
    marked = content.get('format')
    if marked == 'ddpsim.workload/2':
        return 'description'
    if marked:
        return re.fullmatch(r'ddpsim\.(\w+)/1', marked)[1]
    return {'clusters': 'cluster', 'devices': 'device', 'hosts': 'host',
            'links': 'link', 'models': 'model'}.get(file.parent.name, 'scenario')


def written(program):
    """What ddpsim writes of a file of each format that it writes: (format, content)."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in ('workload', 'link', 'calibration'):
            (folder / 'in.yaml').write_text(broken.WHOLE[kind])
            subprocess.run(
                [program, 'import', 'torch-profile', 'in.yaml', '-o', 'out.yaml', '--quiet'],
                check=True, cwd=folder)
            yield kind, yaml.load((folder / 'out.yaml').read_text(), Core)
        (folder / 'log.txt').write_text(parts.NCCL_LOG)
        subprocess.run([program, 'import', 'nccl-log', 'log.txt', '-o', 'site.yaml', '--quiet'],
                       check=True, cwd=folder)
        yield 'cluster', yaml.load((folder / 'site.yaml').read_text(), Core)


def refused_parts(program, validators):
    """What the program or a schema says against files whose rest stands elsewhere."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        given, user = folder / 'given.yaml', folder / 'user.yaml'
        user.write_text(parts.WORKLOAD + 'cluster: {device: t4}\n')
        for what, (kind, text, flags) in parts.CASES.items():
            given.write_text(text)
            words = [given] if kind == 'scenario' else [user, '--cluster', given]
            ran = subprocess.run([program, 'run', *words, *flags, '--quiet'], capture_output=True,
                                 text=True)
            if ran.returncode != 0:
                wrong.append(f'{what}: the program: {ran.stderr.strip()}')
            for error in validators[kind].iter_errors(yaml.load(text, Core)):
                wrong.append(f'{what}: the schema: {error.json_path}: {error.message[:100]}')
    print(f'{len(parts.CASES)} files with a part elsewhere')
    return wrong


def good(program, validators):
    """Returns what is refused."""
    wrong = []
    files = sorted(set(SCENARIOS.rglob('*.yaml')))
    for file in files:
        content = yaml.load(file.read_text(), Core)
        for error in validators[format_of(file, content)].iter_errors(content):
            wrong.append(f'{file}: {error.json_path}: {error.message}')
    for kind, content in written(program):
        for error in validators[kind].iter_errors(content):
            wrong.append(f'a {kind} that was written: {error.json_path}: {error.message}')
    wrong += refused_parts(program, validators)
    told = 0
    for name, validator in validators.items():
        for map_name, definition in validator.schema['$defs'].items():
            for key, schema in definition.get('properties', {}).items():
                values = list(schema.get('examples', []))
                values += [schema[word] for word in ('default',) if word in schema]
                told += len(values)
                for value in values:
                    for error in validator.evolve(schema=schema).iter_errors(value):
                        wrong.append(f'{name}: {map_name}.{key}: {value!r}: {error.message}')
    print(f'{len(files)} files, {told} defaults and examples')
    if len(files) < 80 or told < 150:
        wrong.append('fewer than there were')
    return wrong


def marks_of(node, path=(), marks=None):
    """Where every value and every key of a document begins: {(path, is it the key): (line,
    column)}."""
    marks = {} if marks is None else marks
    marks[path, False] = node.start_mark.line + 1, node.start_mark.column + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = path + (key.value,)
            marks[here, True] = key.start_mark.line + 1, key.start_mark.column + 1
            marks_of(value, here, marks)
            if value.tag.endswith(':null'):  # nothing stands nowhere
                marks[here, False] = marks[here, True]
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            marks_of(value, path + (index,), marks)
    return marks


def places_of(error, marks):
    path = tuple(error.absolute_path)
    if error.validator == 'additionalProperties':
        known = error.schema.get('properties', {})
        return {marks[path + (key,), True] for key in error.instance if key not in known}
    return {marks[path, False]}


def place_by_program(program, folder, kind, text):
    """(line, column) of the fault in the file, and the whole error."""
    (folder / 'broken.yaml').write_text(text)
    user = folder / 'broken.yaml'
    if kind in USERS:
        user = folder / 'user.yaml'
        user.write_text(USERS[kind])
    ran = subprocess.run([program, 'run', str(user), '--quiet'], capture_output=True, text=True)
    found = re.match(rf'ddpsim: {re.escape(str(folder))}/broken\.yaml:(\d+):(\d+): ', ran.stderr)
    if ran.returncode != 2 or not found:
        return None, f'exit code {ran.returncode}: {ran.stderr}'
    return (int(found[1]), int(found[2])), ran.stderr


def all_broken(program, validators):
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind, text in broken.WHOLE.items():  # nothing is wrong before it is broken
            place, said = place_by_program(program, folder, kind, text)
            taken = validators[kind].is_valid(yaml.load(text, Core))
            if said.strip() != 'exit code 0:' or not taken:
                wrong.append(f'{kind}: refused as it is: {said.strip()}')
        for what, (kind, text) in broken.CASES.items():
            place, said = place_by_program(program, folder, kind, text)
            errors = list(validators[kind].iter_errors(yaml.load(text, Core)))
            marks = marks_of(yaml.compose(text, Core))
            places = set().union(*(places_of(error, marks) for error in errors))
            if place is None or places != {place}:
                messages = '; '.join(f'{error.json_path}: {error.message[:100]}'
                                     for error in errors)
                wrong.append(
                    f'{what}: program {place} ({said.strip()[-200:]}), schema {sorted(places)} '
                    f'({messages})'
                )
    print(f'{len(broken.CASES)} broken files')
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', required=True)
    parser.add_argument('what', choices=('good', 'broken'))
    given = parser.parse_args()
    given.ddpsim = str(pathlib.Path(given.ddpsim).resolve())
    validators = schemas(given.ddpsim)
    check = good if given.what == 'good' else all_broken
    wrong = check(given.ddpsim, validators)
    for line in wrong:
        print(line)
    return 3 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
