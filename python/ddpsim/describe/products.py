"""Matrix products: the shape a call multiplies, whole or in parts.

FLOPs equal those of torch.utils.flop_counter, operation by operation.
"""
from dataclasses import replace

import torch

from .kernels import FILL, Gemm, Kernel
from .tensors import bytes_of, format_of, total_bytes


# --- products in parts ---
#
# A product with few tiles of results leaves multiprocessors idle. cuBLAS cuts its sum into parts,
# which other blocks add up, writes each part's result in fp32, and launches a second kernel for
# their sum (splitKreduce). Its heuristics are not public. The classifier of ResNet-50 at batch 32
# has three products, and traces of an A100 (Holistic Trace Analysis, tests/data/nccl_parser_config)
# and of a V100 (pytorch/kineto, tb_plugin/test/result_check_file.txt) agree on them:
#
#     m x n x k            tiles   A100                V100
#     32 x 1000 x 2048         8   5 parts             parts
#     32 x 2048 x 1000        16   5 parts, of 200     parts
#     1000 x 2048 x 32       128   whole               whole
#
# So: where tiles of 128 x 128 are fewer than half of a device's multiprocessors, in as many parts
# as fill an A100, at most 5, each of at least 200. On devices with fewer multiprocessors the
# product is whole: the kernel of the sum says how many it takes. Of 36 products of 1024 rows of
# DistilBERT an RTX 5070 Ti for laptops, with 46, cuts none (anshulk-cmu/HDAI---cuDNN-Profiling@
# e6b5040, results/tables/baseline_breakdown.csv). Batched products, of more tiles, are taken whole.
# All of these are products in fp32: in 16 bits and in TF32 an H200 makes a product of 64 tiles and
# a sum of 8192 whole (tests/data/h200: the gradient of a weight of 1024 x 1024; in fp32 it is cut).

PARTS_BELOW = 152  # tiles of 128 x 128 of a result: half of what the largest devices have
MULTIPROCESSORS = 108
MOST_PARTS, SHORTEST_PART = 5, 200


def tiles(gemm):
    return -(-gemm.m // 128) * -(-gemm.n // 128)


def parts_of(gemm):
    """Into how many parts cuBLAS cuts a product; 1: none."""
    if gemm.batch > 1 or tiles(gemm) >= PARTS_BELOW:
        return 1
    filling = max(2, MULTIPROCESSORS // tiles(gemm))
    return max(1, min(MOST_PARTS, gemm.k // SHORTEST_PART, filling))


def cutting(gemm):
    """The fewest multiprocessors of a device on which a product is cut into parts."""
    return 2 * tiles(gemm) + 1


# --- counted tiles ---
#
# In 16 bits the blocks of Hopper's kernels fetch their tiles by a counter, which a memset clears,
# if there are many: on an H200 products of 1024 tiles of 128 x 256 and more have the memset, and
# those of fewer have none (tests/data/h200; convolutions of 588 to 1470 tiles are not of one kind).
# TF32's have it too, which the device decides. In fp32 the gradients of weights that are made whole
# have one, with which parts of a long sum are added one after the other (cutlass_80_simt, sums of
# 8192 there; none with sums of 96).

HOPPER = 9.0  # compute capability
COUNTED_TILES = 1000
LONG_SUM = 1024  # between those


def counted_tiles(gemm):
    return -(-gemm.m * gemm.n * gemm.batch // (128 * 256)) >= COUNTED_TILES


def along_k(a, b):
    """How many of the factors a [m, k] and b [k, n] lie along k in memory. One that lies along
    neither side is copied before, and its rows are then as they are read."""
    return (a.stride(-1) == 1 or a.stride(-2) != 1) + (b.stride(-2) == 1)


def product(call, gemm, factors):
    """One matrix product of `factors`, the tensors multiplied, by a kernel that writes it whole."""
    return Kernel(op=call.op, kind='gemm', gemm=gemm, type=format_of(factors[0].dtype),
                  along_k=along_k(*factors),
                  read=total_bytes(call.inputs), written=total_bytes(call.outputs))


def products(call, gemm, factors):
    """The kernels of a product, whole or in parts."""
    whole = product(call, gemm, factors)
    if call.device == 'cpu':
        return [whole]
    if factors[0].element_size() < 4:
        if not counted_tiles(gemm):
            return [whole]
        counter = call.memory(0, 4, op='cublas.memset', pattern=FILL)
        return [replace(counter, capability=HOPPER), whole]
    parts = 1 if call.tf32 == 'all' else parts_of(gemm)
    if parts == 1:
        if call.tf32 != 'all' and whole.along_k == 0 and gemm.k >= LONG_SUM:
            return [call.memory(0, 4, op='cublas.memset', pattern=FILL), whole]
        return [whole]
    # Parts are written by the product, which elsewhere writes the result: both is counted here.
    size = 4 * parts * gemm.m * gemm.n
    return [whole, replace(call.memory(size, size, op='cublas.sum_of_parts'),
                           multiprocessors=cutting(gemm))]


def mm(call):
    a, b = call['self'], call['mat2']
    return products(call, Gemm(a.shape[0], b.shape[1], a.shape[1]), (a, b))


def addmm(call):
    """The bias is added where the product is written (Blas.cpp: one dimension, contiguous, factors
    1); another addend is copied into the result first and read from there."""
    a, b = call['mat1'], call['mat2']
    added = call['self']
    kernels = products(call, Gemm(a.shape[0], b.shape[1], a.shape[1]), (a, b))
    in_epilogue = added.dim() == 1 and added.is_contiguous() and call['beta'] == 1
    if not in_epilogue and not call.changed and call['beta'] != 0:
        kernels.insert(0, call.memory(bytes_of(added), bytes_of(call.result), op='aten.copy_'))
    return kernels


def scaled_mm(call):
    a, b = call['self'], call['mat2']
    return [product(call, Gemm(a.shape[0], b.shape[1], a.shape[1]), (a, b))]


def batched(call, a, b):
    return product(call, Gemm(a.shape[1], b.shape[2], a.shape[2], a.shape[0]), (a, b))


def bmm(call):
    return [batched(call, call['self'], call['mat2'])]


def baddbmm(call):
    kernels = [batched(call, call['batch1'], call['batch2'])]
    if not call.changed and call['beta'] != 0:
        kernels.insert(0, call.memory(bytes_of(call['self']), bytes_of(call.result),
                                      op='aten.copy_'))
    return kernels


def grouped_mm(call):
    """Products of different rows with different matrices (experts). Rows are taken as evenly
    divided among the matrices; where they do not divide, as one product of all rows. In bf16 one
    kernel (since Hopper); else the host asks where the groups end, and launches a product for each
    (GroupedBlas.cpp, GroupedMMUtils.h). On a CPU likewise."""
    a, b = call['self'], call['mat2']
    if a.dim() == 2 and b.dim() == 3:  # rows in groups
        groups, rows, n, k = b.shape[0], a.shape[0], b.shape[2], a.shape[1]
        gemm = Gemm(rows // groups, n, k, groups) if rows % groups == 0 else Gemm(rows, n, k)
    elif a.dim() == 2 and b.dim() == 2:  # the summed dimension in groups: weights' gradients
        groups, k = call.result.shape[0], a.shape[1]
        gemm = (Gemm(a.shape[0], b.shape[1], k // groups, groups) if k % groups == 0
                else Gemm(a.shape[0], b.shape[1], k))
    elif a.dim() == 3 and b.dim() == 2:  # columns in groups
        groups, columns = a.shape[0], b.shape[1]
        gemm = (Gemm(a.shape[1], columns // groups, a.shape[2], groups) if columns % groups == 0
                else Gemm(a.shape[1], columns, a.shape[2]))
    else:
        gemm = Gemm(a.shape[1], b.shape[2], a.shape[2], a.shape[0])
    kernel = product(call, gemm, (a, b))
    if one_grouped_kernel(call, a):
        return [kernel]
    groups = max(a.shape[0] if a.dim() == 3 else 1, b.shape[0] if b.dim() == 3 else 1,
                 call.result.shape[0] if call.result.dim() == 3 else 1)
    return [replace(kernel, launches=groups, operations=groups)]


def one_grouped_kernel(call, rows):
    return call.device == 'cuda' and rows.dtype == torch.bfloat16


RULES = {'aten.mm': mm, 'aten.addmm': addmm, 'aten.addmm_': addmm, 'aten.bmm': bmm,
         'aten.baddbmm': baddbmm, 'aten.baddbmm_': baddbmm, 'aten._scaled_mm': scaled_mm,
         'aten._grouped_mm': grouped_mm}
