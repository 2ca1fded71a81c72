"""Memory that libraries take of PyTorch's allocator while one operation runs."""
import torch

from .alive import rounded

NUMBER = 8  # bytes of a complex number of two fp32


def copies(kernels):
    """Copies of a convolution's operands in another layout."""
    return sum(rounded(kernel.written) for kernel in kernels if kernel.op == 'cudnn.layout')


def transforms(call):
    """What cuDNN takes for a convolution that it multiplies in fp32, as the product of Fourier
    transforms: those of data, of windows and of results, each image in one square of 16 x 16 or
    32 x 32 complex numbers. Kernels of ResNet-101 on an H200 with TF32 off say which it takes so
    (fft2d_r2c_16x16, fft2d_r2c_32x32): windows of 3 x 3 without stride, forward over images up to
    28 x 28, and backward of those above 14. Of larger images, which are transformed in tiles,
    nothing is counted."""
    if call.op not in ('aten.convolution', 'aten.convolution_backward'):
        return 0
    data, weight = call['input'], call['weight']
    plain = (data.dim() == 4 and data.dtype == torch.float32 and data.is_contiguous()
             and tuple(weight.shape[2:]) == (3, 3) and call['groups'] == 1
             and set(call['stride']) == {1} and set(call['dilation']) == {1})
    side = max(data.shape[2:]) if plain else 0
    fits_16, fits_32 = 14, 30  # with the border of a window of three
    if not plain or side > fits_32 or side <= fits_16 and call.op == 'aten.convolution_backward':
        return 0
    square = 16 if side <= fits_16 else 32
    results, inputs = weight.shape[:2]
    images = data.shape[0] * (inputs + results) + inputs * results
    return rounded(NUMBER * square * square * images)
