#!/usr/bin/env python3
"""Holds described kernels (ddpsim describe) against those that an H200 ran.

    tests/experiments/described_kernels.py [CASE ...]

For each case (network and mode) of tests/data/h200/kernels.csv.gz and each pass: how many kernels
are described, as a device with an H200's multiprocessors and cuDNN's attention of PyTorch 2.11 runs
them, and how many the profiler saw, memsets and copies of memory included; and the operations that
differ in number, kind or shapes, described/real. Fills are helpers of operations and only counted
among the kernels. For networks of which only sums are known (steps.json, without memsets), the sum.

Needs torch 2.13, for llama1b transformers.
"""
import collections
import csv
import gzip
import importlib.util
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / 'tests/data/h200'
if importlib.util.find_spec('ddpsim') is None:  # not installed: the sources
    sys.path.insert(0, str(ROOT / 'python'))

MULTIPROCESSORS = 132
CASES = ('lm350-amp', 'lm350-tf32', 'lm350-fp32', 'resnet101-amp', 'resnet101-last',
         'resnet101-tf32', 'resnet101-fp32', 'mobile-last', 'mobile-tf32')
SUMS = ('dlrm-fp32', 'dlrm-tf32', 'lstm-fp32', 'lstm-amp', 'llama1b-bf16')


# --- what is described ---

def described(case):
    """The workload of a case, and of each pass the operations: (kind, shapes or None)."""
    import torch

    from ddpsim.describe import capture, describe
    from ddpsim.describe.user_file import made_by
    name, mode = case.split('-')
    made = made_by(f'{DATA}/networks.py:{name}' + ('_last' if mode == 'last' else ''))
    operations = {False: collections.Counter(), True: collections.Counter()}
    plain = capture.Capture.note

    def note(self, call):
        if not capture.launches_nothing(call):
            own = operations[self._in_backward]
            own[kind_of(call.op[5:]), shapes_of(call)] += 1
            for kernel in capture.kernels_of(call) or ():
                if kernel.op != call.op and kernel.op.startswith('aten.'):
                    own[kind_of(kernel.op[5:]), None] += 1
        plain(self, call)
    capture.Capture.note = note
    try:
        workload = describe(*made, autocast=torch.bfloat16 if mode in ('amp', 'last') else None,
                            tf32='all' if mode == 'tf32' else None, release='2.11')
    finally:
        capture.Capture.note = plain
    return workload, operations


def launches(kernels, mode):
    """Kernels as ddpsim takes them for an H200: what it decides by the device."""
    return sum(launches_of(kernel, mode) for kernel in kernels)


def launches_of(kernel, mode, memsets=1):
    if (kernel.multiprocessors or 0) > MULTIPROCESSORS:
        return 0
    if mode == 'fp32':  # TF32 off: no layouts and helpers of tensor cores
        if kernel.op.startswith('cudnn.'):
            return 0
        if kernel.kind == 'conv':
            return kernel.launches_in_fp32 or kernel.launches
    if kernel.attention and kernel.attention.implementation == 'default':
        return (3 if kernel.attention.backward else 1) + memsets  # cuDNN's
    if kernel.kind == 'gemm' and kernel.type == 'tf32':
        return kernel.launches + memsets * has_memset(kernel.gemm)
    return kernel.launches


def has_memset(gemm):
    """Of TF32's products on Hopper those have one that are made by tiles of 128 x 128 (short sums)
    or in segments of the sum (few tiles)."""
    return gemm.k <= 1024 or -(-gemm.m // 128) * -(-gemm.n // 256) < MULTIPROCESSORS // 2


# --- what the profiler saw ---

HELPERS = ('Memset', 'nchwToNhwc', 'nhwcToNchw', 'AddPadding', 'init_device', 'splitKreduce',
           'ReduceSplitK', 'reduce_wgrad', 'computeOffsets')
SEVERAL = ('mm', 'convolution', 'batch_norm', 'attention', 'layer_norm', 'embedding_dense')
PARTS = ('fill_', 'arange', 'zeros', 'new_zeros', 'ones_like')  # of other operations, mostly


def real(case):
    """Of each pass the number of kernels, and the operations."""
    totals = collections.Counter()
    kernels = {False: collections.defaultdict(list), True: collections.defaultdict(list)}
    with gzip.open(DATA / 'kernels.csv.gz', 'rt') as file:
        for row in csv.DictReader(file):
            if row['case'] != case:
                continue
            backward, count = row['phase'] == 'backward', int(row['count'])
            totals[backward] += count
            if not any(helper in row['kernel'] for helper in HELPERS):
                op = row['op'].removeprefix('aten::')
                shapes = tuple(tuple(shape) for shape in json.loads(row['shapes']) if shape)
                kernels[backward][op, shapes].append(count)
    operations = {}
    for backward, found in kernels.items():
        operations[backward] = collections.Counter()
        for (op, shapes), counts in found.items():
            calls = min(counts) if any(part in op for part in SEVERAL) else sum(counts)
            operations[backward][kind_of(op), shown(kind_of(op), shapes)] += calls
    return totals, operations


# --- one word for what has several names ---

NAMES = {'cudnn_convolution': 'convolution', '_conv_depthwise2d': 'convolution',
         'gather': 'embedding', 'clamp_min_': 'relu', 'relu_': 'relu', '_to_copy': 'copy',
         'copy_': 'copy', 'clone': 'copy', 'add_': 'add', 'addmm': 'mm', 'silu_': 'silu',
         'cudnn_batch_norm': 'batch_norm', 'native_batch_norm': 'batch_norm',
         'cudnn_batch_norm_backward': 'batch_norm_backward',
         'native_batch_norm_backward': 'batch_norm_backward'}


def kind_of(op):
    if 'attention' in op:
        return 'attention_backward' if 'backward' in op else 'attention'
    return NAMES.get(op, op)


def shapes_of(call):
    from ddpsim.describe.tensors import tensors_in
    shapes = [tuple(t.shape) for t in tensors_in(call.args) if t.dim()]
    return shown(kind_of(call.op[5:]), shapes)


def shown(kind, shapes):
    """Those of the matrices, of a convolution's tensors, and of the first tensor of others."""
    shapes = [shape for shape in shapes if shape != (0,)]
    if kind == 'mm':
        return tuple(shapes[-2:])
    if kind in ('convolution', 'convolution_backward'):
        return tuple(shapes[:3])
    if kind.startswith('attention'):
        return tuple(sorted(shapes[0]))
    return tuple(shapes[:1])


def differing(ours, theirs):
    """Words for the kinds whose operations differ in number or shapes."""
    lines = []
    for kind in sorted({kind for kind, _ in ours} | {kind for kind, _ in theirs}):
        if kind in PARTS:
            continue
        mine = collections.Counter({s: n for (k, s), n in ours.items() if k == kind})
        seen = collections.Counter({s: n for (k, s), n in theirs.items() if k == kind})
        free = mine.pop(None, 0)  # parts of other calls, whose shapes are not known
        missing, extra = seen - mine, mine - seen
        if sum(missing.values()) != free or extra:
            wrong = ', '.join(f'{shape} {mine[shape]}/{seen[shape]}'
                              for shape in sorted({*missing, *extra})[:3])
            lines.append(f'{kind} {sum(mine.values()) + free}/{sum(seen.values())}: {wrong}')
    return lines


def main():
    cases = sys.argv[1:] or [*CASES, *SUMS]
    print('| case | pass | described | real | off | operations that differ |')
    print('|---|---|--:|--:|--:|---|')
    for case in cases:
        mode = case.split('-')[1]
        workload, ours = described(case)
        passes = {False: workload.forward, True: workload.backward}
        if case in SUMS:
            seen = json.loads((DATA / 'steps.json').read_text())['cases'][case]['kernels']
            counted = sum(launches_of(kernel, mode, memsets=0) for kernel in
                          workload.forward + workload.backward if 'memset' not in kernel.op)
            print(f'| {case} | both | {counted} | {seen} | {counted / seen - 1:+.1%} | |')
            continue
        totals, theirs = real(case)
        for backward, kernels in passes.items():
            counted, seen = launches(kernels, mode), totals[backward]
            print(f'| {case} | {"backward" if backward else "forward"} | {counted} | {seen} | '
                  f'{counted / seen - 1:+.1%} | '
                  f'{"; ".join(differing(ours[backward], theirs[backward]))} |', flush=True)


if __name__ == '__main__':
    main()
