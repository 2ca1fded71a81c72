"""torch.autocast as CUDA or a CPU has it, for meta tensors.

PyTorch's own autocast passes over meta tensors. Here each operation of a device's lists gets a
kernel at a dispatch key above autograd that no build uses (Habana's autocast). The key is switched
on where the user's code is inside torch.autocast: the kernel casts the arguments and calls the
operation again. The capture sees casts as the copies they are; weights are cast once per region.
Code that asks torch which autocast it is in, as checkpoints do to run a block again in the same
one, is answered from the same stack of regions.

Source of the lists: aten/src/ATen/autocast_mode.h (torch 2.6; AT_FORALL_LOWER_PRECISION_FP,
AT_FORALL_FP32, AT_FORALL_FP32_SET_OPT_DTYPE, AT_FORALL_PROMOTE), and of a CPU's autocast_mode.cpp
(TORCH_LIBRARY_IMPL(aten, AutocastCPU)), whose names the installed torch tells itself.
"""
import contextlib
from typing import NamedTuple

import torch

LOWER = '''
_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d
convolution addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm
chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell
rnn_tanh_cell
rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention prelu lstm gru
rnn_tanh rnn_relu
'''.split()
FP32 = '''
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus
layer_norm native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity
poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss
smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm
logsumexp upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d
'''.split()
FP32_RESULT = '''
prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum
'''.split()
PROMOTE = '''
addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add cat stack
'''.split()
LOWER_ON_CPU = '''
_addmm_activation _convolution _native_multi_head_attention addbmm addmm baddbmm bmm conv1d conv2d
conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot linear matmul
mkldnn_rnn_layer mm prelu scaled_dot_product_attention
'''.split()
PROMOTE_ON_CPU = 'cat index_copy stack'.split()

_KEY = torch._C.DispatchKey.AutocastHPU
_KEYS = torch._C.DispatchKeySet(_KEY)


class _Entered(NamedTuple):
    """One `with torch.autocast(...)`."""
    enabled: bool
    format: torch.dtype
    caches: bool          # keeps the casts of weights


class _Region:
    """The autocast the user's code is in."""

    def __init__(self):
        self.stack = []      # _Entered
        self.named = set()   # device types of the regions that changed something
        self.weights = {}    # weight -> its copy in 16 bits

    @property
    def format(self):
        """None where autocast is off."""
        return self.stack[-1].format if self.is_enabled() else None

    # --- what torch's functions of these names say; one device type is as good as another ---

    def is_enabled(self, device_type='cuda'):
        del device_type
        return bool(self.stack) and self.stack[-1].enabled

    def dtype(self, device_type='cuda'):
        return self.stack[-1].format if self.stack else default_format(device_type)

    def caches(self):
        return not self.stack or self.stack[-1].caches

    def lowered(self, tensor, target):
        keep = tensor.requires_grad and tensor.is_leaf and tensor.dtype == torch.float32
        if keep and tensor in self.weights:
            return self.weights[tensor]
        cast = tensor.to(target)
        if keep and self.caches() and torch.is_grad_enabled():
            self.weights[tensor] = cast
        return cast


def _cast(value, to, region=None):
    """Nested arguments with floating-point tensors in format `to`."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.dtype in (to, torch.float64):
            return value
        return region.lowered(value, to) if region else value.to(to)
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(item, to, region) for item in value)
    return value


def _widest(value):
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and value.dtype == torch.float32
    return isinstance(value, (list, tuple)) and any(_widest(item) for item in value)


def _kernels(region, device):
    """(operation, its kernel) of all that the lists of a device have."""
    def lower(func):
        def kernel(*args, **kwargs):
            with _without():
                return func(*_cast(args, region.format, region),
                            **{k: _cast(v, region.format, region) for k, v in kwargs.items()})
        return kernel

    def fp32(func):
        def kernel(*args, **kwargs):
            with _without():
                return func(*_cast(args, torch.float32),
                            **{k: _cast(v, torch.float32) for k, v in kwargs.items()})
        return kernel

    def fp32_result(func):
        """CUDA sets the result's format; the argument is read as it is."""
        takes = any(argument.name == 'dtype' for argument in func._schema.arguments)

        def kernel(*args, **kwargs):
            half = isinstance(args[0], torch.Tensor) and args[0].dtype in (torch.float16,
                                                                           torch.bfloat16)
            place = [a.name for a in func._schema.arguments].index('dtype') if takes else 0
            given = kwargs.get('dtype') is not None or (
                0 < place < len(args) and args[place] is not None)
            with _without():
                if half and takes and not given:
                    kwargs['dtype'] = torch.float32
                    args = args[:place] if place < len(args) else args
                return func(*args, **kwargs)
        return kernel

    def promote(func):
        def kernel(*args, **kwargs):
            to = torch.float32 if _widest(args) else region.format
            with _without():
                return func(*_cast(args, to), **kwargs)
        return kernel
    if device == 'cpu':
        for func in _registered('AutocastCPU'):
            name = func._overloadpacket.__name__
            yield func, (lower if name in LOWER_ON_CPU else
                         promote if name in PROMOTE_ON_CPU else fp32)(func)
        return
    for names, maker in ((LOWER, lower), (FP32, fp32), (FP32_RESULT, fp32_result),
                         (PROMOTE, promote)):
        for name in names:
            packet = getattr(torch.ops.aten, name, None)
            for overload in packet.overloads() if packet else ():
                func = getattr(packet, overload)
                if 'out' not in overload and not func._schema.is_mutable:
                    yield func, maker(func)


def _registered(key):
    """Operations of PyTorch's own that have a kernel at a dispatch key."""
    for place in torch._C._dispatch_get_registrations_for_dispatch_key(key):
        namespace, _, name = place.partition('::')
        packet, _, overload = name.partition('.')
        if namespace == 'aten' and hasattr(torch.ops.aten, packet):
            yield getattr(getattr(torch.ops.aten, packet), overload or 'default')


def _without():
    return torch._C._ExcludeDispatchKeyGuard(_KEYS)


def default_format(device_type):
    """What torch.autocast multiplies in where nothing else is asked for."""
    return torch.bfloat16 if device_type == 'cpu' else torch.float16


@contextlib.contextmanager
def autocast_on_meta(device='cuda'):
    """torch.autocast works on meta tensors as on `device`, whatever device type it names: code that
    asks which devices there are names one that is here, not the one that is described. Gives a
    function that returns the notes on what was named."""
    region = _Region()
    with _entering(region), _asking(region), \
            torch.library._scoped_library('_', 'IMPL', 'AutocastHPU') as everything, \
            torch.library._scoped_library('aten', 'IMPL') as library:
        everything.fallback(torch.library.fallthrough_kernel, 'AutocastHPU')
        for func, kernel in _kernels(region, device):
            library.impl(func, kernel, 'AutocastHPU')
        yield lambda: _of_another_device(region.named, device)


def _of_another_device(named, device):
    """Regions for a CPU do nothing for what is on a GPU, and the other way round."""
    other, there = ('cpu', 'a GPU') if device == 'cuda' else ('cuda', 'a CPU')
    return [f'torch.autocast("{other}") does nothing for tensors on {there}: write '
            f'torch.autocast("{device}"); described as that, since code may name the device that '
            'it finds'] if other in named else []


@contextlib.contextmanager
def _entering(region):
    """`with torch.autocast(...)` enters and leaves `region`."""
    kind = torch.amp.autocast_mode.autocast
    kept = kind.__init__, kind.__enter__, kind.__exit__

    def made(self, device_type='cuda', dtype=None, enabled=True, cache_enabled=None):
        self.device, self._enabled = device_type, enabled
        self.fast_dtype = default_format(device_type) if dtype is None else dtype
        self._cache_enabled = region.caches() if cache_enabled is None else cache_enabled

    def entered(self):
        enabled = self._enabled and self.fast_dtype != torch.float32
        before = region.format
        region.stack.append(_Entered(enabled, self.fast_dtype, self._cache_enabled))
        if region.format != before:
            region.named.add(self.device)
        _switch(enabled)
        return self

    def left(self, *problem):
        region.stack.pop()
        if not region.stack:
            region.weights.clear()
        _switch(region.is_enabled())
        return False
    kind.__init__, kind.__enter__, kind.__exit__ = made, entered, left
    try:
        yield
    finally:
        kind.__init__, kind.__enter__, kind.__exit__ = kept


@contextlib.contextmanager
def _asking(region):
    """Functions of torch that say which autocast one is in speak of `region`."""
    with contextlib.ExitStack() as replaced:
        for place, name, function in (
                (torch, 'is_autocast_enabled', region.is_enabled),
                (torch, 'get_autocast_dtype', region.dtype),
                (torch, 'is_autocast_cache_enabled', region.caches),
                (torch.amp, 'is_autocast_available', lambda device_type: True)):
            replaced.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, function)
        yield


def _switch(on):
    torch._C._dispatch_tls_set_dispatch_key_excluded(_KEY, not on)
    torch._C._dispatch_tls_set_dispatch_key_included(_KEY, on)
