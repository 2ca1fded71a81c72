#!/usr/bin/env python3
"""The closing lines of a run of the tests: what those that failed printed last, and which could not
run, with the reason of each.

    summary.py TESTS.xml      what ctest --output-junit wrote
"""
import re
import sys
import xml.etree.ElementTree


LINES = 25  # of what a test printed
CHARACTERS = 200  # of a line


def failures(cases):
    for case in cases:
        if case.get('status') != 'fail':
            continue
        printed = (case.findtext('system-out') or '').strip().splitlines()[-LINES:]
        yield f'failed: {case.get("name")}'
        yield from (f'  {line[:CHARACTERS]}' for line in printed)


def reason_of(case):
    """What the test said of it: behind "NOT RUN:", or in its last line."""
    said = case.findtext('system-out') or ''
    marked = re.search(r'NOT RUN: *(.*)', said)
    if marked:
        return marked.group(1).strip()
    if case.get('status') == 'disabled':
        return 'switched off in this preset'
    return (said.strip().splitlines() or ['it does not say why'])[-1].strip()


def summary(root):
    """The lines to print."""
    cases = list(root.iter('testcase'))
    left_out = [case for case in cases if case.get('status') in ('notrun', 'disabled')]
    failed = list(failures(cases))
    if not left_out:
        return [*failed, f'all {len(cases)} tests could run']
    return [*failed, f'{len(left_out)} of {len(cases)} tests could not run:',
            *(f'  {case.get("name")}: {reason_of(case)}' for case in left_out)]


if __name__ == '__main__':
    print('\n'.join(summary(xml.etree.ElementTree.parse(sys.argv[1]).getroot())))
