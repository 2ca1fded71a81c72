"""What CUDA does instead of what the meta device shows.

Composite operations are replaced above autograd for meta tensors: attention by the kernel CUDA
chooses, dropout and RMS norm by their fused kernels, recurrent layers by cuDNN's;
torch.autocast works. What a CPU does instead is in cpu.py, and its fused attention in attention.py.
Everything is undone when the context ends.
"""
import contextlib

import torch

from . import attention as attention_rules
from . import cpu
from .autocast import autocast_on_meta
from .collectives import synchronised_norms
from .errors import DescribeError
from .fused_norm import FUSED_RMS_NORM, rms_norm_for
from .recurrent import GATES, recurrent_for
from .releases import at_least
from .transformers_models import as_in_training

DEVICES = ('cuda', 'cpu')


@contextlib.contextmanager
def what_a_device_does(model, capture, device, attention, release, notes):
    if device not in DEVICES:
        raise DescribeError(f'device: unknown kind "{device}"; known: {", ".join(DEVICES)}')
    attention_rules.check_choice(attention)
    counts = {}

    def count(what):
        counts[what] = counts.get(what, 0) + 1

    def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0,
                                     is_causal=False, *, scale=None, enable_gqa=False):
        attend = (attention_rules.attention_on_cuda if device == 'cuda'
                  else attention_rules.attention_on_cpu)
        return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa,
                      attention, capture.step.used)

    def dropout(data, p, train):
        """Dropout.cpp: the fused kernel where 0 < p < 1 and training."""
        if not train or p == 0:
            return data
        if p >= 1:
            return data * torch.zeros_like(data)
        count("dropout described as CUDA's fused kernel")
        return torch.ops.aten.native_dropout(data, p, train)[0]

    with torch.library._scoped_library('aten', 'IMPL') as library:
        library.impl('scaled_dot_product_attention', scaled_dot_product_attention, 'AutogradMeta')
        if device == 'cuda':
            library.impl('dropout', dropout, 'AutogradMeta')
            if at_least(release, FUSED_RMS_NORM):
                library.impl('rms_norm', rms_norm_for(capture), 'AutogradMeta')
            for kind in GATES:
                library.impl(f'{kind}.input', recurrent_for(capture, kind, count), 'AutogradMeta')
        else:
            library.impl('one_hot', cpu.one_hot, 'AutogradMeta')
            library.impl('lstm.input', cpu.lstm, 'AutogradMeta')
            for kind in cpu.KINDS:
                library.impl(f'{kind}.input', cpu.recurrent_on_cpu(kind), 'AutogradMeta')
        with autocast_on_meta(device) as doubts, as_in_training(model, notes), \
                synchronised_norms(capture):
            yield
            notes += doubts()
    notes += [f'{what} (x {number})' for what, number in counts.items()]
