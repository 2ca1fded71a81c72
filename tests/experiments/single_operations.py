#!/usr/bin/env python3
"""Holds the laws of single kernels against what one H200 took for single operations
(tests/data/h200/operations.csv.gz).

    tests/experiments/single_operations.py [--ddpsim-tests build/release/tests] [--rows]
                                           [--json FILE]
    tests/experiments/single_operations.py --table

Each measured operation becomes a layer of a workload description, with the kernels that it
launches, and price_description prices it; a row holds 2.7 us of the events around it. Rows of
several kernels and little work measure the host and are left out: backward passes of norms and
attention below 150 us, of embeddings (31 kernels), optimizers. Prints, for each class, the
median error and what nine in ten are within, of the laws alone: the catalogue's table of measured
operations is made of the same rows.

--table scores that table where sizes between its rows have a meaning: products of a number of rows
(samples) that is left out of the table, each of the four in turn. A convolution has one size only.
"""
import argparse
import csv
import gzip
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import experiment

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / 'tests/data/h200/operations.csv.gz'
EVENTS = 2.7      # us in every row
GAP = 1.3         # us between the kernels of a row
HOST_BOUND = 150  # us below which backward rows of several kernels measure the host
SIZE = {'bf16': 2, 'fp32': 4, 'tf32': 4}


def kernel(kind='memory', read=0, written=0, type='fp32', **more):
    return {'op': more.pop('op', kind), 'kind': kind, 'type': type, 'read': int(read),
            'written': int(written), 'host': '1 us', **more}


def moved(of, read, written, type, rows=1, columns=1, **more):
    pattern = {'of': of, 'rows': int(rows), 'columns': int(columns), **more}
    return kernel(read=read, written=written, type=type, op=of, pattern=pattern)


def product(what, dtype, shape):
    m, n, k = shape
    along = {'forward NT': 2, 'input NN': 1, 'weight TN': 0}[what]
    sides = {'forward NT': (m, n, k), 'input NN': (m, k, n), 'weight TN': (n, k, m)}[what]
    size = SIZE[dtype]
    return [kernel('gemm', size * (m * k + n * k), size * m * n, dtype,
                   gemm=dict(zip('mnk', sides), along_k=along))]


def batched(dtype, shape):
    batch, length, size = shape
    width = SIZE[dtype]
    return [kernel('gemm', 2 * width * batch * length * size, width * batch * length * length,
                   dtype, gemm={'m': length, 'n': length, 'k': size, 'batch': batch})]


def layout(elements, dtype):
    size = SIZE[dtype] * elements
    return moved('layout', size, size, dtype)


def convolution(what, dtype, last, shape):
    """Shape: pictures x channels x side x outputs x window x stride x groups."""
    pictures, channels, side, outputs, window, stride, groups = shape
    pad = 0 if window == stride else window // 2
    small = (side + 2 * pad - window) // stride + 1
    size = SIZE[dtype]
    data, result = pictures * channels * side ** 2, pictures * outputs * small ** 2
    weight = outputs * channels // groups * window ** 2
    parts = {'forward': (data, weight, result), 'input': (result, weight, data),
             'weight': (result, data, weight)}[what]
    gemm = {'m': pictures * small ** 2, 'n': outputs // groups,
            'k': channels // groups * window ** 2, 'batch': groups}
    main = kernel('conv', size * (parts[0] + parts[1]), size * parts[2], dtype, gemm=gemm,
                  conv={'direction': what, 'pictures': pictures, 'channels': channels,
                        'pixels': side ** 2, 'outputs': outputs, 'places': small ** 2,
                        'window': window ** 2, 'groups': groups,
                        'channels_last': str(last).lower()})
    by_channel = groups == channels
    plain = window == 1 and stride == 1 and side ** 2 % (16 // 4) == 0
    if (last or dtype == 'fp32' or by_channel or channels % 4
            or plain and not (dtype == 'tf32' and what == 'weight' and side ** 2 < 300)):
        return [main]
    return [layout(parts[0], dtype), layout(parts[1], dtype), main, layout(parts[2], dtype)]


def attention(what, dtype, shape):
    direction, name = what.split()
    batch, heads, length, size, causal = shape
    if name == 'math':
        return None
    elements = batch * heads * length * size * SIZE[dtype]
    read, written = (3 * elements, elements) if direction == 'forward' else (5 * elements,
                                                                            3 * elements)
    type = 'fp32' if dtype == 'tf32' else dtype
    main = kernel('attention', read, written, type,
                  attention={'batch': batch, 'heads': heads, 'queries': length, 'keys': length,
                             'size': size, 'causal': str(bool(causal)).lower(),
                             'backward': str(direction == 'backward').lower(),
                             'implementation': name.removesuffix('_attention')})
    if direction == 'backward' and name.startswith('efficient'):
        # The product of gradient and result and its sums by rows, a workspace of zeros, a copy.
        return [moved('elementwise', 2 * elements, elements, type),
                moved('reduce', elements, 0, type), moved('fill', 0, elements, type), main,
                moved('strided', elements, elements, type)]
    return [main]


def elementwise(what, dtype, n):
    size = SIZE[dtype]
    if what == 'cast':
        other = 6 - size
        # A row's format is that of the argument.
        return [moved('widening' if size == 2 else 'elementwise', size * n, other * n,
                      'fp32' if size == 2 else 'bf16')]
    reads = 2 if what in ('add', 'add_', 'gelu backward') else 1
    if what == 'dropout':
        return [moved('dropout', size * n, (size + 1) * n, dtype)]
    return [moved('gelu' if 'gelu' in what else 'elementwise', reads * size * n, size * n, dtype)]


def by_rows(what, dtype, rows, columns):
    all = SIZE[dtype] * rows * columns
    if what == 'layer_norm':
        return [moved('layer_norm', all, all, dtype, rows, columns)]
    if what == 'layer_norm backward':
        return [moved('layer_norm', 2 * all, all, dtype, rows, columns, backward='true'),
                moved('layer_norm_weights', 2 * all, 0, dtype, rows, columns)]
    if what == 'softmax':
        return [moved('softmax', all, all, dtype, rows, columns)]
    return [moved('fill', 0, columns * 4, dtype),
            moved('sum_of_rows', all, 0, dtype, rows, columns)]


def pictures(what, dtype, shape):
    """Norms and pools of pictures x channels x side."""
    batch, channels, side = shape
    last = what.endswith('nhwc')
    name, n = what.rsplit(' ', 1)[0], batch * side ** 2
    all, more = SIZE[dtype] * n * channels, {'channels_last': str(last).lower(), 'inner': side ** 2}
    backward = {'backward': 'true'}
    if name == 'group_norm':
        groups = 32 * batch
        return [moved('group_norm', 2 * all, all, dtype, groups, channels * n // groups,
                      channels_last=str(last).lower())]
    if name.startswith('max'):
        outputs = batch * channels * ((side + 1) // 2) ** 2
        return [moved('max_pool', all, outputs * (SIZE[dtype] + 8), dtype, outputs, 9,
                      channels_last=str(last).lower())]
    if dtype == 'bf16':
        if name == 'batch_norm':
            return [moved('batch_norm_statistics', all, 0, dtype, channels, n, **more),
                    moved('fill', 0, 4 * channels, dtype),
                    moved('batch_norm_transform', all, all, dtype, channels, n, **more)]
        if last:
            return [moved('batch_norm_statistics', 2 * all, 0, dtype, channels, n, **more,
                          **backward),
                    moved('batch_norm_transform', 2 * all, all, dtype, channels, n, **more,
                          **backward)]
        return [moved('batch_norm_own', 4 * all, all, dtype, channels, n, **more, **backward)]
    return [moved('batch_norm', 2 * all, all, dtype, channels, n, **more,
                  **(backward if 'backward' in name else {}))]


def loss(what, dtype, rows, columns):
    all = SIZE[dtype] * rows * columns
    kernels = [moved('log_softmax', all, all, dtype, rows, columns)]
    return kernels + ([moved('elementwise', 8 * rows, 8, dtype)] if what == 'cross_entropy' else [])


def embedding(what, dtype, tokens, rows, width):
    size = SIZE[dtype] * tokens * width
    if what == 'forward':
        return [moved('gather', size, size, dtype, tokens, width)]
    return [moved('fill', 0, SIZE[dtype] * rows * width, dtype),
            {**moved('embedding_sum', 2 * size, size, dtype, tokens, width), 'launches': 30}]


def kernels_of(row):
    """(class, kernels) of a measured row, or None where no law of kernels is meant."""
    kind, what, dtype = row['kind'], row['what'], row['dtype']
    if kind in ('host', 'optimizer'):
        return None
    shape = [int(side) for side in row['shape'].split('x')]
    if kind == 'gemm':
        return f'products {dtype}', product(what, dtype, shape)
    if kind == 'bmm':
        return 'batched products', batched(dtype, shape)
    if kind.startswith('conv'):
        channels_last = kind.endswith('nhwc')
        name = 'convolutions'
        if shape[6] == shape[1]:
            name = 'depthwise, ' + ('last' if channels_last else 'first')
        elif shape[6] > 1 or shape[1] % 4:
            name = 'few channels, groups'
        elif dtype == 'fp32':
            name = 'convolutions fp32'
        return (name if name != 'convolutions' else f'convolutions {dtype}',
                convolution(what, dtype, channels_last, shape))
    if kind == 'attention':
        return 'attention, ' + what.split()[1].removesuffix('_attention'), attention(what, dtype,
                                                                                   shape)
    if kind == 'elementwise':
        return 'elementwise', elementwise(what, dtype, shape[0])
    if kind == 'reduce' and what == 'sum all':
        size = SIZE[dtype] * shape[0]
        return 'sums', [moved('sum', size, 4, dtype, 1, shape[0])]
    if kind == 'reduce' or kind == 'norm' and len(shape) == 2:
        name = 'sums' if kind == 'reduce' else what.split()[0]
        return name, by_rows(what, dtype, *shape)
    if kind in ('norm', 'pool'):
        return what.split()[0].replace('max', 'pools'), pictures(what, dtype, shape)
    if kind == 'loss':
        return 'log_softmax', loss(what, dtype, *shape)
    return 'embedding ' + what, embedding(what, dtype, *shape)


def measures_host(row, kernels):
    if 'backward' not in row['what']:
        return False
    return row['kind'] == 'embedding' or (row['kind'] in ('norm', 'attention')
                                          and float(row['us']) < HOST_BOUND)


def flow(value):
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key}: {flow(each)}' for key, each in value.items()) + '}'
    return str(value)


def description(rows):
    """A workload description whose layers are the rows."""
    lines, kernels = [], []
    for number, (_, _, own) in enumerate(rows):
        first = len(kernels)
        kernels += own
        lines.append(f'  - {{name: r{number}, forward: {list(range(first, len(kernels)))}, '
                     f'backward: [{first}]}}')
    return '\n'.join(['format: ddpsim.workload/2', 'source: single operations', 'batch: 1',
                      'release: 2.11', 'kernels:', *(f'  - {flow(each)}' for each in kernels),
                      'layers:', *lines,
                      'parameters: [{name: p, shape: [1], layer: 0, after: 0}]']) + '\n'


def priced(rows, tests, device='h200', laws_alone=False):
    """Predicted us of each row. Those in fp32 are priced with TF32 off. `laws_alone`: as if nothing
    had been measured on the device."""
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(f'base: {device}\n{"operations: none" if laws_alone else ""}\n')
        file.flush()
        return priced_on(rows, tests, file.name)


def priced_on(rows, tests, device):
    found = [0.0] * len(rows)
    for compute in ('fp32', None):
        wanted = [n for n, row in enumerate(rows) if (row[1]['dtype'] == 'fp32') == bool(compute)]
        if not wanted:
            continue
        for n, time in zip(wanted, priced_alike([rows[n] for n in wanted], tests, device, compute)):
            found[n] = time
    return found


def priced_alike(rows, tests, device, compute):
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(description(rows))
        file.flush()
        done = subprocess.run([pathlib.Path(tests) / 'price_description', file.name, device,
                               *([compute] if compute else [])], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'price_description: exit {done.returncode}: {done.stderr.strip()}')
    busy, count = [0.0] * len(rows), [0] * len(rows)
    for line in csv.DictReader(done.stdout.splitlines()):
        if line['pass'] == 'forward':
            number = int(line['layer'][1:])
            busy[number] += float(line['busy_us'])
            count[number] += int(line['launches'])
    return [us + EVENTS + GAP * (launches - 1) for us, launches in zip(busy, count)]


def samples_of(kernel):
    """Rows of a product; of a weight's gradient the length of its sum."""
    gemm = kernel['gemm']
    return gemm['k'] if gemm.get('along_k', 2) == 0 else gemm['m']


def by_table_without_size(tests, data=DATA):
    """{class: errors} of products by the H200's table, without the rows of their own size."""
    import operations_table
    rows = [row for row in measured_rows(data) if row[1]['kind'] == 'gemm']
    kept = operations_table.table_rows(data)
    errors = {}
    for size in sorted({int(row['shape'].split('x')[0]) for _, row, _ in rows}):
        others = [each for each in kept if 'gemm' not in each[0] or 'conv' in each[0]
                  or samples_of(each[0]) != size]
        some = [row for row in rows if int(row[1]['shape'].split('x')[0]) == size]
        with tempfile.TemporaryDirectory() as folder:
            table, device = pathlib.Path(folder, 't.yaml'), pathlib.Path(folder, 'device.yaml')
            table.write_text(operations_table.text_of(others))
            device.write_text('base: h200\noperations: t.yaml\n')
            times = priced_on(some, tests, device)
        for (name, row, _), time in zip(some, times):
            inside = 'outside' if size in (512, 32768) else 'between'
            row_us = EVENTS + (float(row['us']) - EVENTS) * operations_table.PRODUCTS_IN_A_STEP[
                row['dtype']]
            errors.setdefault(f'{name}, {inside}', []).append(time / row_us - 1)
    return errors


def measured_rows(data=DATA):
    """[(class, row, kernels)]"""
    rows = []
    with gzip.open(data, 'rt') as file:
        for row in csv.DictReader(file):
            found = kernels_of(row)
            if found and found[1] and not measures_host(row, found[1]):
                rows.append((found[0], row, found[1]))
    return rows


def spread(errors):
    sizes = sorted(map(abs, errors))
    return statistics.median(sizes), sizes[math.ceil(0.9 * len(sizes)) - 1]


def by_laws(arguments):
    """{class: errors}"""
    rows = measured_rows(arguments.data)
    errors = {}
    for (name, row, _), time in zip(rows, priced(rows, arguments.ddpsim_tests, laws_alone=True)):
        error = time / float(row['us']) - 1
        errors.setdefault(name, []).append(error)
        if arguments.rows:
            print(f'{name:24} {row["kind"]:10} {row["what"]:26} {row["dtype"]:5} '
                  f'{row["shape"]:28} {float(row["us"]):10.2f} {time:10.2f} {100 * error:+7.1f} %')
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ddpsim-tests', default=ROOT / 'build/release/tests')
    parser.add_argument('--ddpsim', default=ROOT / 'build/release/tools/ddpsim')
    parser.add_argument('--data', default=DATA)
    parser.add_argument('--rows', action='store_true', help='print every row')
    parser.add_argument('--table', action='store_true',
                        help='the table of measured operations, sizes left out')
    parser.add_argument('--json', help='results to which the figures of each class are added')
    arguments = parser.parse_args()
    if arguments.table:
        errors = by_table_without_size(arguments.ddpsim_tests, arguments.data)
    else:
        errors = by_laws(arguments)
    print(f'{"class":26} rows  median  nine in ten   bias')
    for name, some in errors.items():
        median, ninth = spread(some)
        print(f'{name:26} {len(some):4} {100 * median:6.1f} % {100 * ninth:8.1f} % '
              f'{100 * statistics.median(some):+8.1f} %')
    everything = [error for some in errors.values() for error in some]
    median, ninth = spread(everything)
    print(f'{"all":26} {len(everything):4} {100 * median:6.1f} % {100 * ninth:8.1f} %')
    if arguments.json:
        cases = [{'class': name, 'rows': len(some), 'median_error': spread(some)[0],
                  'ninth_decile_error': spread(some)[1]}
                 for name, some in [*errors.items(), ('all', everything)]]
        experiment.add_run(arguments.json, __file__, experiment.rounded(
            {**experiment.computed_now(arguments.ddpsim), 'cases': cases}), ('class',))


if __name__ == '__main__':
    main()
