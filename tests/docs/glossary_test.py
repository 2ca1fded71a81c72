#!/usr/bin/env python3
"""Every heading of the tables that commands print is explained in docs/glossary.md.

    glossary_test.py --ddpsim PROGRAM

Exit code: 0; 1 if a heading is missing.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIRST = 'scenarios/examples/first.yaml'
COMMANDS = (
    ('run', FIRST, '--why', '--scaling', '16'),
    ('run', 'scenarios/examples/straggler.yaml', '--why'),
    ('run', FIRST, '--steps', '3', '--run-ahead', '--ddp-statistics', '--set',
     'cluster.price=2 USD/h'),
    ('run', FIRST, '--vary', 'training.comm_hook=none,fp16_compress'),
    ('run', FIRST, '--why', '--set', 'compare=[fsdp]', '--set', 'training.replicate=2'),
    ('tune', FIRST),
    ('sweep', FIRST, '--vary', 'cluster.ranks_per_node=1,2'),
    ('score', 'scenarios/measured/brandon-snider-2xh100.yaml'),
    ('schedule', 'scenarios/examples/own-profile.yaml'),
    ('schedule', FIRST, '--set', 'training.strategy=fsdp'),
)
TERMS = ('rank', 'step', 'micro-batch', 'bucket', 'hook', 'comm hook', 'communication', 'exposed',
         'overlap ratio', 'skew', 'band', 'law', 'table', 'profile', 'description', 'calibration',
         'plan')


def headings(program, command):
    """The headings of the command's tables, without the keys that it varies."""
    printed = subprocess.run([program, *command, '--markdown', '-'], cwd=ROOT, text=True,
                             capture_output=True, check=True).stdout.splitlines()
    keys = {each.split('=')[0] for each in command} | {'comm_hook'}
    found = set()
    for line, below in zip(printed, printed[1:]):
        if re.fullmatch(r'\|[-: |]+\|', below):
            found |= {each.strip() for each in line.strip('|').split('|')}
    return found - keys - {''}


def explained():
    """(terms in bold, columns) of the glossary."""
    text = (ROOT / 'docs/glossary.md').read_text()
    words, columns = text.split('## Columns')
    rows = re.findall(r'^\| ([^|]+?) \|', columns, re.M)
    return ({each.lower() for each in re.findall(r'\*\*([^*]+)\*\*', words)},
            {each.strip() for row in rows for each in row.split(',')})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--ddpsim', type=pathlib.Path, required=True)
    program = parser.parse_args().ddpsim.resolve()
    terms, columns = explained()
    wrong = [f'docs/glossary.md has no entry "{each}"' for each in TERMS if each not in terms]
    for command in COMMANDS:
        found = headings(program, command)
        if len(found) < 5:
            wrong.append(f'{" ".join(command)}: only {len(found)} headings were found')
        wrong += [f'docs/glossary.md has no column "{each}", which {command[0]} prints'
                  for each in sorted(found - columns)]
    print('\n'.join(wrong) or 'every heading is explained')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
