"""Convolutions: the product that each is, and what cuDNN launches around it.

FLOPs equal those of torch.utils.flop_counter, operation by operation. A convolution is the implicit
matrix product it is (pixels x output channels, over the window); its groups are independent
products. The windows overlap in the input and are never written out, so its bytes are those of
input, weight and output.
"""
from dataclasses import replace

from .kernels import FILL, Conv, Gemm, Kernel, Pattern
from .products import HOPPER, counted_tiles, tiles
from .results import lies_last
from .tensors import bytes_of, format_of, total_bytes


def count(sizes):
    elements = 1
    for size in sizes:
        elements *= size
    return elements


class Windows:
    """What a convolution multiplies: places of the smaller picture, channels, and the window."""

    def __init__(self, data, weight, result_shape, transposed, groups):
        self.groups, self.transposed, self.last = groups, transposed, lies_last(data)
        self.window = window = count(weight.shape[2:])
        # A weight is [out, in / groups, window], and that of a transposed one [in, out / groups,
        # window].
        small = data.shape if transposed else result_shape
        self.small, self.large = small, result_shape if transposed else data.shape
        self.places = small[0] * count(small[2:])
        if transposed:
            self.inputs, self.outputs = weight.shape[0] // groups, weight.shape[1]
            self.forward = Gemm(self.places, self.outputs * window, self.inputs, groups)
            self.to_data = Gemm(self.places, self.inputs, self.outputs * window, groups)
            self.to_weight = Gemm(self.inputs, self.outputs * window, self.places, groups)
        else:
            self.inputs, self.outputs = weight.shape[1], weight.shape[0] // groups
            self.forward = Gemm(self.places, self.outputs, self.inputs * window, groups)
            self.to_data = Gemm(self.places, self.inputs, self.outputs * window, groups)
            self.to_weight = Gemm(self.outputs, self.inputs * window, self.places, groups)

    def conv(self, which):
        """forward, input or weight; those of a transposed convolution are of the one it undoes."""
        if self.transposed:
            which = {'forward': 'input', 'input': 'forward'}.get(which, which)
        return Conv(which, self.small[0], self.large[1], count(self.large[2:]), self.small[1],
                    count(self.small[2:]), self.window, self.groups, self.last)


# --- layouts ---
#
# cuDNN's kernels for tensor cores want channels last. What it launches around them for tensors that
# have channels first, in order of launches, as two sources show it: kernels of ResNet-101 and of a
# network of inverted bottlenecks on an H200 in bf16 and TF32 (tests/data/h200/kernels.csv.gz), and
# a trace of ResNet-50 on an A100 (Holistic Trace Analysis, tests/data/nccl_parser_config):
#
#     1 x 1 window, stride 1, an even    a product for each picture, in one launch. The weight's
#     number of pixels                   gradient is the sum of a part for each picture if all
#                                        parts take less memory than the copies; else as below
#     others, forward                    copies of data and weight, the kernel, a copy of the
#                                        result (on the A100 only with a sum of 2048 and more)
#     others, data                       copies of weight and gradient, the kernel, a copy of
#                                        the result
#     others, weight                     copies of gradient and data, the kernel, a sum of parts
#                                        if the result is small, and where the window is larger
#                                        than 1 a copy of the result
#
# Rows of pixels that are not of 4 bytes cannot be loaded in pairs. Weights of a 1 x 1 window, which
# lie alike in both layouts, are copied before Hopper alone: a few microseconds. In TF32 a sum of up
# to 256 is Ampere's kernel on Hopper too, which writes the result as it lies. Tensors with channels
# last have the kernels alone; where their 1 x 1 product has few results, its sum is in parts.
# Hopper's kernels have a small helper before each: a memset, or a kernel that prepares what blocks
# count in. Single channels are convolved by kernels of PyTorch's own with channels first
# (DepthwiseConv2d.cu) and by cuDNN's with channels last, whose gradient of the weight is in parts.

LONG_SUM = 2048  # products added up for one result
SHORT_SUM = 256
FEW_TILES = 10   # of a gradient of a weight, which is then made in parts, as the H200 shows it
SPLIT_TILES = 16  # of a 1 x 1 window's with channels last

# Tensor cores multiply in TF32 where a forward pass has channels in fours: for pictures of three
# channels cuDNN takes a kernel in fp32 (the trace of the A100; the same in a training of AlexNet,
# KempnerInstitute's handbook, and of one channel on an RTX A6000).
ALIGNED = 4

# In fp32, without tensor cores, forward and data keep layouts as they are. By which rule cuDNN
# takes which of its algorithms is not known; the kernels of ResNet-101 on an H200 are:
#
#     forward  1 kernel; 3 x 3 on pictures up to 28 x 28, stride 1: FFT, 5 (filter, its flip, data,
#              product, result)
#     data     2 (scales, then one engine); 1 of 1 x 1 windows of large pictures whose channels are
#              as many as come out and more; 3 x 3 on pictures of 28 x 28 to 64 x 64, stride 1: FFT,
#              the filter once, and data, product and result for every tile of 32 x 32
#     weight   3 x 3, stride 1: Winograd's, 4 (data, gradient, product, result); else a memset and
#              one kernel where pictures have 784 pixels and more; below two copies and one kernel,
#              with a window larger than 1 a copy of the result as well
#
# A V100 launches about as many (pytorch/kineto, tb_plugin/test/result_check_file.txt), of which
# Winograd's also forward.

SMALL_PICTURE = 784  # pixels, 28 x 28


def fp32_launches(call, weight, which, places):
    """How many kernels a convolution's product in fp32 launches; None where that is not known.
    `places`: pixels of the smaller picture."""
    if call.device != 'cuda' or weight.dim() != 4 or call['groups'] > 1 or call['transposed']:
        return None
    if weight.shape[1] % ALIGNED:
        return 2 if which == 'weight' else 1  # implicit_convolve_sgemm
    point = count(weight.shape[2:]) == 1
    plain_window = (tuple(weight.shape[2:]) == (3, 3) and all(step == 1 for step in call['stride'])
                    and all(step == 1 for step in call['dilation']))
    if which == 'forward':
        return 5 if plain_window and places <= SMALL_PICTURE else 1
    if which == 'input':
        if plain_window and SMALL_PICTURE <= places <= 64 * 64:
            return 1 + 3 * (1 if places <= 32 * 32 else 4)
        wide = point and weight.shape[1] >= weight.shape[0] and places >= SMALL_PICTURE
        return 1 if wide else 2
    if plain_window:
        return 4
    return 2 if places >= SMALL_PICTURE else 3 if point else 4


def plain_product(data, weight, stride, groups):
    """Is the convolution a product of matrices as they lie in memory, one for each picture?"""
    return (groups == 1 and data.is_contiguous() and all(size == 1 for size in weight.shape[2:])
            and all(step == 1 for step in stride) and count(data.shape[2:]) % 2 == 0)


def parts_are_less(data, weight):
    """Do the parts of all pictures have fewer elements than the copies of gradient and data?"""
    outputs, inputs = weight.shape[:2]
    return outputs * inputs < (outputs + inputs) * count(data.shape[2:])


def by_channel(data, weight, groups):
    """Is every channel convolved by itself?"""
    return groups == data.shape[1] and weight.shape[1] == 1


def by_pictures(gemm, data, rows):
    """A plain product as cuDNN multiplies it: pictures by themselves. `rows`: which side of the
    product counts the pixels of all pictures."""
    pictures = data.shape[0]
    return gemm._replace(**{rows: getattr(gemm, rows) // pictures}, batch=pictures)


def channels_first(data, groups):
    """Does cuDNN change the layout? Convolutions of single channels have kernels of their own."""
    return data.dim() == 4 and data.is_contiguous() and groups < data.shape[1]


def relaid(call, tensor, of_hopper=False):
    """A copy of a tensor in the other layout."""
    kernel = call.memory(bytes_of(tensor), bytes_of(tensor), op='cudnn.layout',
                         pattern=Pattern('layout'))
    return replace(kernel, capability=HOPPER) if of_hopper else kernel


def helper(call):
    """What prepares the memory that blocks of Hopper's kernels count in."""
    return replace(call.memory(0, 4, op='cudnn.helper', pattern=FILL), capability=HOPPER)


def helpers(call, gemm, plain, data):
    """The helper before a product, if it has one."""
    if call.device != 'cuda' or data.dim() != 4:
        return []
    point = count(call['weight'].shape[2:]) == 1
    if plain or lies_last(data) and point and all(step == 1 for step in call['stride']):
        if data.element_size() == 4:
            wide = gemm.n >= WIDE_RESULT and not lies_last(data)
            return [helper(call)] if wide else []
        return [helper(call)] if counted_tiles(gemm) else []
    return [helper(call)]


WIDE_RESULT = 256  # channels from which TF32's products are Hopper's kernels, which have a memset


def convolution(call):
    data, weight, bias = call['input'], call['weight'], call['bias']
    windows = Windows(data, weight, call.result.shape, call['transposed'], call['groups'])
    plain = call.device == 'cuda' and plain_product(data, weight, call['stride'], call['groups'])
    gemm = by_pictures(windows.forward, data, 'm') if plain else windows.forward
    moved = bytes_of(call.result)
    aligned = windows.inputs % ALIGNED == 0 or data.element_size() < 4
    single = call.device == 'cuda' and by_channel(data, weight, call['groups'])
    kernels = [Kernel(op=call.op, kind='conv', gemm=gemm, type=format_of(data.dtype),
                      conv=windows.conv('forward'),
                      read=total_bytes([data, weight]), written=moved,
                      launches_in_fp32=fp32_launches(call, weight, 'forward',
                                                     count(windows.small[2:])),
                      tensor_cores=aligned or call.device != 'cuda')]
    changes = (call.device == 'cuda' and aligned and channels_first(data, call['groups'])
               and not plain)
    as_ampere = changes and data.element_size() == 4 and windows.forward.k <= SHORT_SUM
    if aligned and not single and call['groups'] == 1 and not as_ampere:
        kernels = [*helpers(call, gemm, plain, data), *kernels]
    if changes:
        kernels = [relaid(call, data), relaid(call, weight), *kernels]
        long_sum = call['transposed'] or windows.forward.k >= LONG_SUM
        if not as_ampere or call['transposed']:
            kernels.append(relaid(call, call.result, of_hopper=not long_sum))
    if bias is not None:  # cuDNN's result has none; _convolution adds it (Convolution.cpp)
        kernels.append(call.memory(moved + bytes_of(bias), moved, op='aten.add_',
                                   pattern=Pattern('strided')))
    return kernels


def convolution_backward(call):
    gradient, data, weight = call['grad_output'], call['input'], call['weight']
    windows = Windows(data, weight, gradient.shape, call['transposed'], call['groups'])
    on_gpu = call.device == 'cuda'
    plain = on_gpu and plain_product(data, weight, call['stride'], call['groups'])
    changes = (on_gpu and not plain and data.dim() == 4 and data.is_contiguous()
               and call['groups'] < data.shape[1])
    by_itself = on_gpu and by_channel(data, weight, call['groups'])
    helped = not by_itself and call['groups'] == 1
    kind, kernels = format_of(data.dtype), []
    if call['output_mask'][0]:
        result = call.result[0]
        gemm = by_pictures(windows.to_data, data, 'm') if plain else windows.to_data
        kernels.append(Kernel(op=call.op, kind='conv', gemm=gemm, type=kind,
                              conv=windows.conv('input'),
                              read=total_bytes([gradient, weight]), written=bytes_of(result),
                              tensor_cores=not by_itself,
                              launches_in_fp32=fp32_launches(call, weight, 'input',
                                                             count(windows.small[2:]))))
        if helped:
            kernels = [*helpers(call, gemm, plain, data), *kernels]
        if changes:
            kernels = [relaid(call, weight), relaid(call, gradient), *kernels,
                       relaid(call, result)]
    if call['output_mask'][1]:
        kernels += weight_gradient(call, windows, plain, changes, by_itself)
    if call['output_mask'][2]:
        kernels += bias_gradient(call, gradient)
    return kernels


def bias_gradient(call, gradient):
    """Over pictures and pixels (aten.sum)."""
    size, channels = bytes_of(gradient), gradient.shape[1]
    rows = gradient.numel() // max(1, channels)
    pattern = (Pattern('sum_of_rows', rows, channels) if lies_last(gradient)
               else Pattern('reduce', channels, rows))
    return [call.memory(size, bytes_of(call.result[2]), op='aten.sum', pattern=pattern)]


def weight_gradient(call, windows, plain, changes, by_itself):
    gradient, data, result = call['grad_output'], call['input'], call.result[1]
    gemm, point = windows.to_weight, windows.window == 1
    if plain and not parts_are_less(data, call['weight']):
        plain, changes = False, True
    if plain:
        gemm = by_pictures(gemm, data, 'k')
    kernels = [Kernel(op=call.op, kind='conv', gemm=gemm, type=format_of(data.dtype),
                      conv=windows.conv('weight'),
                      read=total_bytes([gradient, data]), written=bytes_of(result),
                      tensor_cores=not by_itself,
                      launches_in_fp32=fp32_launches(call, call['weight'], 'weight',
                                                     count(windows.small[2:])))]
    if call.device != 'cuda':
        return kernels
    last_point = point and lies_last(data) and all(step == 1 for step in call['stride'])
    if plain:
        if gemm.batch > 1:  # each picture writes a part
            parts = 4 * gemm.batch * count(result.shape)
            kernels[0] = replace(kernels[0], written=parts)
            kernels.append(call.memory(parts, bytes_of(result), op='cudnn.sum_of_parts'))
    elif last_point:
        if gemm.batch == 1 and tiles(gemm) <= SPLIT_TILES:
            kernels.append(call.memory(4 * count(result.shape), bytes_of(result),
                                       op='cublas.sum_of_parts'))
    elif by_itself:
        if lies_last(data):
            kernels.append(call.memory(bytes_of(result), bytes_of(result),
                                       op='cudnn.sum_of_parts'))
    else:
        if gemm.batch == 1:
            kernels.insert(0, helper(call))
        if gemm.batch == 1 and tiles(gemm) < FEW_TILES:
            kernels.append(call.memory(bytes_of(result), bytes_of(result),
                                       op='cudnn.sum_of_parts'))
    if changes:
        kernels = [relaid(call, gradient), relaid(call, data), *kernels]
        if not point:
            kernels.append(relaid(call, result))
    return kernels


RULES = {'aten.convolution': convolution, 'aten._convolution': convolution,
         'aten.convolution_backward': convolution_backward}
