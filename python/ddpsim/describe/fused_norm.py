"""RMS norm as CUDA's fused kernel (torch 2.8 on; the meta device runs six small ones)."""
import torch

from . import host
from .kernels import Kernel, Pattern
from .tensors import bytes_of, format_of, total_bytes


FUSED_RMS_NORM = '2.8'  # the first release that has it


class FusedRMSNorm(torch.autograd.Function):
    """One kernel forward; backward one for the input's gradient and one for the weight's
    (layer_norm_kernel.cu, which serves both norms)."""

    @staticmethod
    def forward(ctx, capture, data, weight, sizes):
        rows = data.shape[:data.dim() - len(sizes)]
        result, scale = torch.empty_like(data), data.new_empty(rows, dtype=torch.float32)
        ctx.save_for_backward(data, weight, scale)
        ctx.capture = capture
        columns = 1
        for size in sizes:
            columns *= size
        ctx.sizes = data.numel() // max(1, columns), columns
        read = [t for t in (data, weight) if t is not None]
        capture.launch([Kernel('aten._fused_rms_norm', format_of(data.dtype), total_bytes(read),
                               total_bytes([result, scale]),
                               pattern=Pattern('layer_norm', *ctx.sizes))],
                       host.forward('aten._fused_rms_norm', False))
        return result

    @staticmethod
    def backward(ctx, gradient):
        data, weight, scale = ctx.saved_tensors
        name, kind = 'aten._fused_rms_norm_backward', format_of(data.dtype)
        to_data = torch.empty_like(data)
        read = total_bytes([t for t in (gradient, data, weight, scale) if t is not None])
        kernels = [Kernel(name, kind, read, bytes_of(to_data),
                          pattern=Pattern('layer_norm', *ctx.sizes, backward=True))]
        to_weight = None
        if weight is not None:
            to_weight = torch.empty_like(weight)
            kernels.append(Kernel(name, kind, total_bytes([gradient, data, scale]),
                                  bytes_of(to_weight),
                                  pattern=Pattern('layer_norm_weights', *ctx.sizes)))
        ctx.capture.launch(kernels, host.backward(name))
        return None, to_data, to_weight, None


def rms_norm_for(capture):
    def rms_norm(data, normalized_shape, weight=None, eps=None):
        del eps
        return FusedRMSNorm.apply(capture, data, weight, list(normalized_shape))
    return rms_norm
