"""Matrix products and convolutions: the shape a call multiplies.

FLOPs equal those of torch.utils.flop_counter, operation by operation. A convolution is the implicit
matrix product it is (pixels x output channels, over the window); its groups are independent
products. The windows overlap in the input and are never written out, so its bytes are those of
input, weight and output.
"""
from .kernels import Gemm, Kernel
from .tensors import bytes_of, format_of, total_bytes


def product(call, gemm, factors):
    """One matrix product of `factors`, the tensors multiplied."""
    return Kernel(op=call.op, kind='gemm', gemm=gemm, type=format_of(factors[0].dtype),
                  read=total_bytes(call.inputs), written=total_bytes(call.outputs))


def mm(call):
    a, b = call['self'], call['mat2']
    return [product(call, Gemm(a.shape[0], b.shape[1], a.shape[1]), (a, b))]


def addmm(call):
    """The bias is added where the product is written (Blas.cpp: one dimension, contiguous, factors
    1); another addend is copied into the result first and read from there."""
    a, b = call['mat1'], call['mat2']
    added = call['self']
    kernels = [product(call, Gemm(a.shape[0], b.shape[1], a.shape[1]), (a, b))]
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
    divided among the matrices; where they do not divide, as one product of all rows."""
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
    return [product(call, gemm, (a, b))]


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


def convolution(call):
    data, weight, bias = call['input'], call['weight'], call['bias']
    windows = Windows(data, weight, call.result.shape, call['transposed'], call['groups'])
    moved = bytes_of(call.result)
    kernels = [Kernel(op=call.op, kind='conv', gemm=windows.forward, type=format_of(data.dtype),
                      read=total_bytes([data, weight]), written=moved)]
    if bias is not None:  # cuDNN's result has none; _convolution adds it (Convolution.cpp)
        kernels.append(call.memory(moved + bytes_of(bias), moved, op='aten.add_'))
    return kernels


def convolution_backward(call):
    gradient, data, weight = call['grad_output'], call['input'], call['weight']
    windows = Windows(data, weight, gradient.shape, call['transposed'], call['groups'])
    kernels = []
    # The weight's sum over all places is split, and a kernel of its own adds up the parts: 35 of 53
    # in a trace of ResNet-50 on an A100 (model/workload/convolution.hpp names it).
    for wanted, gemm, other, result, launches in zip(
            call['output_mask'], (windows.to_data, windows.to_weight), (weight, data), call.result,
            (1, 2)):
        if wanted:
            kernels.append(Kernel(op=call.op, kind='conv', gemm=gemm, type=format_of(data.dtype),
                                  read=total_bytes([gradient, other]), written=bytes_of(result),
                                  launches=launches))
    if call['output_mask'][2]:
        kernels.append(call.memory(bytes_of(gradient), bytes_of(call.result[2]), op='aten.sum'))
    return kernels


RULES = {'aten.mm': mm, 'aten.addmm': addmm, 'aten.addmm_': addmm, 'aten.bmm': bmm,
         'aten.baddbmm': baddbmm, 'aten.baddbmm_': baddbmm, 'aten._scaled_mm': scaled_mm,
         'aten._grouped_mm': grouped_mm, 'aten.convolution': convolution,
         'aten._convolution': convolution, 'aten.convolution_backward': convolution_backward}
