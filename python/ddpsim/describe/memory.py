"""Operations that only move memory: what CUDA launches for each, and the bytes.

Where a table below has nothing to say, an operation reads each argument once and writes each result
once, in one kernel. Sources, all in torch 2.6's aten/src/ATen/native/cuda unless another is named:
Reduce.cuh, layer_norm_kernel.cu, Normalization.cu, group_norm_kernel.cu, Loss.cu, NLLLoss2d.cu,
Embedding.cu, EmbeddingBackwardKernel.cu, Indexing.cu, DilatedMaxPool2d.cu, Sort.cu,
ScanKernels.cpp, Dropout.cu, TensorFactories.cpp, FunctionsManual.cpp; counts of layer norm,
embedding, batch norm, pooling and cross entropy are also those of public Kineto traces of A100 and
V100.
"""

import torch

from . import patterns
from .kernels import FILL, Pattern
from .tensors import bytes_of, total_bytes


def generic(call):
    return [call.memory()]


def elementwise(call):
    return [call.memory(pattern=patterns.of_elementwise(call))]


# Many elements for few results are added up by several blocks each, which count each other through
# memory that a memset clears before (Reduce.cuh, global_reduce): where rows are added up, of 16
# threads each at least 256; to one number, each of 512 threads as many. The kernels of an H200
# (tests/data/h200) have the memset for 8192 rows, and none for 256.

ROWS_OF_BLOCKS, ELEMENTS_OF_BLOCKS = 4096, 131072


def reduction(call):
    pattern = patterns.of_reduction(call)
    kernels = [call.memory(pattern=pattern)]
    if (pattern.of == 'sum_of_rows' and pattern.rows >= ROWS_OF_BLOCKS
            or pattern.of == 'sum' and pattern.columns >= ELEMENTS_OF_BLOCKS):
        kernels.insert(0, memset(call))
    return kernels


def memset(call, op='memset', launches=1):
    """A memset of a few bytes in which the blocks of a kernel count."""
    return call.memory(0, 4 * launches, launches, op, FILL)


def softmax(name, backward=False):
    return lambda call: [call.memory(pattern=patterns.along(call, name, backward))]


def max_pool(call):
    return [call.memory(pattern=patterns.pooled(call, 'max_pool', call.outputs[0]))]


def average_pool(call):
    return [call.memory(pattern=patterns.pooled(call, 'pool', call.outputs[0]))]


def average_pool_backward(call):
    return [call.memory(pattern=patterns.pooled(call, 'pool', call['grad_output'], True))]


def max_pool_backward(call):
    """Zeros, to which the gradients are added where the largest elements were."""
    result = total_bytes(call.outputs)
    return [call.memory(0, result, op='aten.fill_', pattern=FILL),
            call.memory(written=result, pattern=patterns.pooled(
                call, 'max_pool', call['grad_output'], True))]


def dropout(call):
    return [call.memory(pattern=Pattern('dropout', backward=call.op.endswith('backward')))]


def layer_norm(call):
    return [call.memory(pattern=Pattern('layer_norm', *rows_of_norm(call, call.inputs[0])))]


def rows_of_norm(call, data):
    columns = 1
    for size in call['normalized_shape']:
        columns *= size
    return data.numel() // max(1, columns), columns


def launches(count):
    """Every argument is read once and every result written once, by `count` kernels."""
    return lambda call: [call.memory(launches=count)]


def write_only(call):
    """Fills: what was there before is not read."""
    return [call.memory(read=0, pattern=FILL)]


def copy(call):
    return [call.memory(read=bytes_of(call['src']), written=bytes_of(call['self']),
                        pattern=patterns.of_elementwise(call))]


def masked_fill(call):
    """In place, in a copy (TensorAdvancedIndexing.cpp)."""
    return [call.memory(bytes_of(call['self']), bytes_of(call.result), op='aten.clone'),
            call.memory(bytes_of(call.result) + bytes_of(call['mask']), bytes_of(call.result),
                        pattern=patterns.of_elementwise(call))]


def logsumexp(call):
    """The largest elements of the rows, which are none if they are infinite; what is left of each
    element; its exponential, in place; their sum, of which the logarithm is taken (ReduceOps.cpp).
    """
    data, rows = bytes_of(call['self']), bytes_of(call.result)
    along = patterns.of_reduction(call)
    small = call.memory(2 * rows, rows, 3, op='aten.masked_fill_')  # abs, ==, masked_fill_
    return [call.memory(data, rows, pattern=along), small,
            call.memory(data + rows, data, op='aten.sub', pattern=Pattern('strided')),
            call.memory(data, data, op='aten.exp_'), call.memory(data, rows, pattern=along),
            call.memory(2 * rows, rows, 2, op='aten.add_')]  # log_, add_


def safe_softmax(call):
    """A softmax; which elements were -infinity, and in whole rows (attention.cpp)."""
    data = bytes_of(call.result)
    elements, rows = call.result.numel(), call.result.numel() // max(1, call.result.shape[-1])
    return [call.memory(pattern=patterns.along(call, 'softmax')),
            call.memory(data, elements, op='aten.isneginf'),
            call.memory(elements, rows, op='aten.all'),
            call.memory(rows + data, data, op='aten.where', pattern=Pattern('strided'))]


def scaled(read, written, count=1):
    """Passes over the first argument (read) and the first result (written)."""
    def rule(call):
        first, result = call.inputs[0], call.outputs[0]
        return [call.memory(round(read * bytes_of(first)), round(written * bytes_of(result)),
                            count)]
    return rule


def slice_backward(call):
    """A gradient of zeros, into which the slice's gradient is copied (FunctionsManual.cpp)."""
    given, result = bytes_of(call['grad_output']), bytes_of(call.result)
    return [call.memory(0, result, op='aten.fill_', pattern=FILL),
            call.memory(given, given, op='aten.copy_')]


def pad(call):
    """A fill and a copy of what is inside; only the copy where nothing is added."""
    given, result = bytes_of(call['self']), bytes_of(call.result)
    kernels = [call.memory(min(given, result), min(given, result), op='aten.copy_')]
    if any(amount > 0 for amount in call['pad']):
        kernels.insert(0, call.memory(0, result, op='aten.fill_', pattern=FILL))
    return kernels


def gather(call):
    """Rows are read where they are taken from, not the whole table."""
    source, *indices = call.inputs
    del source
    copies = made_contiguous(call, call['indices']) if call.op == 'aten.embedding' else []
    return [*copies, call.memory(total_bytes(indices) + total_bytes(call.outputs),
                        pattern=patterns.gathered(call))]


def made_contiguous(call, indices):
    """Indices that lie apart are copied."""
    size = bytes_of(indices)
    return [] if indices.is_contiguous() else [call.memory(size, size, op='aten.copy_',
                                                           pattern=Pattern('strided'))]


def scatter(call):
    """Into a copy of the first argument; in place, only the touched elements are moved. Formulas of
    autograd (of gather, of a maximum) work in place, into zeros, and make a copy only where
    something watches the calls, as the capture does (FunctionsManual.cpp: gather_backward,
    value_selecting_reduction_backward)."""
    target, *rest = call.inputs
    moved = total_bytes(rest)
    kernels = []
    if not (call.changed or call.of_autograd):
        kernels = [call.memory(bytes_of(target), bytes_of(target), op='aten.clone')]
    values = bytes_of(rest[-1]) if rest else 0
    return kernels + [call.memory(moved, values)]


def scatter_add(call):
    kernels = scatter(call)
    last = kernels[-1]
    kernels[-1] = call.memory(last.read + last.written, last.written)
    return kernels


def index_put(call):
    """Values are written where the indices say. If they are added up, equal indices are brought
    together first (Indexing.cu, index_put_with_sort_kernel)."""
    if not call['accumulate']:
        return scatter(call)
    target, values = call['self'], call['values']
    indices = [index for index in call['indices'] if index is not None]
    kernels = [] if call.changed else [call.memory(bytes_of(target), bytes_of(target),
                                                   op='aten.clone')]
    return kernels + sorted_pairs(call, max([i.numel() for i in indices], default=0)) + [
        call.memory(2 * bytes_of(values), bytes_of(values))]


def sorted_pairs(call, count):
    """A radix sort of `count` 8-byte keys with 8-byte values: positions are written, digits are
    counted and summed, then a pass over the pairs for each of 8 digits (cub, one-sweep)."""
    pairs = 16 * count
    return [call.memory(0, 8 * count, op='aten.arange', pattern=FILL),
            call.memory(9 * pairs, 8 * pairs, 10, op='aten.sort')]


SMALL_EMBEDDING = 3072  # indices up to which one kernel adds up the rows (EmbeddingBackward)


def embedding_backward(call):
    """A gradient of zeros for the whole table. Then few indices are added up by one kernel; many
    are sorted, and rows of equal indices are added up in two stages: 10 kernels sort, 7 find where
    segments and partial segments start, 2 sum; 10 memsets clear what they count in (31 with zeros
    and the indices' positions, as an H200's kernels show)."""
    gradient, indices = call.inputs[0], call['indices']
    count = indices.numel()
    pattern = Pattern('embedding_sum', count, gradient.numel() // max(1, count))
    touched = min(bytes_of(gradient), total_bytes(call.outputs))
    kernels = [call.memory(0, total_bytes(call.outputs), op='aten.fill_', pattern=FILL)]
    if count <= SMALL_EMBEDDING:
        return kernels + [call.memory(bytes_of(gradient) + bytes_of(indices) + touched, touched,
                                      pattern=pattern)]
    positions, sort = sorted_pairs(call, count)
    return kernels + [*made_contiguous(call, indices), positions, memset(call, launches=10),
                      call.memory(sort.read + 6 * 8 * count + bytes_of(gradient) + touched,
                                  sort.written + 6 * 8 * count + 2 * touched, 19,
                                  pattern=pattern)]


def layer_norm_backward(call):
    """One kernel for the input's gradient, one for those of weight and bias."""
    gradient, data = bytes_of(call['grad_out']), bytes_of(call['input'])
    wanted, sizes = call['output_mask'], rows_of_norm(call, call['input'])
    kernels = []
    if wanted[0]:
        kernels.append(call.memory(gradient + data, bytes_of(call.result[0]),
                                   pattern=Pattern('layer_norm', *sizes, backward=True)))
    if wanted[1] or wanted[2]:
        kernels.append(call.memory(gradient + data,
                                   total_bytes([t for t in call.result[1:] if t is not None]),
                                   pattern=Pattern('layer_norm_weights', *sizes)))
    return kernels


def rms_norm_backward(call):
    gradient, data = bytes_of(call['grad_out']), bytes_of(call['input'])
    sizes = rows_of_norm(call, call['input'])
    kernels = [call.memory(gradient + data, bytes_of(call.result[0]),
                           pattern=Pattern('layer_norm', *sizes, backward=True))]
    if call['output_mask'][1]:
        kernels.append(call.memory(gradient + data, bytes_of(call.result[1]),
                                   pattern=Pattern('layer_norm_weights', *sizes)))
    return kernels


def group_norm(call):
    """Means of groups; factors of channels; the result: one law for all three."""
    data = bytes_of(call['input'])
    return [call.memory(2 * data, data + total_bytes(call.result[1:]), 3,
                        pattern=pattern_of_groups(call, False))]


def group_norm_backward(call):
    """Sums of channels; factors of groups (2); the input's gradient; those of weight and bias."""
    moved, data = bytes_of(call['grad_out']) + bytes_of(call['input']), bytes_of(call['input'])
    input_wanted, weights_wanted = call['output_mask'][:2]
    read, written, launches = moved, 0, 1
    if input_wanted:
        read, written, launches = read + moved, data, launches + 3
    if weights_wanted:
        written, launches = written + total_bytes(call.result[1:]), launches + 1
    return [call.memory(read, written, launches, pattern=pattern_of_groups(call, True))]


def pattern_of_groups(call, backward):
    data, groups = call['input'], call['N'] * call['group']
    return Pattern('group_norm', groups, data.numel() // max(1, groups), backward,
                   patterns.lies_last(data))


def embedding_bag_backward(call):
    """Dense as an embedding's. A sparse gradient has a row for each index, that of its bag
    (EmbeddingBag.cpp, _embedding_bag_sparse_backward)."""
    if not call['sparse']:
        return embedding_backward(call)
    rows, width = call['indices'].numel(), call['grad'].shape[1]
    moved = rows * width * call['grad'].element_size()
    return [call.memory(moved + 8 * rows, moved, op='aten.index_select')]


# A batch norm is one kernel of cuDNN's, of one block of threads for each channel (bn_fw_tr_1C11 and
# bn_bw_1C11, as traces name them): with 64 channels, 64 multiprocessors work. On an H100, which has
# 132, one of 64 channels over 4.3 GB takes 8.8 ms, 2.05 times what its three passes need at the
# memory's rate (ScalingIntelligence/KernelBench, results/timing/H100_modal: 33_BatchNorm.py).
#
# In bf16 PyTorch takes kernels of its own (Normalization.cpp: cuDNN's do not take it): statistics,
# a small one that updates the running ones, and one that writes the result; backward one that does
# all, or with channels last the sums and the result. With channels last, blocks that share a
# channel count each other in memory that a fill clears before (Normalization.cuh).

def batch_norm(call):
    """Statistics take a pass of their own before the result can be written (of statistics that are
    kept, as in evaluation, none)."""
    data = call['input']
    moved = bytes_of(data)
    training = call['training'] if call.op != 'aten._native_batch_norm_legit_no_training' else False
    if not training:
        return [call.memory(moved, moved)]
    if not of_pytorch(call, data):
        return [call.memory(2 * moved, moved, pattern=patterns.of_batch_norm('batch_norm', data))]
    kept = total_bytes(call.result[1:3])
    kernels = [
        call.memory(moved, kept, pattern=patterns.of_batch_norm('batch_norm_statistics', data)),
        call.memory(kept, kept),
        call.memory(moved, moved, pattern=patterns.of_batch_norm('batch_norm_transform', data))]
    return [memset(call, 'aten.fill_'), *kernels] if patterns.lies_last(data) else kernels


def batch_norm_backward(call):
    gradient, data = bytes_of(call['grad_out']), bytes_of(call['input'])
    whole = 2 * (gradient + data)
    if call.op == 'aten.native_batch_norm_backward' and not call['train']:
        return [call.memory(whole, data)]
    if not of_pytorch(call, call['input']):
        return [call.memory(whole, data, pattern=patterns.of_batch_norm(
            'batch_norm', call['input'], True))]
    if not patterns.lies_last(call['input']):
        return [call.memory(whole, data, pattern=patterns.of_batch_norm(
            'batch_norm_own', call['input'], True))]
    alike = patterns.lies_last(call['grad_out'])
    given = call['input'] if alike else call['grad_out']
    kernels = [
        call.memory(gradient + data, total_bytes(call.result[1:]),
                    pattern=patterns.of_batch_norm('batch_norm_statistics', given, True)),
        call.memory(gradient + data, data,
                    pattern=patterns.of_batch_norm('batch_norm_transform', given, True))]
    return [memset(call, 'aten.fill_'), *kernels] if alike else kernels


def of_pytorch(call, data):
    return call.device == 'cuda' and data.dtype == torch.bfloat16


def nll_loss(call):
    """Gathers one element of each row."""
    return [call.memory(2 * bytes_of(call['target']), total_bytes(call.outputs))]


def nll_loss_backward(call):
    result = bytes_of(call.result)
    rows = bytes_of(call['target'])
    return [call.memory(0, result, op='aten.fill_', pattern=FILL), call.memory(rows, rows)]


def reduced_loss(call):
    """Elementwise, then the mean or sum; only elementwise where nothing is reduced."""
    full = bytes_of(call['self'])
    if call['reduction'] == 0:
        return [call.memory()]
    return [call.memory(written=full), *whole_sum(call, full)]


def whole_sum(call, size):
    """The sum or mean of all elements that a loss has made."""
    elements = call.inputs[0].numel()
    made = [call.memory(size, op='aten.mean', pattern=Pattern('sum', 1, elements))]
    return [memset(call), *made] if elements >= ELEMENTS_OF_BLOCKS else made


def fill_and_scatter(call):
    """Gradients of pooling and of upsampling: zeros, then sums at places."""
    result = total_bytes(call.outputs)
    return [call.memory(0, result, op='aten.fill_', pattern=FILL), call.memory(written=result)]


def logits_loss(call):
    """log_sigmoid; (1 - target) * input - that, in three; the mean (Loss.cpp)."""
    full = bytes_of(call['self'])
    kernels = [call.memory(2 * full, full, 4)]
    return kernels + (whole_sum(call, full) if call['reduction'] else [])


# Launch nothing, beside views: only the shape changes, or memory is taken. `sym_` and such never
# reach a device.
FREE = {'aten.' + name for name in (
    '_unsafe_view', 'empty', 'empty_like', 'empty_strided', 'empty_permuted', 'new_empty',
    'new_empty_strided', 'lift_fresh', 'lift', 'detach', 'detach_', 'alias', 'unsafe_split',
    'unsafe_split_with_sizes', 'unsafe_chunk', '_reshape_alias', 'set_', 'resize_', 'resize_as_',
    'as_strided_', 'squeeze_', 'unsqueeze_', 't_', 'transpose_', 'swapaxes_', 'swapdims_',
    'is_same_size', 'sym_size', 'sym_stride', 'sym_numel', 'sym_storage_offset', '_indices',
    '_values', 'indices', 'values', '_coalesced_', '_nnz', '_sparse_coo_tensor_unsafe',
    '_sparse_coo_tensor_with_dims_and_tensors', '_sparse_coo_tensor_with_dims', 'view_as_real',
    'view_as_complex', '_has_same_storage_numel', '_assert_async', '_functional_assert_async',
    '_assert_tensor_metadata', 'rename', 'is_pinned', '_pin_memory', 'record_stream', 'device')}

_ELEMENTWISE = '''
copy _to_copy clone masked_fill_
'''.split()
_REDUCTIONS = '''
sum mean amax amin prod any all max min argmax argmin norm linalg_vector_norm var std var_mean
std_mean nansum count_nonzero
'''.split()
_ONE_KERNEL = '''
masked_scatter_backward embedding_renorm_ cumsum cumprod cummax cummin logcumsumexp
_masked_softmax _weight_norm_interface
mse_loss_backward smooth_l1_loss_backward huber_loss_backward
binary_cross_entropy_backward leaky_relu_backward elu_backward hardswish_backward
hardsigmoid_backward hardtanh_backward log_sigmoid_forward log_sigmoid_backward softplus_backward
softshrink_backward hardshrink_backward mish_backward glu glu_backward prelu _prelu_kernel
rrelu_with_noise logit_backward renorm
upsample_nearest1d upsample_nearest2d upsample_nearest3d
upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact1d_backward
_upsample_nearest_exact2d_backward upsample_linear1d upsample_bilinear2d upsample_bicubic2d
upsample_trilinear3d _upsample_bilinear2d_aa _upsample_bicubic2d_aa grid_sampler_2d grid_sampler_3d
reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d im2col col2im
cat stack repeat roll flip tril triu tril_ triu_ diag_embed trace
pixel_shuffle pixel_unshuffle channel_shuffle bucketize searchsorted
dot vdot mv addmv addr ger outer addbmm linalg_cross cross _cdist_forward _pdist_forward
multinomial isin bincount histc _foreach_norm complex view_as_real_copy polar
repeat_interleave floor_divide nan_to_num __and__ __or__ __xor__ unfold_copy
hardswish bernoulli _prelu_kernel_backward
im2col_backward col2im_backward aminmax mode histogram _euclidean_dist
'''.split()
_FILLS = '''
zeros zeros_like ones ones_like full full_like fill fill_ zero zero_ new_zeros new_ones new_full
arange linspace logspace eye scalar_tensor rand rand_like randn randn_like randint randint_like
randperm bernoulli_ uniform_ normal_ random_ exponential_ log_normal_ cauchy_ geometric_
new_empty_fill tril_indices triu_indices normal
'''.split()
_GATHERS = '''
index gather index_select embedding take take_along_dim _embedding_bag _embedding_bag_forward_only
_unsafe_index
'''.split()

_POOLS = '''
avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
'''.split()

RULES = {'aten.' + name: generic for name in _ONE_KERNEL}
RULES.update({'aten.' + name: elementwise for name in _ELEMENTWISE})
RULES.update({'aten.' + name: reduction for name in _REDUCTIONS})
RULES.update({'aten.' + name: average_pool for name in _POOLS})
RULES.update({f'aten.{name}_backward': average_pool_backward for name in _POOLS[1:]})
RULES.update({'aten.' + name: write_only for name in _FILLS})
RULES.update({'aten.' + name: gather for name in _GATHERS})
RULES.update({
    'aten.copy_': copy, 'aten.masked_fill': masked_fill, 'aten.logsumexp': logsumexp,
    'aten._safe_softmax': safe_softmax,
    'aten._softmax': softmax('softmax'), 'aten._log_softmax': softmax('log_softmax'),
    'aten._softmax_backward_data': softmax('softmax', True),
    'aten._log_softmax_backward_data': softmax('log_softmax', True),
    'aten.native_dropout': dropout, 'aten.native_dropout_backward': dropout,
    'aten._fused_dropout': dropout,
    'aten.native_layer_norm': layer_norm, 'aten._fused_rms_norm': layer_norm,
    'aten.max_pool2d_with_indices': max_pool, 'aten.max_pool3d_with_indices': max_pool,
    'aten.adaptive_max_pool2d': max_pool,
    'aten.slice_backward': slice_backward, 'aten.select_backward': slice_backward,
    'aten.diagonal_backward': slice_backward, 'aten.unfold_backward': fill_and_scatter,
    'aten.constant_pad_nd': pad,
    'aten.scatter': scatter, 'aten.scatter_': scatter, 'aten.index_copy': scatter,
    'aten.index_copy_': scatter, 'aten.index_fill': scatter, 'aten.index_fill_': scatter,
    'aten.masked_scatter': scatter, 'aten.masked_scatter_': scatter, 'aten.put_': scatter,
    'aten.slice_scatter': scatter, 'aten.select_scatter': scatter,
    'aten.scatter_add': scatter_add, 'aten.scatter_add_': scatter_add,
    'aten.scatter_reduce': scatter_add, 'aten.scatter_reduce_': scatter_add,
    'aten.index_add': scatter_add, 'aten.index_add_': scatter_add,
    'aten.index_put': index_put, 'aten.index_put_': index_put,
    'aten._unsafe_index_put': index_put, 'aten._index_put_impl_': index_put,
    'aten.embedding_dense_backward': embedding_backward,
    'aten._embedding_bag_dense_backward': embedding_backward,
    'aten._embedding_bag_backward': embedding_bag_backward,
    'aten.native_layer_norm_backward': layer_norm_backward,
    'aten._fused_rms_norm_backward': rms_norm_backward,
    'aten.native_group_norm': group_norm, 'aten.native_group_norm_backward': group_norm_backward,
    'aten.native_batch_norm': batch_norm, 'aten.cudnn_batch_norm': batch_norm,
    'aten._native_batch_norm_legit': batch_norm,
    'aten._native_batch_norm_legit_no_training': batch_norm,
    'aten._batch_norm_with_update': batch_norm,
    'aten.native_batch_norm_backward': batch_norm_backward,
    'aten.batch_norm_backward': batch_norm_backward,
    'aten.nll_loss_forward': nll_loss, 'aten.nll_loss2d_forward': nll_loss,
    'aten.nll_loss_backward': nll_loss_backward, 'aten.nll_loss2d_backward': nll_loss_backward,
    'aten.mse_loss': reduced_loss, 'aten.smooth_l1_loss': reduced_loss,
    'aten.huber_loss': reduced_loss, 'aten.binary_cross_entropy': reduced_loss,
    'aten.binary_cross_entropy_with_logits': logits_loss,
    'aten.max_pool2d_with_indices_backward': max_pool_backward,
    'aten.max_pool3d_with_indices_backward': max_pool_backward,
    'aten.adaptive_max_pool2d_backward': max_pool_backward,
    'aten.upsample_bilinear2d_backward': fill_and_scatter,
    'aten.upsample_linear1d_backward': fill_and_scatter,
    'aten.upsample_bicubic2d_backward': fill_and_scatter,
    'aten.upsample_trilinear3d_backward': fill_and_scatter,
    'aten.grid_sampler_2d_backward': fill_and_scatter,
    'aten.reflection_pad1d_backward': fill_and_scatter,
    'aten.reflection_pad2d_backward': fill_and_scatter,
    'aten.replication_pad1d_backward': fill_and_scatter,
    'aten.replication_pad2d_backward': fill_and_scatter,
    'aten._weight_norm_interface_backward': launches(2),
    'aten._cdist_backward': launches(2),
    'aten.sort': scaled(9, 9, 11), 'aten.argsort': scaled(9, 9, 11),
    'aten.topk': scaled(4, 1, 4), 'aten.kthvalue': scaled(4, 1, 2), 'aten.median': scaled(4, 1, 2),
    'aten._fft_r2c': scaled(2, 2, 2), 'aten._fft_c2r': scaled(2, 2, 2),
    'aten._fft_c2c': scaled(2, 2, 2),
})
