"""Measured kernels that decide constants of model/kernel/step_constants.hpp, for fit_kernels.

A row has the group of constants that it decides, microseconds, the kernels that ran, the network
whose step they are of, and whether they are a single operation instead (network None). Where the
kernels of a group are known from whole steps, single operations do not count: their backward rows
measure the host, and their cache is cold.
"""
import csv
import gzip
import json
import pathlib
from dataclasses import dataclass

import single_operations as single

DATA = single.ROOT / 'tests/data/h200'
SIZE = {'amp': 2, 'last': 2, 'tf32': 4, 'fp32': 4}
TYPE = {'amp': 'bf16', 'last': 'bf16', 'tf32': 'fp32', 'fp32': 'fp32'}
CACHE = 50e6


@dataclass
class Row:
    group: str
    us: float
    kernels: list
    network: str = None

    @property
    def single(self):
        return self.network is None


def profiled():
    """Rows of kernels.csv.gz, each with its shapes and microseconds a call."""
    with gzip.open(DATA / 'kernels.csv.gz', 'rt') as file:
        for row in csv.DictReader(file):
            network, mode = row['case'].rsplit('-', 1)
            shapes = [shape for shape in json.loads(row['shapes']) if shape]
            yield {**row, 'network': network, 'mode': mode, 'shapes': shapes,
                   'op': row['op'].removeprefix('aten::'), 'count': int(row['count']),
                   'us': float(row['total_us']) / int(row['count'])}


def elements(shape):
    product = 1
    for side in shape:
        product *= side
    return product


# --- norms, pools, what moves memory ---

# Part of a kernel's name: (group, pattern, backward, channels last).
NORMS = {
    'bn_fw_tr_1C11_kernel_NCHW': ('batch_norm', 'batch_norm', False, False),
    'bn_fw_tr_1C11_singleread': ('batch_norm_once', 'batch_norm', False, False),
    'bn_bw_1C11_kernel_new': ('batch_norm_backward', 'batch_norm', True, False),
    'bn_bw_1C11_singleread': ('batch_norm_backward_once', 'batch_norm', True, False),
    'batch_norm_collect_statistics_kernel': ('batch_norm_forward_own', 'batch_norm_statistics',
                                             False, False),
    'batch_norm_transform_input_kernel': ('batch_norm_forward_own', 'batch_norm_transform', False,
                                          False),
    'batch_norm_backward_kernel': ('batch_norm_own', 'batch_norm_own', True, False),
    'collect_statistics_channels_last': ('batch_norm_last', 'batch_norm_statistics', False, True),
    'transform_input_channels_last': ('batch_norm_last', 'batch_norm_transform', False, True),
    'backward_reduce_channels_last': ('batch_norm_last_backward', 'batch_norm_statistics', True,
                                      True),
    'backward_elemt_channels_last': ('batch_norm_last_backward', 'batch_norm_transform', True,
                                     True)}
LAYER_NORMS = {'layer_norm_grad_input_kernel': 'layer_norm',
               'GammaBetaBackward': 'layer_norm_weights'}
# How many tensors of the first one's size an operation reads and writes.
TENSORS = {'clamp_min_': 2, 'threshold_backward': 3, 'silu_': 2, 'silu_backward': 3, 'add': 3,
           'add_': 3, 'gelu': 2, 'gelu_backward': 3}


def norm_row(each):
    for name, (group, pattern, backward, last) in NORMS.items():
        if name in each['kernel']:
            n, channels, *sides = each['shapes'][0]
            kernel = single.moved(pattern, 0, 0, TYPE[each['mode']], channels, n * elements(sides),
                                  inner=elements(sides), channels_last=str(last).lower(),
                                  backward=str(backward).lower())
            return Row(group, each['us'], [kernel], each['network'])
    for name, pattern in LAYER_NORMS.items():
        if name in each['kernel']:
            shape = each['shapes'][0]
            rows, columns = elements(shape[:-1]), shape[-1]
            size = 4 * rows * columns
            kernel = single.moved(pattern, 2 * size, size if pattern == 'layer_norm' else 0, 'fp32',
                                  rows, columns, backward='true')
            return Row('layer_norm_backward', each['us'], [kernel], each['network'])
    return None


def elementwise_row(each):
    if not each['shapes'] or each['op'] not in TENSORS:
        return None
    alike = len(each['shapes']) < 2 or each['shapes'][0] == each['shapes'][1]
    mixed = each['network'] == 'lm350' and each['mode'] == 'amp'  # of two formats
    if mixed or TENSORS[each['op']] == 3 and not alike:
        return None
    size = SIZE[each['mode']] * elements(each['shapes'][0])
    moved = TENSORS[each['op']] * size
    group = 'warm' if moved <= CACHE else 'half_warm' if moved <= 2 * CACHE else None
    if group is None or moved < 4e6:  # what is short is its start
        return None
    kernel = single.moved('elementwise', moved - size, size, TYPE[each['mode']])
    return Row(group, each['us'], [kernel], each['network'])


def pool_row(each):
    if each['op'] != 'max_pool2d_with_indices_backward':
        return None
    last = 'nhwc' in each['kernel']
    kernel = single.moved('max_pool', 0, 0, TYPE[each['mode']], elements(each['shapes'][0]), 9,
                          channels_last=str(last).lower(), backward='true')
    return Row('max_pool_backward' + '_last' * last, each['us'], [kernel], each['network'])


def unaligned_row(each):
    """Pictures of 14 x 14 in bf16, in the layers without stride."""
    if each['op'] != 'cudnn_convolution' or each['mode'] != 'amp' or any(
            name in each['kernel'] for name in (*HELPERS, 'nchwToNhwc')):
        return None
    data, weight = each['shapes'][:2]
    if data[2:] != [14, 14] or weight[2:] != [1, 1] or weight[0] > data[1] and weight[1] > 256:
        return None
    shape = (data[0], data[1], 14, weight[0], 1, 1, 1)
    return Row('unaligned_picture', each['us'],
               single.convolution('forward', 'bf16', False, shape), each['network'])


# --- attention's gradient, layouts: sums of several kernels ---

def attention_rows(kernels):
    """The gradient of attention: of cuDNN all its kernels, of the efficient kernel itself."""
    rows = {}
    for each in kernels:
        if 'attention_backward' not in each['op']:
            continue
        rows.setdefault((each['case'], each['op']), []).append(each)
    for (case, op), some in rows.items():
        shapes = some[0]['shapes'][0]
        cudnn = 'cudnn' in op
        batch, heads, length, size = shapes if cudnn else [shapes[i] for i in (0, 2, 1, 3)]
        us = sum(each['us'] for each in some if cudnn or 'fmha' in each['kernel'])
        name = 'cudnn' if cudnn else 'efficient'
        dtype = 'bf16' if cudnn else 'fp32'
        kernel = single.attention(f'backward {name}_attention', dtype,
                                  (batch, heads, length, size, 1))
        main = next(each for each in kernel if 'attention' in each)
        yield Row('attention_backward' if cudnn else 'efficient_backward', us, [main],
                  some[0]['network'])


def layout_rows(kernels):
    """Copies between layouts, of convolutions whose number says what they copy: forward data and
    weight; backward the gradient and the data, or weight and gradient besides."""
    calls, copies = {}, {}
    for each in kernels:
        if 'conv' not in each['op'] or each['mode'] not in ('amp', 'tf32'):
            continue
        if 'nchwToNhwc' in each['kernel']:
            copies.setdefault((each['case'], each['phase'], str(each['shapes'])), []).append(each)
        elif each['phase'] == 'forward' and not any(name in each['kernel'] for name in HELPERS):
            key = each['case'], str(each['shapes'][:2])
            calls[key] = calls.get(key, 0) + each['count']
    for (case, phase, _), some in copies.items():
        shapes = some[0]['shapes'][:3 if phase == 'backward' else 2]
        gradient, data, weight = shapes if phase == 'backward' else [None, *shapes]
        called = calls.get((case, str([data, weight])), 0)
        count = sum(each['count'] for each in some)
        copied = {2: [data, gradient or weight], 4: [weight, gradient, gradient, data]}.get(
            count // called if called and count % called == 0 else 0)
        if copied is None or data[1] < 16:  # few channels are padded
            continue
        us = sum(each['us'] * each['count'] for each in some) / called
        network, mode = case.rsplit('-', 1)
        yield Row('layout' if mode == 'tf32' else 'layout_narrow', us,
                  [single.layout(elements(shape), TYPE[mode]) for shape in copied], network)


HELPERS = ('Memset', 'nhwcToNchw', 'AddPadding', 'init_device', 'computeOffsets')


# --- single operations, for groups that no step knows ---

SINGLES = {'batch_norm nchw fp32': 'batch_norm',
           'batch_norm backward nchw fp32': 'batch_norm_backward',
           'batch_norm nchw bf16': 'batch_norm_forward_own',
           'batch_norm backward nchw bf16': 'batch_norm_own',
           'batch_norm nhwc bf16': 'batch_norm_last',
           'batch_norm backward nhwc bf16': 'batch_norm_last_backward',
           'layer_norm backward fp32': 'layer_norm_backward',
           'layer_norm backward bf16': 'layer_norm_backward',
           'backward efficient_attention fp32': 'efficient_backward',
           'backward efficient_attention tf32': 'efficient_backward'}


def single_rows():
    for _, row, kernels in single.measured_rows():
        us = float(row['us'])
        group = SINGLES.get(f'{row["what"]} {row["dtype"]}')
        if group and us >= single.HOST_BOUND:
            yield Row(group, us - single.EVENTS, kernels)
        if (row['kind'] == 'conv nchw' and row['dtype'] == 'bf16' and row['what'] != 'weight'
                and row['shape'].endswith('x14x256x1x1x1')):
            yield Row('unaligned_picture', us - single.EVENTS, kernels)


def all_rows():
    kernels = list(profiled())
    rows = [row for each in kernels
            for row in (norm_row(each), elementwise_row(each), pool_row(each),
                        unaligned_row(each)) if row]
    return [*rows, *attention_rows(kernels), *layout_rows(kernels), *single_rows()]


def rows_without(rows, network):
    """Without the network's; single operations only of groups that have no other rows; no copies of
    layout where there are two, which decide no start and rate."""
    kept = [row for row in rows if row.network != network]
    known = {row.group for row in kept if not row.single}
    layouts = sum(row.group == 'layout' for row in kept)
    return [row for row in kept if (not row.single or row.group not in known)
            and (row.group != 'layout' or layouts > 2)]
