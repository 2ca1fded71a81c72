"""What a call of PyTorch costs the host that launches its kernels, in microseconds.

The host is the reference host of ddpsim's catalogue: that of an H200 in a virtual machine of 16
processors, PyTorch 2.11. Source: rows of kind `host` of tests/data/h200/operations.csv.gz, each the
median of five loops of 100 calls; of a backward pass, of a chain of 30. In a step, where the code
is not in the processor's caches, a call costs more by a factor, which is ddpsim's to know.

A row holds all that its loop called: the view and the cast around attention, the cast of a
convolution's picture under autocast, and a batch norm's count of batches are taken out again, for
they are calls of their own in a step. Views of the backward pass are in the rows of its nodes, and
memsets in those of what they are for. An operation without a row takes the one that is nearest in
kind: what multiplies matrices, matmul or linear; what is normalised, layer norm; a fused or rolled
up operation of several kernels, the convolution; everything else, reductions and copies too, add.
"""

from .kernels import FILL

PLAIN = {'add': 6.96}
GRAD = {'add': 7.58, 'gelu': 7.58, 'linear': 25.43, 'layer_norm': 14.46, 'conv2d': 24.19,
        'batch_norm': 32.19, 'view': 1.94, 'softmax': 7.84, 'matmul': 14.03, 'cast': 9.54,
        'sdpa': 34.10}
AUTOCAST = {'linear': 18.37, 'conv2d': 30.51, 'matmul': 13.04, 'cast': 9.56}
BACKWARD = {'add': 15.17, 'gelu': 22.51, 'linear': 77.43, 'layer_norm': 43.92, 'conv2d': 56.12,
            'batch_norm': 46.52, 'softmax': 25.73}

VIEW = GRAD['view']
# A linear layer's is in the row of what multiplies; the other is the capture's own.
VIEWS_OF_OTHERS = ('aten.t', 'aten.detach')
MODULE = 3.0      # the Python of a module's call, and
ACCUMULATE = 3.0  # the node that hands a parameter its gradient: fits of whole steps (kernels of
LAUNCH = 5.0      # ResNet-101 there); a launch within a call, of its profile: 4 to 7
# A launch of sorts, and of cuDNN's recurrent layers in 16 bits: steps of an LSTM and of a
# recommender, which the host bounds, over their launches and over what calls take longer in a step
# (tests/experiments/left_out.py). In fp32 recurrent layers of public timings take 3 to 5 us a
# launch (tests/experiments/forward_passes.py).
LIBRARY_LAUNCH, RECURRENT_LAUNCH_IN_FP32 = 8.6, 3.0
_RECURRENT = ('aten.lstm', 'aten.gru', 'aten.rnn')
_SORTS = ('embedding_dense_backward', 'sort')

# Kind of an operation: its row, and how many launches the row holds.
_FORWARD = {
    'aten.addmm': ('linear', 1), 'aten.mm': ('matmul', 1), 'aten.bmm': ('matmul', 1),
    'aten.baddbmm': ('matmul', 1), 'aten._grouped_mm': ('matmul', 1),
    'aten._scaled_mm': ('matmul', 1), 'aten.convolution': ('conv2d', 2),
    'aten._convolution': ('conv2d', 2), 'aten.native_layer_norm': ('layer_norm', 1),
    'aten._fused_rms_norm': ('layer_norm', 1), 'aten.native_group_norm': ('layer_norm', 1),
    'aten.native_batch_norm': ('batch_norm', 1), 'aten.cudnn_batch_norm': ('batch_norm', 1),
    'aten._native_batch_norm_legit': ('batch_norm', 1),
    'aten._native_batch_norm_legit_no_training': ('batch_norm', 1),
    'aten._batch_norm_with_update': ('batch_norm', 1), 'aten._softmax': ('softmax', 1),
    'aten._log_softmax': ('softmax', 1), 'aten._to_copy': ('cast', 1), 'aten.gelu': ('gelu', 1),
    'aten._scaled_dot_product_flash_attention': ('sdpa', 2),
    'aten._scaled_dot_product_efficient_attention': ('sdpa', 2)}
_BACKWARD = {
    'aten.convolution_backward': ('conv2d', 3),
    'aten.native_layer_norm_backward': ('layer_norm', 2),
    'aten._fused_rms_norm_backward': ('layer_norm', 2),
    'aten.native_group_norm_backward': ('layer_norm', 2),
    'aten.native_batch_norm_backward': ('batch_norm', 1),
    'aten.batch_norm_backward': ('batch_norm', 1),
    'aten._softmax_backward_data': ('softmax', 1),
    'aten._log_softmax_backward_data': ('softmax', 1),
    'aten.gelu_backward': ('gelu', 1), 'aten.silu_backward': ('gelu', 1),
    'aten._scaled_dot_product_flash_attention_backward': ('conv2d', 4),
    'aten._scaled_dot_product_efficient_attention_backward': ('conv2d', 4),
    'recurrent': ('conv2d', 3)}
_PRODUCTS = ('aten.mm', 'aten.addmm', 'aten.bmm', 'aten.baddbmm', 'aten._grouped_mm',
             'aten._scaled_mm')
_SUMS = ('aten.add', 'aten.add_')


def forward(op, half):
    """(microseconds, launches they hold) of a call. `half`: it multiplies in 16 bits."""
    row, launches = _FORWARD.get(op, ('add', 1))
    if row == 'conv2d' and half:
        return AUTOCAST['conv2d'] - AUTOCAST['cast'], launches
    if row == 'batch_norm':
        return GRAD['batch_norm'] - PLAIN['add'], launches
    if row == 'sdpa':
        return GRAD['sdpa'] - GRAD['view'] - GRAD['cast'], launches
    return (AUTOCAST if half and row in AUTOCAST else GRAD)[row], launches


def backward(op, first=True, of_linear=False):
    """The host's time of a call in the backward pass. `first`: of its node of autograd's graph;
    `of_linear`: the node is that of a linear layer, whose row is shared by two products and the
    sum of a bias's gradient. What the engine adds up is a call without a node of its own."""
    if op in _PRODUCTS or of_linear and op == 'aten.sum':
        return BACKWARD['linear'] / 3, 1
    if op in _BACKWARD:
        row, launches = _BACKWARD[op]
        return BACKWARD[row], launches
    if op == 'aten._to_copy':
        return GRAD['cast'], 1
    if op in _SUMS or not first:
        return PLAIN['add'], 1
    return BACKWARD['add'], 1


def is_memset(kernel):
    return kernel.pattern == FILL and not kernel.op.startswith('aten.')


def bare_launch(kernel):
    """What a launch within a call costs."""
    if kernel.op.startswith(_RECURRENT):
        return RECURRENT_LAUNCH_IN_FP32 if kernel.type in ('fp32', 'tf32') else LIBRARY_LAUNCH
    return LIBRARY_LAUNCH if any(name in kernel.op for name in _SORTS) else LAUNCH


def shared(kernels, cost):
    """What the host takes for each kernel of a call: the call's figure for the first, and for
    launches beyond those that it holds a bare one each."""
    figure, held = cost
    shares = []
    for number, kernel in enumerate(kernels):
        launches = 0 if is_memset(kernel) else kernel.launches
        more = max(0, launches - held)
        held = max(0, held - launches)
        shares.append(bare_launch(kernel) * more + (figure if number == 0 else 0))
    return shares
