#!/usr/bin/env python3
"""What tests/summary.py prints in the end of tools/test."""
import sys
import xml.etree.ElementTree

import summary

XML = '''<testsuite>
<testcase name="tools: one" status="run"><system-out>All tests passed</system-out></testcase>
<testcase name="tools: MPI" status="notrun"><system-out>warning:
  NOT RUN: built without MPI

All tests passed</system-out></testcase>
<testcase name="links: hosts" status="notrun"><system-out>first line
hosts: this needs root
</system-out></testcase>
<testcase name="gpu: all" status="disabled"><system-out>Disabled</system-out></testcase>
<testcase name="tools: broken" status="fail">
<system-out>NOT RUN: says one that failed</system-out></testcase>
</testsuite>'''

expected = [
    'failed: tools: broken', '  NOT RUN: says one that failed',
    '3 of 5 tests could not run:', '  tools: MPI: built without MPI',
    '  links: hosts: hosts: this needs root', '  gpu: all: switched off in this preset'
]
LONG_ONE = ('<testsuite><testcase name="a" status="fail"><system-out>'
            + '\n'.join(f'{line} {"x" * 300}' for line in range(1000))
            + '</system-out></testcase></testsuite>')
last_lines = [f'  {f"{line} " + "x" * 300}'[:202] for line in range(975, 1000)]
ONE_RUN = '<testsuite><testcase name="a" status="run"/></testsuite>'
for results, wanted in ((XML, expected), (ONE_RUN, ['all 1 tests could run']),
                        (LONG_ONE, ['failed: a', *last_lines, 'all 1 tests could run'])):
    said = summary.summary(xml.etree.ElementTree.fromstring(results))
    if said != wanted:
        sys.exit(f'not as expected: {said}')
