#!/usr/bin/env python3
"""Holds the laws of single kernels against public measurements of single operations on devices
other than the one that most of their constants come from (tests/data/operations; sources there).

    tests/experiments/other_devices.py [--ddpsim-tests build/release/tests] [--rows DEVICE]
                                       [--json FILE]

Each measured operation becomes a layer of a workload description, as in single_operations.py, and
is priced by the laws for the device of the catalogue that it names; cards that the catalogue has in
another form only (V100 on PCIe) are that device with the figures of their data sheet. Rows of
devices or operations that the catalogue and the laws do not know are left out, and counted.
Prints, for each device and class, the median error, what nine in ten are within, and the bias.
"""
import argparse
import collections
import csv
import gzip
import pathlib
import statistics
import tempfile

import experiment
from single_operations import (EVENTS, GAP, ROOT, SIZE, by_rows, elementwise, kernel,
                               layout, moved, priced_alike, spread)

DATA = ROOT / 'tests/data/operations'
FILES = ('neusight', 'deepbench', 'cudnn_frontend', 'batch_norms')
SIZE.setdefault('fp16', 2)
# By their data sheets; a V100 for PCIe has the memory and the multiprocessors of the other.
DEVICES = {
    'h200': 'base: h200', 'h100-sxm': 'base: h100-sxm', 'gb200': 'base: gb200',
    'a100-pcie-40': 'base: a100-pcie-40', 'a100-pcie-80': 'base: a100-pcie-80', 'l4': 'base: l4',
    't4': 'base: t4', 'v100-sxm': 'base: v100', 'a100-40': 'base: a100-40',
    'rtx-2070-super': 'base: t4\nmultiprocessors: 40\nmemory_bandwidth: 448 GB/s\n'
                      'peak: {fp32: 9.06 TFLOP/s}',
    'v100-pcie-32': 'base: v100\npeak: {fp32: 14 TFLOP/s, fp16: 112 TFLOP/s}'}
ALONG_K = {'TN column-major': 2, 'NN column-major': 1, 'NT column-major': 0}


def gemm(m, n, k, along, dtype, batch=1):
    size = SIZE[dtype] * batch
    return [kernel('gemm', size * (m * k + n * k), size * m * n, dtype,
                   gemm={'m': m, 'n': n, 'k': k, 'batch': batch, 'along_k': along})]


def product(what, dtype, shape):
    if what == 'forward NT':
        return gemm(*shape, 2, dtype)
    # A product of columns is that of rows with its sides exchanged.
    m, n, k = shape
    return gemm(n, m, k, ALONG_K[what], dtype)


def convolution(row, dtype):
    """The main kernel and, in 16 bits on tensor cores that want channels last, its copies."""
    shape = [int(side) for side in row['shape'].split('x')]
    if len(shape) == 9:
        pictures, channels, high, wide, outputs, window_high, window_wide, stride, pad = shape
        groups = 1
        places = ((high + 2 * pad - window_high) // stride + 1) * (
            (wide + 2 * pad - window_wide) // stride + 1)
    else:
        pictures, channels, high, outputs, window_high, stride, groups = shape
        wide, window_wide = high, window_high
        places = round(float(row['flops']) / (2 * pictures * outputs * channels // groups
                                              * window_high ** 2))
    pixels, window = high * wide, window_high * window_wide
    size, direction = SIZE[dtype], row['what']
    data, result = pictures * channels * pixels, pictures * outputs * places
    weight = outputs * channels // groups * window
    parts = {'forward': (data, weight, result), 'input': (result, weight, data),
             'weight': (result, data, weight)}[direction]
    main = kernel('conv', size * (parts[0] + parts[1]), size * parts[2], dtype,
                  gemm={'m': pictures * places, 'n': outputs // groups,
                        'k': channels // groups * window, 'batch': groups},
                  conv={'direction': direction, 'pictures': pictures, 'channels': channels,
                        'pixels': pixels, 'outputs': outputs, 'places': places, 'window': window,
                        'groups': groups, 'channels_last': 'false'})
    if dtype == 'fp32':
        return [main]
    return [layout(parts[0], dtype), layout(parts[1], dtype), main, layout(parts[2], dtype)]


def attention(what, dtype, shape):
    """By cuDNN; None where heads of queries and of values differ in size."""
    batch, heads, queries, keys, sizes, causal = shape.split('x')
    size, of_values = (int(each) for each in sizes.split('/'))
    if size != of_values:
        return None
    of_queries, of_keys = (int(each) for each in heads.split('/'))
    batch, queries, keys = int(batch), int(queries), int(keys)
    backward = what.startswith('backward')
    q, kv = (SIZE[dtype] * batch * n * size for n in (of_queries * queries, of_keys * keys))
    read, written = (3 * q + 2 * kv, q + 2 * kv) if backward else (q + 2 * kv, q)
    return [kernel('attention', read, written, dtype,
                   attention={'batch': batch, 'heads': of_queries, 'queries': queries, 'keys': keys,
                              'size': size, 'causal': 'true' if causal == '1' else 'false',
                              'backward': str(backward).lower(), 'implementation': 'cudnn'})]


def batch_norm(what, dtype, shape):
    """By cuDNN. The gradient is added to an earlier one."""
    pictures, channels, side = shape
    pixels = pictures * side ** 3
    all, backward = SIZE[dtype] * pixels * channels, 'backward' in what
    norm = moved('batch_norm', 2 * all, all, dtype, channels, pixels, inner=side ** 3,
                 channels_last=str(what.endswith('nhwc')).lower(), backward=str(backward).lower())
    return [norm, moved('elementwise', 2 * all, all, dtype)] if backward else [norm]


def kernels_of(row):
    """(class, kernels) of a measured row, or None where no law of kernels is meant."""
    kind, what, dtype, shape = row['kind'], row['what'], row['dtype'], row['shape']
    if dtype not in SIZE:
        return None
    sides = [int(side) for side in shape.split('x')] if '/' not in shape else []
    if kind == 'gemm':
        return f'products {dtype}', product(what, dtype, sides)
    if kind == 'bmm':
        batch, m, n, k = sides
        return 'batched products', gemm(m, n, k, 2, dtype, batch)
    if kind.startswith('conv'):
        return f'convolutions {dtype}, {what}', convolution(row, dtype)
    if kind == 'attention':
        if what not in ('forward cudnn', 'backward cudnn'):
            return None
        return f'attention, {what}', attention(what, dtype, shape)
    if kind == 'elementwise':
        return 'elementwise', elementwise(what, dtype, sides[0] * sides[1])
    if what.startswith('batch_norm'):
        return what, batch_norm(what, dtype, sides)
    name = what.removesuffix(', pytorch')
    if name in ('layer_norm', 'layer_norm backward', 'softmax') and name != what or ',' not in what:
        return name, by_rows(name, dtype, *sides)
    return None


def measured_rows(data=DATA):
    """({device: [(class, row, kernels)]}, {what is left out: how many rows})"""
    rows, left_out = collections.defaultdict(list), collections.Counter()
    for name in FILES:
        with gzip.open(data / f'{name}.csv.gz', 'rt') as file:
            for row in csv.DictReader(line for line in file if not line.startswith('#')):
                if row['device'] not in DEVICES:
                    left_out[f'of {row["device"]}'] += 1
                    continue
                found = kernels_of(row)
                if not found or not found[1]:
                    left_out[f'{row["kind"]} in {row["dtype"]}: {row["what"]}'] += 1
                    continue
                rows[row['device']].append((found[0], row, found[1]))
    return rows, left_out


def priced(rows, device, tests):
    """Predicted us of each row, of kernels alone, as if nothing had been measured on the device."""
    found = [0.0] * len(rows)
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(f'{DEVICES[device]}\noperations: none\n')
        file.flush()
        for compute in ('fp32', None):
            wanted = [n for n, row in enumerate(rows)
                      if (row[1]['dtype'] == 'fp32') == bool(compute)]
            if wanted:
                times = priced_alike([rows[n] for n in wanted], tests, file.name, compute)
                for n, time in zip(wanted, times):
                    found[n] = time - EVENTS - GAP * (len(rows[n][2]) - 1)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim-tests', default=ROOT / 'build/release/tests')
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--rows', metavar='DEVICE', help='print every row of a device')
    parser.add_argument('--json', help='results to which the figures of each class are added')
    arguments = parser.parse_args()
    rows, left_out = measured_rows()
    cases = []
    print(f'{"device":14} {"class":28} rows  median  nine in ten   bias')
    for device in DEVICES:
        errors = collections.defaultdict(list)
        for (name, row, _), time in zip(rows[device],
                                        priced(rows[device], device, arguments.ddpsim_tests)):
            error = time / float(row['us']) - 1
            errors[name].append(error)
            if arguments.rows == device:
                print(f'{name:28} {row["what"]:18} {row["shape"]:36} {float(row["us"]):10.2f} '
                      f'{time:10.2f} {100 * error:+7.1f} %')
        for name, some in errors.items():
            median, ninth = spread(some)
            cases.append({'device': device, 'class': name, 'rows': len(some),
                          'median_error': median, 'ninth_decile_error': ninth,
                          'bias': statistics.median(some)})
            print(f'{device:14} {name:28} {len(some):4} {100 * median:6.1f} % {100 * ninth:8.1f} % '
                  f'{100 * statistics.median(some):+8.1f} %')
    print('left out: ' + '; '.join(f'{count} {what}' for what, count in left_out.items()))
    if arguments.json:
        experiment.add_run(arguments.json, __file__, experiment.rounded(
            {**experiment.computed_now(arguments.ddpsim), 'cases': cases}), ('device', 'class'))


if __name__ == '__main__':
    main()
