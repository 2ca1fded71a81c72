#!/usr/bin/env python3
"""Holds README.md and docs/ against the program and the files they speak of.

    tests/docs/check_documents.py                     texts and commands of all documents
    tests/docs/check_documents.py --texts             links, files, flags, keys, widths, sizes
    tests/docs/check_documents.py --commands docs/hooks.md
    tests/docs/check_documents.py --update            writes what commands print into the documents

A fenced block with the word `console` holds commands, each after "$ ", and what they print:

    ```console
    $ ddpsim run scenarios/examples/first.yaml
    [...]
    bucketed, 25 MiB   104.45       32.95
    [...]
    ```

They are run where the project's files are and must print the same; a line "[...]" stands for lines
left out. Commands of one document share a folder: a file that one writes is there for the next.
More words after `console` say otherwise:

    exit=2      the command ends with this code
    measured    it prints what a clock said: no two runs print the same
    slow        it takes minutes
    hosts       it needs root, and hosts on this machine (tests/links/hosts)
    torch       it needs a Python with PyTorch
    gpu         it needs a GPU
    yours       it speaks of files, or of a machine, that the reader has

Commands with one of the last six are not run; their flags and files are checked. `--also measured`
runs those with that word too, and with --update writes down what they print. Blocks with `sh` hold
commands without output, whose flags and files are checked.

A fenced block with `yaml` is a scenario, or a part of one to which the rest is added, or a profile:
ddpsim has to take it. `text` is neither.

Exit code: 0; 1 if something is wrong, a line for each.
"""
import argparse
import contextlib
import difflib
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
README_LINES, README_BYTES, WIDTH = 200, 12_000, 120
COLUMNS = '100'  # the terminal that commands print for
NOT_RUN = {'measured', 'slow', 'hosts', 'torch', 'gpu', 'yours'}
LANGUAGES = {'console', 'sh', 'yaml', 'text', 'python', 'cpp', 'c', 'cmake', 'json'}
LEFT_OUT = '[...]'

# What stands in place of parts that a block of YAML leaves out.
WORKLOAD = 'workload: {model: gpt2, batch: 8, sequence: 1024, dtype: fp32, optimizer: adamw}\n'
CLUSTER = 'cluster: {device: a100-40, ranks_per_node: 2, intra_node: nvlink3}\n'

# Files that commands or builds make; what is named so need not be there.
MADE = ('build/', 'profile/', 'gpu-check/')
# Words with a slash that are no files of the project.
NO_FILES = {'include/nccl.h', 'lib/libnccl.so.2', 'nvidia/nccl'}
# Flags of programs that are not ours.
OTHER_FLAGS = {'--redirects', '--tee', '--nproc_per_node', '--hostfile', '--preset', '--target',
               '--prefix', '--help', '--version', '--no-index',
               '--again', '--scripts', '--print', '--draw'}


def documents():
    return [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md')), ROOT / 'tests/README.md',
            ROOT / 'scenarios/measured/README.md']


class Block:
    """A fenced block: its words after the backticks, its lines, and the line it begins at (the
    fence's, from 0)."""

    def __init__(self, words, lines, begin):
        self.language, self.words = (words[0], set(words[1:])) if words else ('', set())
        self.lines, self.begin = lines, begin

    def not_run(self):
        return self.words & NOT_RUN

    def exit_code(self):
        return int(next((word[5:] for word in self.words if word.startswith('exit=')), '0'))


class Command:
    """A command of a block, the lines it is said to print, and where these are in the block."""

    def __init__(self, text, begin):
        self.text, self.begin, self.printed = text, begin, []


def commands_of(block):
    """Those of a `console` block after "$ "; of a `sh` block every line."""
    found, lines = [], iter(enumerate(block.lines))
    for number, line in lines:
        prompted = line.startswith('$ ')
        if prompted or (block.language == 'sh' and line.strip() and not line.startswith('#')):
            words = line[2:] if prompted else line
            while words.endswith('\\'):
                number, line = next(lines)
                words = words[:-1] + ' ' + line.strip()
            found.append(Command(words, number + 1))
        elif found:
            found[-1].printed.append(line)
    return found


class Document:
    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        self.text = path.read_text()
        self.lines = self.text.splitlines()
        self.blocks, self.prose = [], []  # prose: (line number from 1, line)
        inside = None
        for number, line in enumerate(self.lines):
            if line.startswith('```'):
                if inside is None:
                    inside = Block(line[3:].split(), [], number)
                else:
                    self.blocks.append(inside)
                    inside = None
            elif inside is not None:
                inside.lines.append(line)
            else:
                self.prose.append((number + 1, line))
        if inside is not None:
            self.blocks.append(inside)

    def at(self, number, problem):
        return f'{self.name}:{number}: {problem}'

    def spans(self):
        """(line number, what stands between backticks) of the prose."""
        for number, line in self.prose:
            for span in re.findall(r'`([^`]+)`', line):
                yield number, span

    def anchors(self):
        """What a link to a section is called, as GitHub does it."""
        found = {}
        for _, line in self.prose:
            heading = re.match(r'#+ +(.*)', line)
            if heading:
                words = re.sub(r'[^\w\- ]', '', re.sub(r'`|\*', '', heading[1]).lower())
                anchor = words.replace(' ', '-')
                found[anchor] = found.get(anchor, -1) + 1
                if found[anchor]:
                    found[f'{anchor}-{found[anchor]}'] = 0
            for name in re.findall(r'<a id="([^"]+)"></a>', line):
                found[name] = 0
        return set(found)


# The program.

class Program:
    """ddpsim, in a folder where every file of the project can be found and none is written to."""

    def __init__(self, path, folder):
        path = pathlib.Path(path).resolve()
        if not os.access(path, os.X_OK):
            sys.exit(f'{path}: no such program; build it or give --ddpsim')
        self.path_, self.folder = path, pathlib.Path(folder)
        for entry in ROOT.iterdir():
            if entry.name not in ('build', '.git'):
                (self.folder / entry.name).symlink_to(entry)
        (self.folder / 'build').mkdir()
        (self.folder / 'build/release').symlink_to(path.parent.parent)
        (self.folder / '.bin').mkdir()
        (self.folder / '.bin/ddpsim').symlink_to(path)

    def run(self, command):
        """(what the command printed, its exit code)"""
        environment = {**os.environ, 'COLUMNS': COLUMNS, 'TERM': 'dumb', 'LC_ALL': 'C.UTF-8',
                       'PATH': f'{self.folder}/.bin:{os.environ["PATH"]}'}
        done = subprocess.run(['sh', '-c', command], cwd=self.folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors='replace')
        return [line.rstrip() for line in done.stdout.splitlines()], done.returncode

    @functools.cached_property
    def names(self):
        """Its commands."""
        lines, _ = self.run('ddpsim --help')
        return [line.split()[0] for line in lines if re.match(r'  [a-z]+ {2,}\w', line)]

    @functools.lru_cache(maxsize=None)
    def help(self, command):
        lines, _ = self.run(f'ddpsim {command} --help')
        return '\n'.join(lines)

    @functools.lru_cache(maxsize=None)
    def knows_key(self, key):
        said, _ = self.run(f'ddpsim run scenarios/examples/first.yaml -q --set {key}=none')
        return not any('unknown key' in line for line in said)


# Texts.

def scripts():
    """Files of the project that take flags, and have them in their text."""
    return [file for folder in ('tools', 'tests/links', 'tests/experiments')
            for file in (ROOT / folder).iterdir()
            if file.is_file() and file.read_bytes()[:2] == b'#!'] + [pathlib.Path(__file__)]


def package_text(module):
    """The text of a part of the Python package, which has its flags: of "ddpsim.profile", say."""
    folder = ROOT / 'python' / module.replace('.', '/')
    return '\n'.join(file.read_text() for file in sorted(folder.glob('*.py')))


def has_flag(text, flag):
    return re.search(rf'(?<![\w-]){re.escape(flag)}(?![\w-])', text) is not None


def flag_problems(program, words):
    """Problems with the flags among the words of a command: those of ddpsim are in its help, those
    of our scripts in their text; other programs are not looked into."""
    owner, what = None, ''
    words = iter(words)
    for word in words:
        if re.fullmatch(r'(\S*/)?python3?', word):
            owner, what = None, ''
        elif word == '-m':
            what = next(words, '')
            owner = package_text(what) if what.startswith('ddpsim.') else None
            continue
        if word == 'ddpsim' or word.endswith('/ddpsim'):
            command = next(words, '')
            if command.startswith('-') or not command:
                owner, what = program.help(''), 'ddpsim'
                word = command
            elif command not in program.names:
                yield f'ddpsim has no command "{command}"'
                return
            else:
                owner, what = program.help(command), f'ddpsim {command}'
                continue
        elif '/' in word and (ROOT / word).is_file() and not word.endswith('.yaml'):
            if (ROOT / word).read_bytes()[:2] == b'#!':
                owner, what = (ROOT / word).read_text(), word
            continue
        flag = re.match(r'--?[a-z][\w-]*', word)
        if owner and flag and not has_flag(owner, flag[0]):
            yield f'{what} has no flag {flag[0]}'


def words_of(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()


def is_file_name(word):
    return re.fullmatch(r'[\w.+*-]+(/[\w.+*-]+)+/?', word) and re.search('[a-z]{2}', word) \
        and not word.startswith(MADE) and word not in NO_FILES


def is_there(word, folder):
    return any([*base.glob(word.rstrip('/'))] for base in (ROOT, folder))


def text_problems(document, program):
    yield from width_problems(document)
    yield from link_problems(document)
    # The reference of keys is written from their descriptions, whose examples have dates and rates.
    written = document.path.name == 'scenario.md'
    if not written:
        yield from diary_problems(document)
    yield from rule_problems(document)
    everything = '\n'.join([program.help(name) for name in ['', *program.names]]
                           + [file.read_text() for file in scripts()]
                           + [package_text(f'ddpsim.{name}')
                              for name in ('describe', 'measure', 'profile')])
    for number, span in document.spans():
        words = words_of(span)
        if not words:
            continue
        if not written and is_file_name(words[0]) and not is_there(words[0], document.path.parent):
            yield document.at(number, f'no file "{words[0]}"')
        if re.match(r'(\S*/)?ddpsim \S', span) or (ROOT / words[0]).is_file():
            for problem in flag_problems(program, words):
                yield document.at(number, problem)
        elif re.fullmatch(r'--[a-z][\w-]*', words[0]) and words[0] not in OTHER_FLAGS \
                and not has_flag(everything, words[0]):
            yield document.at(number, f'no flag {words[0]} anywhere')
        key = re.match(r'(?:workload|cluster|training)\.[a-z_]+(?:\.[a-z_]+)*$', span)
        if key and not program.knows_key(span):
            yield document.at(number, f'no key {span}')
    for block in document.blocks:
        if block.language not in LANGUAGES or block.language != 'console' and block.words:
            yield document.at(block.begin + 1, f'what is a block of "{block.language}"?')
        if block.language in ('console', 'sh'):
            for word in block.words - NOT_RUN:
                if not re.fullmatch(r'exit=\d+', word):
                    yield document.at(block.begin + 1, f'what does "{word}" mean?')
            for command in commands_of(block):
                number, words = block.begin + 1 + command.begin, words_of(command.text)
                for problem in flag_problems(program, words):
                    yield document.at(number, problem)
                for word in words if 'yours' not in block.words else []:
                    if is_file_name(word) and not is_there(word, document.path.parent) \
                            and word.startswith(('tests/', 'tools/', 'scenarios/', 'docs/')):
                        yield document.at(number, f'no file "{word}"')


def width_problems(document):
    printed = {block.begin + 1 + command.begin + number for block in document.blocks
               if block.language == 'console' for command in commands_of(block)
               for number in range(len(command.printed))}
    for number, line in enumerate(document.lines):
        if len(line) > WIDTH and number not in printed:
            yield document.at(number + 1, f'{len(line)} columns, at most {WIDTH}')
    if document.name == 'README.md':
        size = len(document.text.encode())
        if len(document.lines) > README_LINES or size > README_BYTES:
            yield document.at(1, f'{len(document.lines)} lines and {size} bytes, at most '
                                 f'{README_LINES} and {README_BYTES}')


def link_problems(document):
    for number, line in document.prose:
        for target in re.findall(r'\]\(([^)\s]+)\)', line):
            if re.match(r'[a-z]+:', target):
                continue
            name, _, anchor = target.partition('#')
            file = (document.path.parent / name).resolve() if name else document.path
            if not file.exists():
                yield document.at(number, f'a link to {name}, which is not there')
            elif anchor and anchor not in Document(file).anchors():
                yield document.at(number, f'a link to #{anchor}, which {file.name} does not have')


def diary_problems(document):
    """A page says what is true now: dates and revisions are provenance, and stay with the data."""
    if document.name == 'docs/accuracy.md':
        return
    for number, line in document.prose:
        diary = re.search(r'\b20\d\d-\d\d-\d\d\b|\bMISSED\b|\brevision [0-9a-f]{7}\b', line)
        if diary:
            yield document.at(number, f'"{diary[0]}" belongs to a diary')


def rule_problems(document):
    """Every rule that tests/README.md lists is in the name of a test."""
    if document.name != 'tests/README.md':
        return
    names = '\n'.join(file.read_text() for file in (ROOT / 'tests').rglob('*_test.cpp'))
    for number, line in document.prose:
        listed = re.match(r'\| (R\d+(?:(?:, | - )R\d+)*) \|', line)
        for first, last in re.findall(r'R(\d+)(?: - R(\d+))?', listed[1]) if listed else []:
            for rule in range(int(first), int(last or first) + 1):
                if not re.search(rf'"[^"\n]*\bR{rule}[,:]', names):
                    yield document.at(number, f'no name of a test begins with R{rule}')


def yaml_problems(document, program):
    for block in document.blocks:
        if block.language != 'yaml':
            continue
        text, file = '\n'.join(block.lines) + '\n', program.folder / 'block.yaml'
        kind = re.search(r'^format: ddpsim\.(workload|link)/', text, re.M)
        if kind:
            (program.folder / 'block-profile.yaml').write_text(text)
            profile = {'workload': ('workload: {model: block-profile.yaml}\n', CLUSTER),
                       'link': (WORKLOAD, CLUSTER.replace('nvlink3', 'block-profile.yaml'))}
            text = ''.join(profile[kind[1]])
        for key, part in (('workload', WORKLOAD), ('cluster', CLUSTER)):
            if not re.search(rf'^{key}:', text, re.M):
                text += part
        file.write_text(text)
        plugins = ' --plugin build/release/scenarios/libmy_hooks.so' if 'plugin:' in text else ''
        said, code = program.run(f'ddpsim run block.yaml --quiet{plugins}')
        if code != 0:
            yield document.at(block.begin + 1, f'ddpsim does not take it: {"; ".join(said)}')


# Commands.

def segments(printed):
    """Printed lines as lists of lines between those left out."""
    found = [[]]
    for line in printed:
        if line.strip() == LEFT_OUT:
            found.append([])
        else:
            found[-1].append(line.rstrip())
    return found


def find(lines, part, begin):
    return next((at for at in range(begin, len(lines) - len(part) + 1)
                 if lines[at:at + len(part)] == part), None)


def agrees(printed, lines):
    """Whether lines are those printed, but for those left out."""
    first, *rest = segments(printed)
    if not rest:
        return lines == first
    if lines[:len(first)] != first:
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        found = find(lines, part, at)
        if found is None:
            return False
        at = found + len(part)
    return len(lines) - at >= len(last) and lines[len(lines) - len(last):] == last


def updated(printed, lines):
    """The lines, leaving out about what is left out of those printed: of each part as many lines
    are kept, from where they are most alike."""
    first, *rest = segments(printed)
    if not rest:
        return lines
    kept, at, last = lines[:len(first)], len(first), rest.pop()
    for part in rest:
        kept.append(LEFT_OUT)
        places = range(at, max(at, len(lines) - len(last) - len(part)) + 1)
        alike = lambda place: sum(
            difflib.SequenceMatcher(None, one, other).ratio()
            for one, other in zip(part, lines[place:place + len(part)]))
        exact = find(lines, part, at)
        place = exact if exact is not None else max(places, key=alike)
        kept += lines[place:place + len(part)]
        at = place + len(part)
    kept.append(LEFT_OUT)
    return kept + (lines[-len(last):] if last else [])


def difference(printed, lines):
    """Lines that are said to be printed and are not, each with the nearest that is; to be read by
    people."""
    missing = [line.rstrip() for line in printed
               if line.rstrip() not in [*lines, LEFT_OUT]]
    if not missing:
        missing = ['(the same lines, more of them or in another order)']
    text = ''
    for line in missing[:6]:
        text += f'\n    -{line}'
        for near in difflib.get_close_matches(line, lines, 1, 0.3):
            text += f'\n    +{near}'
    return text


def command_problems(document, program, also, update):
    """Runs them in order. With `update` the document is written with what they print."""
    lines = list(document.lines)
    shift = 0
    for block in document.blocks:
        if block.language != 'console' or block.not_run() - also:
            continue
        for command in commands_of(block):
            said, code = program.run(command.text)
            begin = block.begin + 1 + command.begin
            if code != block.exit_code():
                yield document.at(begin, f'exit code {code}, not {block.exit_code()}: '
                                         f'{command.text}' + '\n    +'.join(['', *said[:6]]))
            elif update:
                new = updated(command.printed, said) if command.printed else []
                lines[begin + shift:begin + shift + len(command.printed)] = new
                shift += len(new) - len(command.printed)
            elif not block.not_run() and command.printed and not agrees(command.printed, said):
                yield document.at(begin, f'prints something else: {command.text}'
                                  + difference(command.printed, said))
    if update and lines != document.lines:
        document.path.write_text('\n'.join(lines) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('documents', nargs='*', help='their paths; default: all')
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim', help='the program')
    parser.add_argument('--texts', action='store_true', help='check texts alone')
    parser.add_argument('--commands', action='store_true', help='run commands alone')
    parser.add_argument('--update', action='store_true', help='write what commands print')
    parser.add_argument('--also', action='append', default=[], choices=sorted(NOT_RUN),
                        help='run commands with this word too')
    arguments = parser.parse_args()
    if arguments.documents:
        chosen = [pathlib.Path(name).resolve() for name in arguments.documents]
    else:
        chosen = documents()
    problems = []
    for path in chosen:
        document = Document(path)
        with tempfile.TemporaryDirectory(prefix='ddpsim-documents-') as folder:
            program = Program(arguments.ddpsim, folder)
            if not arguments.texts:
                problems += command_problems(document, program, set(arguments.also),
                                             arguments.update)
                document = Document(path)
            if not arguments.commands:
                if not program.names or program.knows_key('training.no_such_key'):
                    sys.exit('ddpsim names its commands, or unknown keys, otherwise than it did: '
                             'change Program.names or Program.knows_key')
                problems += text_problems(document, program)
                problems += yaml_problems(document, program)
    with contextlib.suppress(BrokenPipeError):
        print('\n'.join(problems), end='\n' if problems else '')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
