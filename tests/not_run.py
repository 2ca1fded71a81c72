#!/usr/bin/env python3
"""Counts and names the tests that could not run, with the reason of each.

    not_run.py TESTS.xml      what ctest --output-junit wrote
"""
import re
import sys
import xml.etree.ElementTree


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
    if not left_out:
        return [f'all {len(cases)} tests could run']
    return [f'{len(left_out)} of {len(cases)} tests could not run:',
            *(f'  {case.get("name")}: {reason_of(case)}' for case in left_out)]


if __name__ == '__main__':
    print('\n'.join(summary(xml.etree.ElementTree.parse(sys.argv[1]).getroot())))
