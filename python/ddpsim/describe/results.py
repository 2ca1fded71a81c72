"""Results of operations that the meta device refuses, or has otherwise than what is described."""
import torch


def result_of(func, args, kwargs):
    """What the operation returns, on meta."""
    make = _MAKERS.get(str(func))
    made = make(func, args, kwargs) if make else None
    return func(*args, **kwargs) if made is None else made


def grouped_products(func, args, kwargs):
    """aten._grouped_mm in formats that the meta device refuses, though CUDA and CPUs have them
    (GroupedMMUtils.h, create_grouped_gemm_output_tensor)."""
    a, b = args[:2]
    if a.dtype == torch.bfloat16:
        return None
    shape = [a.shape[-2], b.shape[-1]]
    if a.dim() == b.dim():  # of each group one, or of each pair of matrices
        offsets = args[2] if len(args) > 2 else kwargs.get('offs')
        shape.insert(0, a.shape[0] if a.dim() == 3 else offsets.shape[0])
    row = -(-shape[-1] * a.element_size() // 16) * 16 // a.element_size()  # begins at 16 bytes
    strides = [shape[-2] * row, row, 1][-len(shape):]
    return torch.empty_strided(shape, strides, dtype=a.dtype, device=a.device)


def lstm_layer(func, args, kwargs):
    """With the memory that oneDNN keeps for backward, which is opaque: of torch 2.13, for 32 to 128
    steps and states of 128 to 512, 15.3 to 15.7 numbers for each element of a state (22.4 where
    inputs were twice as wide): eight for each, and seven of the wider of inputs and states."""
    *results, workspace = func(*args, **kwargs)
    data, state = args[0], results[1]
    tokens = data.shape[0] * data.shape[1]
    elements = 8 * state.shape[-1] + 7 * max(state.shape[-1], data.shape[-1])
    return *results, workspace.new_empty(4 * tokens * elements)


def lstm_layer_backward(func, args, kwargs):
    """Both biases have gradients of their own; meta has one tensor for both."""
    results = list(func(*args, **kwargs))
    results[4] = torch.empty_like(results[3])
    return tuple(results)


def lies_last(tensor):
    """Do its channels lie last in memory, and nothing else?"""
    return (tensor.dim() == 4 and not tensor.is_contiguous()
            and tensor.is_contiguous(memory_format=torch.channels_last))


def convolution(func, args, kwargs):
    """With channels last where cuDNN writes it so: where data or weight have them last
    (ConvUtils.h, cudnn_conv_suggest_memory_format). Meta writes channels first."""
    if not any(map(lies_last, args[:2])):
        return None
    return func(*args, **kwargs).to(memory_format=torch.channels_last)


def convolution_backward(func, args, kwargs):
    """The gradients of data and weight, laid out with channels last as a GPU lays them out."""
    if not any(map(lies_last, args[1:3])):
        return None
    *gradients, bias = func(*args, **kwargs)
    return *(each if each is None else each.to(memory_format=torch.channels_last)
             for each in gradients), bias


_MAKERS = {'aten.convolution.default': convolution,
           'aten.convolution_backward.default': convolution_backward,
           'aten._grouped_mm.default': grouped_products,  # not every release has all of them
           'aten.mkldnn_rnn_layer.default': lstm_layer,
           'aten.mkldnn_rnn_layer_backward.default': lstm_layer_backward}
