"""Fused attention: which kernel CUDA chooses, and what each moves.

The choice is that of sdp_utils.cpp (torch 2.6, aten/src/ATen/native/transformers/cuda), in the
order flash, efficient, math. Flash takes 16 bits, heads of one size up to 256 and no mask.
Efficient takes masks and fp32, but every query head needs its own key. Math is matrix products and
a softmax. Where cuDNN could take what PyTorch gives to flash or efficient, the description says
`default`: whether it does depends on the GPU and the release. `attention=` says which is meant.
"""
import torch

from .errors import DescribeError
from .kernels import FILL, Attention, Kernel, Pattern
from .tensors import bytes_of, format_of, total_bytes

CHOICES = ('flash', 'efficient', 'math')


def chosen(query, key, value, mask, grouped):
    """flash, efficient or math."""
    if any(t.dim() != 4 for t in (query, key, value)):
        return 'math'
    size = query.shape[-1]
    one_size = size == key.shape[-1] == value.shape[-1]
    half = query.dtype in (torch.bfloat16, torch.float16)
    if mask is None and half and one_size and size <= 256:
        return 'flash'
    if grouped and query.shape[1] != key.shape[1]:
        return 'math'
    # 16 bytes at a time (check_head_dim_size_mem_efficient).
    aligned = 16 // query.element_size()
    if query.dtype in (torch.float32, torch.bfloat16, torch.float16) and all(
            t.shape[-1] % aligned == 0 for t in (query, value)) and size == key.shape[-1]:
        return 'efficient'
    return 'math'


def cudnn_takes(query, key, value, dropout):
    """16 bits, heads of sizes that are multiples of 8 up to 256, dropout in sixteenths; masks and
    grouped heads too (torch 2.11, sdp_utils.cpp, check_cudnn_*). Sizes above 128 only on some
    GPUs, which is theirs to say."""
    return (query.dtype in (torch.bfloat16, torch.float16)
            and all(t.shape[-1] % 8 == 0 and t.shape[-1] <= 256 for t in (query, value))
            and query.shape[-1] == key.shape[-1] and dropout * 16 % 1 == 0)


def attention_on_cuda(query, key, value, mask, dropout, causal, scale, grouped, wanted, used):
    """What aten::scaled_dot_product_attention does on CUDA; `used` counts choices."""
    choice = wanted or chosen(query, key, value, mask, grouped)
    if choice == 'flash' and mask is not None:
        choice = 'efficient'  # flash has no mask
    used[choice] = used.get(choice, 0) + 1
    if choice == 'math':
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)[0]
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, float('-inf')).to(query.dtype)
    if choice == 'efficient':
        if mask is not None:
            mask = padded_mask(mask).expand(query.shape[0], query.shape[1], query.shape[2],
                                            key.shape[2])
        trained = torch.is_grad_enabled() and any(
            t.requires_grad for t in (query, key, value))
        return torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, trained, dropout, causal, scale=scale)[0]
    size = query.shape[-1]
    scale = size ** -0.5 if scale is None else scale
    if size % 8:  # pad_last_dim
        query, key, value = (torch.nn.functional.pad(t, (0, 8 - size % 8))
                             for t in (query, key, value))
    result = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal,
                                                                scale=scale)[0]
    return result[..., :size] if size % 8 else result


def attention_on_cpu(query, key, value, mask, dropout, causal, scale, grouped, wanted, used):
    """What a CPU does: a fused kernel without dropout, of tensors of heads (sdp_utils_cpp.cpp)."""
    fused = (wanted != 'math' and not dropout and query.dim() == 4
             and not (mask is not None and mask.requires_grad)
             and query.shape[-1] == key.shape[-1] == value.shape[-1])
    choice = 'flash' if fused else 'math'
    used[choice] = used.get(choice, 0) + 1
    if not fused:
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)[0]
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, float('-inf')).to(query.dtype)
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, causal, attn_mask=mask, scale=scale)[0]


def padded_mask(mask):
    """Rows of a mask begin at 16 bytes: it is padded and cut again (pad_bias)."""
    keys, aligned = mask.shape[-1], 16 // mask.element_size()
    if keys % aligned == 0 or mask.stride(-1) == 0:
        return mask
    return torch.nn.functional.pad(mask, (0, aligned - keys % aligned))[..., :keys]


def shape_of(call, backward):
    query, key, value = call['query'], call['key'], call['value']
    batch, heads, queries, size = query.shape
    names = {argument.name for argument in call.func._schema.arguments}
    mask = next((call[name] for name in ('attn_bias', 'attn_mask') if name in names), None)
    own = 'efficient' if 'efficient' in call.op else 'flash'
    decided = (call.device == 'cpu' or call.chosen_attention
               or not cudnn_takes(query, key, value, call['dropout_p']))
    return Attention(batch, heads, queries, key.shape[2], size, value.shape[-1],
                     bool(call['is_causal']), backward, own if decided else 'default',
                     mask is not None)


def forward(call):
    return [Kernel(op=call.op, kind='attention', type=format_of(call['query'].dtype),
                   attention=shape_of(call, False),
                   read=total_bytes(call.inputs),
                   written=sum(bytes_of(t) for t in call.result[:2] if t is not None))]


def flash_backward(call):
    """Three kernels (flash_bwd_launch_template.h): the product of result and gradient by rows, the
    five products, and the gradient of the queries from its fp32 sum to their format. Grouped heads
    make gradients of keys and values for every query head, which are then added up (two sums)."""
    query, key = call['query'], call['key']
    rows = query.shape[0] * query.shape[1] * query.shape[2] * 4
    summed = query.numel() * 4
    kernels = [Kernel(op=call.op, kind='attention', type=format_of(query.dtype),
                      attention=shape_of(call, True),
                      read=(total_bytes(call.inputs) + bytes_of(call['out'])
                            + bytes_of(call['grad_out']) + rows + summed),
                      written=total_bytes(call.outputs) + rows + summed, launches=3)]
    if query.shape[1] != key.shape[1]:
        wide = bytes_of(key) * query.shape[1] // key.shape[1]
        sizes = Pattern('sum_of_rows', query.shape[1] // key.shape[1], key.numel())
        kernels += 2 * [call.memory(wide, bytes_of(key), op='aten.sum', pattern=sizes)]
    return kernels


def efficient_backward(call):
    """The product of result and gradient by rows, in fp32 by three kernels of its own (a product, a
    sum, a copy of the sums), else by the main one; a fill of the memory in which gradients of the
    queries are added up in fp32; the five products (attention_backward.cu)."""
    query = call['query']
    count = query.shape[0] * query.shape[1] * query.shape[2]
    rows, size = 4 * count, bytes_of(call['out'])
    kernels = []
    if query.dtype == torch.float32 and call.device == 'cuda':
        kernels = [call.memory(2 * size, size, op='aten.mul'),
                   call.memory(size, rows, op='aten.sum',
                               pattern=Pattern('reduce', count, call['value'].shape[-1])),
                   call.memory(rows, rows, op='aten.copy_', pattern=Pattern('strided'))]
    kernels.append(call.memory(0, 4 * query.numel(), op='aten.fill_', pattern=FILL))
    return [*kernels,
            Kernel(op=call.op, kind='attention', type=format_of(query.dtype),
                   attention=shape_of(call, True),
                   read=(total_bytes(call.inputs) + bytes_of(call['out'])
                         + bytes_of(call['grad_out_']) + rows),
                   written=total_bytes(call.outputs) + rows)]


def cpu_backward(call):
    return [Kernel(op=call.op, kind='attention', type=format_of(call['query'].dtype),
                   attention=shape_of(call, True),
                   read=total_bytes(call.inputs) + bytes_of(call['out']),
                   written=total_bytes(call.outputs))]


def check_choice(choice):
    if choice is not None and choice not in CHOICES:
        raise DescribeError(f'attention: unknown kind "{choice}"; known: {", ".join(CHOICES)}')


RULES = {'aten._scaled_dot_product_flash_attention': forward,
         'aten._scaled_dot_product_flash_attention_for_cpu': forward,
         'aten._scaled_dot_product_flash_attention_for_cpu_backward': cpu_backward,
         'aten._scaled_dot_product_efficient_attention': forward,
         'aten._scaled_dot_product_flash_attention_backward': flash_backward,
         'aten._scaled_dot_product_efficient_attention_backward': efficient_backward}
