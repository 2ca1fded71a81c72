"""What CUDA does instead of what the meta device shows."""
import re

import pytest
from describe_models import example, torch
from torch import nn
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from ddpsim.describe import DescribeError, describe
from ddpsim.describe.attention import chosen
from ddpsim.describe.optimizers import NAMES, name_of


def step(forward, *parameters, **settings):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.ParameterList(nn.Parameter(p) for p in parameters)

        def forward(self, batch):
            return forward(*self.p)
    return describe(Model(), torch.zeros(1), lambda model, batch: model(batch).sum(), **settings)


def heads(dtype, groups=4, size=16):
    return [torch.randn(2, n, 8, size, dtype=dtype) for n in (4, groups, groups)]


def attends(**arguments):
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, **arguments)


def test_dropout_is_one_fused_kernel():
    workload = step(lambda x: dropout(x, 0.5), torch.randn(10))
    assert [k.op for k in workload.forward] == ['aten.native_dropout', 'aten.sum']
    assert workload.forward[0].written == 40 + 10  # the result, and a mask of a byte each
    assert "dropout described as CUDA's fused kernel (x 1)" in workload.notes
    assert [k.op for k in step(lambda x: dropout(x, 0.0) * 1, torch.randn(10)).forward] == [
        'aten.mul', 'aten.sum']


def test_attention_is_chosen_by_mask_format_and_heads():
    mask = torch.zeros(8, 8, device='meta')
    half, full = heads(torch.bfloat16), heads(torch.float32)
    assert chosen(*half, None, False) == 'flash'
    assert chosen(*half, mask, False) == 'efficient'
    assert chosen(*full, None, False) == 'efficient'
    assert chosen(*heads(torch.bfloat16, size=512), None, False) == 'efficient'
    assert chosen(*heads(torch.float32, size=6), None, False) == 'math'
    assert chosen(*heads(torch.bfloat16, groups=2), None, True) == 'flash'
    assert chosen(*heads(torch.float32, groups=2), None, True) == 'math'


def test_the_chosen_attention_is_said_and_can_be_another():
    for wanted, said, op in ((None, 'flash', 'aten._scaled_dot_product_flash_attention'),
                             ('efficient', 'efficient',
                              'aten._scaled_dot_product_efficient_attention')):
        workload = step(attends(is_causal=True), *heads(torch.bfloat16), attention=wanted)
        assert workload.attention == said
        kernel = workload.forward[0]
        assert (kernel.op, kernel.kind) == (op, 'attention')
        assert tuple(kernel.attention) == (2, 4, 8, 8, 16, 16, True, False,
                                           wanted or 'default', False)
        # Two products forward, five backward; a causal mask is discounted in pricing alone.
        assert kernel.flops == 2 * 2 * 2 * 4 * 8 * 8 * 16
        assert [k.flops for k in workload.backward if k.attention] == [kernel.flops * 5 // 2]
    math = step(attends(is_causal=True), *heads(torch.bfloat16), attention='math')
    assert math.attention == 'math' and sum(k.kind == 'gemm' for k in math.forward) == 2
    with pytest.raises(DescribeError, match='unknown kind "flesh"'):
        step(attends(), *heads(torch.bfloat16), attention='flesh')


def test_grouped_heads_are_summed_after_flash_backward():
    workload = step(attends(enable_gqa=True), *heads(torch.bfloat16, groups=2))
    backward = workload.backward
    place = [i for i, k in enumerate(backward) if k.attention][0]
    assert backward[place].launches == 3
    assert [k.op for k in backward[place + 1:place + 3]] == ['aten.sum', 'aten.sum']


def test_rms_norm_is_one_kernel_and_its_backward_two():
    workload = step(lambda x, w: nn.functional.rms_norm(x, (8,), w), torch.randn(5, 8),
                    torch.randn(8))
    assert [k.op for k in workload.forward] == ['aten._fused_rms_norm', 'aten.sum']
    assert [k.written for k in workload.backward if 'rms_norm' in k.op] == [160, 32]


def test_recurrent_layers_are_products_and_a_kernel_for_the_gates_of_each_step():
    model, batch, loss, _ = example('gru')  # 2 layers, 5 steps, 2 samples, width 16
    workload = describe(model, batch, loss)
    mine = [k for k in workload.forward if k.op == 'aten.gru']
    assert len(mine) == 2 * (1 + 2 * 5)
    assert tuple(mine[0].gemm) == (10, 48, 16, 1)  # all inputs with the input weights
    assert all(p.name.startswith('gru') for p in workload.parameters if p.layer == 1)


def test_autocast_multiplies_in_16_bits_and_normalises_in_32():
    def forward(x, w, g):
        y = x @ w
        return nn.functional.layer_norm(y.softmax(-1) @ w, (8,), g)
    made = [torch.randn(8, 8), torch.randn(8, 8), torch.randn(8)]
    workload = step(forward, *made, autocast=torch.bfloat16)
    assert (workload.dtype, workload.compute) == ('fp32', 'bf16')
    types = [(k.op.split('.')[1], k.type) for k in workload.forward]
    # The weight w is cast once for both products; SoftMax.cpp reads fp16 as it is, not bf16.
    assert types == [('_to_copy', 'bf16'), ('_to_copy', 'bf16'), ('mm', 'bf16'),
                     ('_to_copy', 'fp32'), ('_softmax', 'fp32'), ('_to_copy', 'bf16'),
                     ('mm', 'bf16'), ('_to_copy', 'fp32'), ('native_layer_norm', 'fp32'),
                     ('sum', 'fp32')]


def test_autocast_of_the_users_own_code_works_on_any_device_it_names():
    def forward(x, w):
        with torch.autocast('cuda', dtype=torch.float16):
            y = x @ w
        with torch.autocast(x.device.type, dtype=torch.float16, enabled=False):
            return y.float() @ w
    workload = step(forward, torch.randn(4, 4), torch.randn(4, 4))
    assert [k.type for k in workload.forward if k.gemm] == ['fp16', 'fp32']
    assert torch.amp.autocast_mode.autocast.__enter__.__module__ == 'torch.amp.autocast_mode'


@pytest.mark.parametrize('device, named, noted', [
    ('cuda', 'cpu', True), ('cuda', 'cuda', False), ('cuda', 'meta', False),
    ('cpu', 'cuda', True), ('cpu', 'cpu', False)])
def test_autocast_for_another_device_is_noted(device, named, noted):
    """Of its own, torch casts nothing for tensors of a device that the region does not name."""
    def loss(model, batch):
        def block(x):
            with torch.autocast(named, dtype=torch.bfloat16):
                return model(x)
        return torch.utils.checkpoint.checkpoint(block, batch, use_reentrant=False).sum()
    model, batch = nn.Linear(8, 8), torch.zeros(4, 8)
    told = [note for note in describe(model, batch, loss, device=device).notes
            if 'does nothing for tensors on' in note]
    assert len(told) == noted
    assert all(f'torch.autocast("{named}") does nothing' in note
               and f'write torch.autocast("{device}")' in note for note in told)


@pytest.mark.parametrize('device', ['cuda', 'cpu'])
def test_checkpoints_under_the_devices_own_autocast_need_no_note(device):
    """They enter a region for a CPU beside that of the device, which says the same."""
    def loss(model, batch):
        return torch.utils.checkpoint.checkpoint(model, batch, use_reentrant=False).float().sum()
    workload = describe(nn.Linear(8, 8), torch.zeros(4, 8), loss, device=device,
                        autocast=torch.bfloat16)
    assert workload.compute == 'bf16'
    assert not any('does nothing' in note for note in workload.notes)


@pytest.mark.parametrize('reentrant', [False, True])
def test_checkpointed_blocks_run_again_in_backward(reentrant):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(2))

        def forward(self, x):
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return x
    model = Model()
    x = torch.randn(4, 8, requires_grad=True)
    workload = describe(model, x, lambda model, x: model(x).sum())
    again = [k.op for k in workload.layers[1].backward if k.op in ('aten.addmm', 'aten.gelu')]
    # Without re-entry the block runs up to what its backward needs: not its last product.
    assert again == ['aten.addmm', 'aten.gelu'] + (['aten.addmm'] if reentrant else [])
    plain = describe(model, x, lambda m, x: m.blocks[1](m.blocks[0](x)).sum())
    assert sum(layer.kept for layer in workload.layers) < sum(l.kept for l in plain.layers)
    assert [layer.name for layer in workload.layers] == ['blocks.0', 'blocks.1']


def test_fused_chains_count_their_ends():
    workload = step(lambda x: (x * 2 + 1).tanh(), torch.randn(10))
    fused = step(lambda x: (x * 2 + 1).tanh(), torch.randn(10), fused=True)
    assert len(workload.forward) == 4
    assert [(k.op, k.launches, k.read, k.written) for k in fused.forward] == [('fused', 1, 40, 4)]
    assert any('fused' in note for note in fused.notes)
    assert fused.parameters[0].after == len(fused.backward) - 1


def test_fusing_leaves_products_and_completed_gradients_where_they_are():
    model, batch, loss, _ = example('vit')
    plain, fused = (describe(model, batch, loss, fused=f) for f in (False, True))
    assert fused.flops == plain.flops and fused.arrival == plain.arrival
    assert len(fused.backward) < len(plain.backward)
    for parameter in fused.parameters:
        assert parameter.after < len(fused.layers[parameter.layer].backward)


def test_compiled_modules_are_described_eager_and_it_is_said():
    model, batch, loss, _ = example('unused_parameters')
    plain = describe(model, batch, loss)
    compiled = describe(torch.compile(model), batch, loss)
    assert compiled.forward == plain.forward and compiled.parameters == plain.parameters
    assert any('torch.compile is not captured: 1 compiled module described' in note
               for note in compiled.notes)
    helper = torch.compile(lambda x: x.tanh())
    inside = step(lambda x: helper(x), torch.randn(3))
    assert any('compiled functions described eager' in note for note in inside.notes)
    assert not any('compile' in note for note in step(lambda x: x.tanh(), torch.randn(3)).notes)
    model.forward = torch.compile(model.forward)
    both = describe(model, batch, torch.compile(loss))
    assert both.forward == plain.forward
    assert any('1 compiled module and the compiled loss described' in note for note in both.notes)


@pytest.mark.parametrize('settings, name', [
    ({}, 'adamw'), ({'fused': True}, 'adamw-fused'), ({'foreach': False}, 'adamw-loop')])
def test_the_optimizer_is_named(settings, name):
    model, batch, loss, _ = example('unused_parameters')
    optimizer = torch.optim.AdamW(model.parameters(), **settings)
    assert describe(model, batch, loss, optimizer).optimizer == name
    assert describe(model, batch, loss).optimizer is None
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    assert describe(model, batch, loss, plain).optimizer == 'sgd-plain'


def test_every_optimizer_of_the_catalogue_has_its_name_and_its_class():
    model = nn.Linear(2, 2)
    for name in NAMES:
        assert name_of(name, []) == name
    kinds = {kind: type(kind, (), {}) for kind in ('FusedNovoGrad', 'Lion', 'AdamW8bit', 'LAMB')}
    assert [name_of(kind, []) for kind in kinds.values()] == [
        'novograd', 'lion', 'adam-8bit', 'lamb']
    notes = []
    assert name_of(torch.optim.RMSprop(model.parameters()), notes) == 'rmsprop' and not notes
    assert name_of(torch.optim.RMSprop(model.parameters(), momentum=0.9), notes) == 'rmsprop'
    assert notes == ['RMSprop described without momentum, and not centered']
    with pytest.raises(DescribeError, match='known: none, sgd, .*, lion, adam-8bit'):
        name_of('sophia', [])


def test_optimizers_are_those_of_the_program():
    import ddpsim
    try:
        said = ddpsim.explain('workload.optimizer')
    except ImportError:
        pytest.skip('NOT RUN: no compiled module')
    assert re.findall(r'^    ([a-z0-9-]+): ', said, re.MULTILINE) == list(NAMES)



def convolution(data, weight, **settings):
    return step(lambda x, w: nn.functional.conv2d(x, w, **settings), data, weight)


def launched(kernels):
    return [k.op for k in kernels if k.op.startswith(('cudnn', 'aten.conv'))]


def test_cudnn_changes_layouts_around_convolutions_with_channels_first():
    wide = convolution(torch.randn(2, 64, 8, 8), torch.randn(64, 64, 3, 3), padding=1)
    layout, kernel, helper = 'cudnn.layout', 'aten.convolution_backward', 'cudnn.helper'
    assert launched(wide.forward) == [layout, layout, helper, 'aten.convolution', layout]
    parts = [layout, layout, helper, kernel, 'cudnn.sum_of_parts', layout]
    assert launched(wide.backward) == [layout, layout, helper, kernel, layout, *parts]
    on_an_a100 = launched_by(108, wide.forward)  # no helper; the result is written as it lies
    assert launched(on_an_a100) == [layout, layout, 'aten.convolution']
    # A window of one, in rows of 16 bytes, is a product as the tensors lie.
    point = convolution(torch.randn(2, 64, 8, 8), torch.randn(64, 64, 1, 1))
    assert launched(point.forward) == ['aten.convolution']
    assert launched(point.backward) == [kernel, kernel, 'cudnn.sum_of_parts']
    network = nn.Sequential(
        nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(64, 32, 3, padding=1, bias=False), nn.Conv2d(32, 64, 1))
    last = describe(network.to(memory_format=torch.channels_last),
                    torch.randn(2, 64, 8, 8).to(memory_format=torch.channels_last),
                    lambda model, batch: model(batch).sum())
    assert layout not in launched(last.forward + last.backward)


def test_convolutions_of_one_pixel_are_a_product_for_each_picture():
    def products(found):
        return [k.gemm for k in found.forward + found.backward if k.gemm]

    data, weight = torch.randn(2, 32, 8, 8), torch.randn(64, 32, 1, 1)
    point = convolution(data, weight)
    assert products(point) == [(64, 64, 32, 2), (64, 32, 64, 2), (64, 32, 64, 2)]
    parts = next(k for k in point.backward if k.op == 'cudnn.sum_of_parts')
    size = 4 * weight.numel()
    assert (parts.read, parts.written) == (2 * size, size)  # a part of each picture
    assert point.backward[point.backward.index(parts) - 1].written == 2 * size
    assert point.flops == 3 * 2 * 2 * 64 * 64 * 32
    one = convolution(data[:1], weight)  # a picture, with nothing to sum
    assert products(one)[0] == (64, 64, 32, 1)
    assert 'cudnn.sum_of_parts' not in launched(one.backward)
    last = convolution(data.to(memory_format=torch.channels_last), weight)
    assert products(last)[0] == (128, 64, 32, 1)
    # Rows of 49 numbers are not of 16 bytes: the convolution is gathered as others are.
    assert products(convolution(torch.randn(2, 32, 7, 7), weight))[0] == (98, 64, 32, 1)


def test_tensor_cores_want_channels_in_fours():
    def on_tensor_cores(channels, groups=1):
        found = convolution(torch.randn(2, channels, 8, 8),
                            torch.randn(64, channels // groups, 3, 3), groups=groups)
        return [k.tensor_cores for k in found.forward + found.backward if k.kind == 'conv']

    assert on_tensor_cores(64) == [True, True, True]
    assert on_tensor_cores(3) == on_tensor_cores(6) == [False, True, True]
    assert on_tensor_cores(64, groups=32) == [False, True, True]
    assert on_tensor_cores(64, groups=64) == [False, False, False]  # a kernel of PyTorch's own
    grouped = convolution(torch.randn(2, 24, 8, 8), torch.randn(48, 6, 3, 3), groups=4)
    assert launched(grouped.forward) == ['aten.convolution']  # in fp32 no layout changes
    found = step(lambda x, w: nn.functional.conv2d(x, w), torch.randn(2, 3, 8, 8),
                 torch.randn(64, 3, 3, 3))
    assert 'tensor_cores: false' in found.text() and found.text().count('tensor_cores') == 1


def test_cudnn_launches_helpers_around_convolutions_in_fp32():
    def launches(kernels):
        return [k.launches_in_fp32 for k in kernels if k.kind == 'conv']

    def of(window, **settings):
        found = convolution(torch.randn(2, 64, 8, 8), torch.randn(64, 64, window, window),
                            **settings)
        return launches(found.forward) + launches(found.backward)

    assert of(3, padding=1) == [5, 2, 4]   # FFT; scales and an engine; Winograd's
    assert of(3, stride=2) == of(3, dilation=2) == [1, 2, 4]
    assert of(1) == [1, 2, 3]
    grouped = convolution(torch.randn(2, 64, 8, 8), torch.randn(64, 1, 3, 3), groups=64)
    assert launches(grouped.forward) == [None]


def launched_by(multiprocessors, kernels):
    """Of a GPU without Hopper's kernels."""
    return [k for k in kernels
            if (k.multiprocessors or 0) <= multiprocessors and k.capability is None]


def test_a_step_of_resnet_50_launches_what_a_trace_of_a_v100_shows():
    """Both passes of a later micro-batch: 832 kernels (pytorch/kineto, tb_plugin/test/
    result_check_file.txt: 8856 in six steps, of which 644 a step are zero_grad's and SGD's)."""
    model, batch, loss, _ = example('resnext', 'resnet50')
    workload = describe(model, (batch[0][:2], batch[1][:2]), loss, later_micro_batch=True)
    seen, tensor_cores = 8856 / 6 - 4 * 161, ('cudnn.layout', 'cudnn.sum_of_parts')
    ours = sum((k.launches_in_fp32 or k.launches)
               for k in launched_by(80, workload.forward + workload.backward)
               if k.op not in tensor_cores)
    assert abs(ours - seen) < 0.05 * seen


def test_a_step_of_resnet_50_launches_what_a_trace_of_an_a100_shows():
    """Of 900 kernels a step (Holistic Trace Analysis, tests/data/nccl_parser_config) 7 are NCCL's,
    9 the optimizer's, 161 copy gradients into buckets and 2 concatenate for broadcasts."""
    model, batch, loss, _ = example('resnext', 'resnet50')
    workload = describe(model, (batch[0][:2], batch[1][:2]), loss)
    seen = 900 - 7 - 9 - 161 - 2
    ours = sum(k.launches for k in launched_by(108, workload.forward + workload.backward))
    assert abs(ours - seen) < 0.05 * seen
    norms = [k for k in workload.forward + workload.backward if 'batch_norm' in k.op]
    assert len(norms) == 53 + 53


class BasicBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True), nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels))
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, pictures):
        result = self.branch(pictures)
        result += self.shortcut(pictures)
        return self.relu(result)


def resnet_18():
    blocks = [BasicBlock(*sizes) for sizes in (
        (64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
        (256, 512, 2), (512, 512, 1))]
    network = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(512, 1000))
    return network, torch.randn(32, 3, 224, 224), lambda model, batch: model(batch).sum()


def distilbert():
    transformers = pytest.importorskip('transformers')
    model = transformers.DistilBertModel(transformers.DistilBertConfig())
    batch = {'input_ids': torch.randint(30522, (8, 128))}
    return model, batch, lambda model, batch: model(**batch).last_hidden_state.sum()


@pytest.mark.parametrize('make, seen', [(resnet_18, 114), (distilbert, 76)])
def test_forward_passes_launch_what_a_laptops_gpu_did(make, seen):
    """Traces of 10 passes in evaluation on an RTX 5070 Ti with 46 multiprocessors, torch 2.10 and
    cuDNN 9.10; nothing of them entered the rules of convolutions (anshulk-cmu/
    HDAI---cuDNN-Profiling@e6b5040, results/tables/baseline_breakdown.csv, events_per_iter)."""
    model, batch, loss = make()
    workload = describe(model.eval(), batch, loss, tf32='conv')
    assert workload.forward[-1].op == 'aten.sum'  # the loss, which the traces have not
    forward = [k for k in workload.forward[:-1] if k.op != 'memset']  # that of the sum
    assert sum(k.launches for k in launched_by(46, forward)) == seen


def test_tf32_is_said_and_chosen():
    model, batch, loss, _ = example('resnext')
    plain, conv = (describe(model, batch, loss, tf32=which) for which in (None, 'conv'))
    first, *others = [k.type for k in conv.forward if k.kind == 'conv']
    assert first == 'fp32' and set(others) == {'tf32'}  # pictures have three channels
    assert {k.type for k in conv.forward if k.kind != 'conv'} == {'fp32'}
    assert conv.compute == 'tf32' and plain.compute is None
    assert any('TF32 on GPUs that have it' in note for note in plain.notes)


def test_a_cpu_runs_its_own_kernels():
    model, batch, loss, _ = example('vit')
    on_cpu = describe(model, batch, loss, device='cpu')
    ops = [k.op for k in on_cpu.forward]
    assert 'aten._scaled_dot_product_flash_attention_for_cpu' in ops
    assert 'aten.native_dropout' not in ops and not any(op.startswith('cudnn') for op in ops)


def test_an_lstm_with_projections_is_as_the_meta_device_has_it():
    model = nn.LSTM(8, 16, proj_size=4)
    workload = describe(model, torch.randn(5, 2, 8), lambda m, x: m(x)[0].sum())
    assert 'aten.lstm' not in [k.op for k in workload.forward]
    assert len(workload.arrival) == 5
