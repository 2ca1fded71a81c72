#!/usr/bin/env python3
"""Makes the table of measured operations of the catalogue's H200 from what one H200 took for single
operations (tests/data/h200/operations.csv.gz).

    tests/experiments/operations_table.py [-o FILE] [--check]

A row of the table is one kernel. The 2.7 us of the events are taken off each row. A convolution of
tensor cores with channels first copies its tensors to channels last and runs the kernels of that
layout: it has the time of the row with channels last, for its copies are kernels of their own.
Repeated in a loop of their own, products of tensor cores run below a step's clock, and their rows
are multiplied by what products of each format, and convolutions, of the same shapes take in a step
over their time in a loop.

In the table are matrix products and convolutions. Left out are rows that measure the host, and what
moves memory: single operations find a cold second-level cache, kernels of a step do not, and the
laws of those classes know the difference.

--check compares the table with FILE and fails if they differ.
"""
import argparse
import pathlib
import sys

import single_operations as single

TABLE = single.ROOT / 'scenarios/catalogue/operations/h200.yaml'
# What tests/experiments/left_out.py computes from lm350 and resnet101 (tests/data/h200).
PRODUCTS_IN_A_STEP = {'tf32': 0.937, 'bf16': 0.987, 'fp32': 1}
CONVOLUTIONS_IN_A_STEP = 0.896
HEAD = """\
# Written by tests/experiments/operations_table.py.
format: ddpsim.operations/1
source: one H200 (tests/data/h200/operations.csv.gz, by tests/experiments/operations_table.py)
device: NVIDIA H200
torch: 2.11.0
driver: "580.159"
date: 2026-11-26
operations:
"""


def is_wanted(row):
    return row['kind'] in ('gemm', 'bmm') or row['kind'].startswith('conv')


def main_kernel(kernels):
    return next(each for each in kernels if 'conv' in each or 'gemm' in each)


def us_of_kernel(row, kernels, last, factors, convolutions):
    """`last`: [what, dtype, shape] the rows of convolutions with channels last."""
    if len(kernels) > 1:
        row = last[row['what'], row['dtype'], row['shape']]
    us = float(row['us']) - single.EVENTS
    if not row['kind'].startswith('conv'):
        return us * factors[row['dtype']]
    shape = main_kernel(kernels)['conv']
    tensor_cores = row['dtype'] != 'fp32' and shape['groups'] == 1 and shape['channels'] % 4 == 0
    return us * convolutions if tensor_cores else us


def table_rows(data=single.DATA, factors=PRODUCTS_IN_A_STEP, convolutions=CONVOLUTIONS_IN_A_STEP):
    """[(kernel, us)]"""
    rows = [(row, kernels) for _, row, kernels in single.measured_rows(data) if is_wanted(row)]
    last = {(row['what'], row['dtype'], row['shape']): row for row, _ in rows
            if row['kind'] == 'conv nhwc'}
    return [(main_kernel(kernels), us_of_kernel(row, kernels, last, factors, convolutions))
            for row, kernels in rows]


def line(kernel, us):
    kind = 'conv' if 'conv' in kernel else 'gemm'
    usual = {'groups': 1, 'channels_last': 'false', 'batch': 1, 'along_k': 2}
    keys = {kind: {key: value for key, value in kernel[kind].items() if usual.get(key) != value}}
    keys |= {key: kernel[key] for key in ('type', 'read', 'written')}
    return f'  - {single.flow(keys | {"time": f"{us:.1f} us"})}\n'


def text_of(rows):
    return HEAD + ''.join(line(*row) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', default=single.DATA)
    parser.add_argument('-o', '--output', type=pathlib.Path, default=TABLE)
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    text = text_of(table_rows(arguments.data))
    if not arguments.check:
        arguments.output.write_text(text)
    elif not arguments.output.is_file() or arguments.output.read_text() != text:
        sys.exit(f'{arguments.output} is stale: run {pathlib.Path(__file__).name}')


if __name__ == '__main__':
    main()
