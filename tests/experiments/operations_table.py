#!/usr/bin/env python3
"""Makes the table of measured operations of the catalogue's H200 from what one H200 took for single
operations (tests/data/h200/operations.csv.gz).

    tests/experiments/operations_table.py [--ddpsim-tests build/release/tests] [-o FILE] [--check]

A row of the table is one kernel. Of a measured row the events' 2.7 us are taken off, and, where an
operation has other kernels around it (copies of layout around a convolution), what the laws say of
those and of the gaps; half of the row at least is left. Products of tensor cores are multiplied by
0.95: repeated in a loop of their own they run below a step's clock (model/kernel/product_law.hpp).

In the table are matrix products and convolutions, which are as quick in a step as by themselves.
Left out are rows that measure the host, and what moves memory: single operations find a cold
second-level cache, kernels of a step do not, and the laws of those classes know the difference.

--check compares the table with FILE and fails if they differ.
"""
import argparse
import pathlib
import sys

import single_operations as single

TABLE = single.ROOT / 'scenarios/catalogue/operations/h200.yaml'
OF_A_STEP = 0.95  # model/kernel/product_law.hpp
HEAD = """\
# Written by tests/experiments/operations_table.py.
format: ddpsim.operations/1
source: one H200 (tests/data/h200/operations.csv.gz); how rows become this table tests/experiments/operations_table.py says
device: NVIDIA H200
torch: 2.11.0
driver: "580.159"
date: 2026-11-26
operations:
"""


def main_kernel(kernels):
    """The kernel that the row is about, and those around it."""
    found = [each for each in kernels if 'conv' in each or 'gemm' in each]
    return found[0], [each for each in kernels if each is not found[0]]


def is_wanted(row):
    return row['kind'] in ('gemm', 'bmm') or row['kind'].startswith('conv')


def table_rows(tests, data=single.DATA):
    """[(kernel, us)]"""
    rows = [row for row in single.measured_rows(data) if is_wanted(row[1])]
    split = [(name, row, *main_kernel(kernels)) for name, row, kernels in rows]
    around = [(name, row, others) for name, row, _, others in split if others]
    times = dict(zip((id(row) for _, row, _ in around),
                     single.priced(around, tests, 'h200', laws_alone=True)))
    made = []
    for _, row, kernel, others in split:
        whole = float(row['us']) - single.EVENTS
        # `priced` counts the events, and the gaps between the kernels; one more is there with ours.
        rest = times[id(row)] - single.EVENTS + single.GAP if others else 0
        us = max(whole - rest, whole / 2)
        if row['dtype'] != 'fp32' and 'gemm' in kernel and 'conv' not in kernel:
            us *= OF_A_STEP
        made.append((kernel, us))
    return made


def line(kernel, us):
    keys = {key: kernel[key] for key in (('conv',) if 'conv' in kernel else ('gemm',))}
    if 'conv' in keys:
        shape = dict(keys['conv'])
        for key, usual in (('groups', 1), ('channels_last', 'false')):
            if shape[key] == usual:
                del shape[key]
        keys['conv'] = shape
    keys |= {key: kernel[key] for key in ('type', 'read', 'written')}
    return f'  - {single.flow(keys | {"time": f"{us:.1f} us"})}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim-tests', default=single.ROOT / 'build/release/tests')
    parser.add_argument('--data', default=single.DATA)
    parser.add_argument('-o', '--output', type=pathlib.Path, default=TABLE)
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    text = HEAD + ''.join(line(*row) for row in table_rows(arguments.ddpsim_tests, arguments.data))
    if not arguments.check:
        arguments.output.write_text(text)
    elif not arguments.output.is_file() or arguments.output.read_text() != text:
        sys.exit(f'{arguments.output} is stale: run {pathlib.Path(__file__).name}')


if __name__ == '__main__':
    main()
