"""Convolutions: the product that each is, and what cuDNN launches around it.

FLOPs equal those of torch.utils.flop_counter, operation by operation. A convolution is the implicit
matrix product it is (pixels x output channels, over the window); its groups are independent
products. The windows overlap in the input and are never written out, so its bytes are those of
input, weight and output.
"""
from dataclasses import replace

from .kernels import Gemm, Kernel
from .products import PARTS_BELOW, cutting, tiles
from .tensors import bytes_of, format_of, total_bytes


def count(sizes):
    elements = 1
    for size in sizes:
        elements *= size
    return elements


class Windows:
    """What a convolution multiplies: places of the smaller picture, channels, and the window."""

    def __init__(self, data, weight, result_shape, transposed, groups):
        self.groups = groups
        window = count(weight.shape[2:])
        # A weight is [out, in / groups, window], and that of a transposed one [in, out / groups,
        # window].
        small = data.shape if transposed else result_shape
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


# --- layouts ---
#
# cuDNN's kernels for tensor cores want channels last. What it launches around them for tensors that
# have channels first, as a Kineto trace of ResNet-50 on an A100 shows it for all 53 convolutions
# (Holistic Trace Analysis, tests/data/nccl_parser_config), in order of launches:
#
#     1 x 1 window, stride 1, rows of 16 bytes   a product for each picture, in one launch; the
#                                                pictures' parts of a weight's gradient are summed
#     others, forward                            copies of data and weight, the kernel, and with a
#                                                long sum (2048 and more) a copy of the result
#     others, data                               copies of weight and gradient, the kernel, a copy
#                                                of the result
#     others, weight                             copies of gradient and data, the kernel, the sum of
#                                                parts if the result is small, and where the window
#                                                is larger than 1 a copy of the result
#
# Tensors with channels last have the kernels alone. A convolution of every channel by itself is a
# kernel of PyTorch's own, which changes no layout (DepthwiseConv2d.cu).

LONG_SUM = 2048  # products added up for one result

# Tensor cores multiply in TF32 where a forward pass has channels in fours: for pictures of three
# channels cuDNN takes a kernel in fp32 (the trace above; the same in a training of AlexNet,
# KempnerInstitute's handbook, and of one channel on an RTX A6000).
ALIGNED = 4

# In fp32, without tensor cores, layouts stay as they are, but cuDNN launches helpers, as the
# kernels of a step of ResNet-50 on a V100 show (pytorch/kineto,
# tb_plugin/test/result_check_file.txt):
# Winograd's algorithm, which takes windows of 3 x 3 without stride, transforms data, weight and
# result; of others a gradient has a kernel that computes offsets or scales, and forward has none
# (of 40, 10 have one).

FP32_LAUNCHES = {'winograd': 4, 'forward': 1, 'gradient': 2}


def fp32_launches(call, weight, which):
    """Of a convolution's product in fp32; None where nothing is known of it."""
    if call.device != 'cuda' or weight.dim() != 4 or call['groups'] > 1 or call['transposed']:
        return None
    if which == 'forward' and weight.shape[1] % ALIGNED:
        return 1  # implicit_convolve_sgemm
    winograd = (tuple(weight.shape[2:]) == (3, 3) and all(step == 1 for step in call['stride'])
                and all(step == 1 for step in call['dilation']))
    return FP32_LAUNCHES['winograd' if winograd else which]


def plain_product(data, weight, stride, groups):
    """Is the convolution a product of matrices as they lie in memory, one for each picture?"""
    places = count(data.shape[2:])
    return (groups == 1 and data.is_contiguous() and all(size == 1 for size in weight.shape[2:])
            and all(step == 1 for step in stride)
            and places * data.element_size() % 16 == 0)


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


def relaid(call, tensor):
    """A copy of a tensor in the other layout."""
    return call.memory(bytes_of(tensor), bytes_of(tensor), op='cudnn.layout')


def in_parts(gemm):
    return gemm.batch == 1 and tiles(gemm) < PARTS_BELOW


def convolution(call):
    data, weight, bias = call['input'], call['weight'], call['bias']
    windows = Windows(data, weight, call.result.shape, call['transposed'], call['groups'])
    plain = call.device == 'cuda' and plain_product(data, weight, call['stride'], call['groups'])
    gemm = by_pictures(windows.forward, data, 'm') if plain else windows.forward
    moved = bytes_of(call.result)
    aligned = windows.inputs % ALIGNED == 0
    kernels = [Kernel(op=call.op, kind='conv', gemm=gemm, type=format_of(data.dtype),
                      read=total_bytes([data, weight]), written=moved, by_picture=plain,
                      launches_in_fp32=fp32_launches(call, weight, 'forward'),
                      tensor_cores=aligned or call.device != 'cuda')]
    if call.device == 'cuda' and aligned and channels_first(data, call['groups']) and not plain:
        kernels = [relaid(call, data), relaid(call, weight), *kernels]
        if call['transposed'] or windows.forward.k >= LONG_SUM:
            kernels.append(relaid(call, call.result))
    if bias is not None:  # cuDNN's result has none; _convolution adds it (Convolution.cpp)
        kernels.append(call.memory(moved + bytes_of(bias), moved, op='aten.add_'))
    return kernels


def convolution_backward(call):
    gradient, data, weight = call['grad_output'], call['input'], call['weight']
    windows = Windows(data, weight, gradient.shape, call['transposed'], call['groups'])
    on_gpu = call.device == 'cuda'
    plain = on_gpu and plain_product(data, weight, call['stride'], call['groups'])
    changes = (on_gpu and not plain and data.dim() == 4 and data.is_contiguous()
               and call['groups'] < data.shape[1])
    by_itself = on_gpu and by_channel(data, weight, call['groups'])
    kind, kernels = format_of(data.dtype), []
    if call['output_mask'][0]:
        result = call.result[0]
        gemm = by_pictures(windows.to_data, data, 'm') if plain else windows.to_data
        kernels.append(Kernel(op=call.op, kind='conv', gemm=gemm, type=kind,
                              read=total_bytes([gradient, weight]), written=bytes_of(result),
                              by_picture=plain, tensor_cores=not by_itself,
                              launches_in_fp32=fp32_launches(call, weight, 'gradient')))
        if changes:
            kernels = [relaid(call, weight), relaid(call, gradient), *kernels,
                       relaid(call, result)]
    if call['output_mask'][1]:
        kernels += weight_gradient(call, windows.to_weight, plain, changes, by_itself)
    if call['output_mask'][2]:
        kernels.append(call.memory(bytes_of(gradient), bytes_of(call.result[2]), op='aten.sum'))
    return kernels


def weight_gradient(call, gemm, plain, changes, by_itself):
    gradient, data, result = call['grad_output'], call['input'], call.result[1]
    if plain:
        gemm = by_pictures(gemm, data, 'k')
    kernels = [Kernel(op=call.op, kind='conv', gemm=gemm, type=format_of(data.dtype),
                      read=total_bytes([gradient, data]), written=bytes_of(result),
                      by_picture=plain, tensor_cores=not by_itself,
                      launches_in_fp32=fp32_launches(call, call['weight'], 'gradient'))]
    if plain and gemm.batch > 1:  # as with cublas.sum_of_parts
        parts = gemm.batch * bytes_of(result)
        kernels.append(call.memory(parts, parts, op='cudnn.sum_of_parts'))
    elif call.device == 'cuda' and not plain and in_parts(gemm):
        total = call.memory(bytes_of(result), bytes_of(result), op='cudnn.sum_of_parts')
        kernels.append(replace(total, multiprocessors=cutting(gemm)))
    if changes:
        kernels = [relaid(call, gradient), relaid(call, data), *kernels]
        if count(result.shape[2:]) > 1:
            kernels.append(relaid(call, result))
    return kernels


RULES = {'aten.convolution': convolution, 'aten._convolution': convolution,
         'aten.convolution_backward': convolution_backward}
