"""What each operation launches, moves and multiplies."""
import pytest
from describe_models import SMALL, example, from_transformers, torch, value_of
from torch import nn
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from ddpsim.describe import capture, describe, results
from ddpsim.describe.foreach import launches_of


def kernels(forward, *parameters):
    """Kernels of a forward pass over `parameters` (shapes or tensors), and of its backward."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.ParameterList(nn.Parameter(p if isinstance(p, torch.Tensor)
                                                   else torch.randn(p)) for p in parameters)

        def forward(self, batch):
            return forward(*self.p)
    workload = describe(Model(), torch.zeros(1), lambda model, batch: model(batch).sum())
    forward = workload.forward[:-1]  # without the sum, and what it counts its blocks in
    return forward[:-1] if forward[-1].op == 'memset' else forward, workload.backward


@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', [n for n in SMALL if n != 'gru'] + [
    f'transformers:{n}' for n in ('gpt2', 'llama', 'bert', 'vit', 't5', 'whisper')])
def test_flops_equal_torchs_own_counter_operation_by_operation(name, monkeypatch):
    compared = []
    rules = capture.kernels_of

    def checked(call):
        made = rules(call)
        formula = flop_registry.get(call.func._overloadpacket)
        if formula:
            said = formula(*call.args, **call.kwargs, out_val=call.result)
            ours = sum(k.flops for k in made)
            if call.op == 'aten.convolution_backward' and call['groups'] > 1:
                # torch counts the weight's gradient as if every channel met every other: by the
                # number of groups too much (conv_backward_flop).
                weight = [k for k in made if k.kind == 'conv'][-1]
                ours += (call['groups'] - 1) * weight.flops
            compared.append((call.op, said, ours))
        else:
            assert sum(k.flops for k in made or []) == 0, call.op
        return made
    monkeypatch.setattr(capture, 'kernels_of', checked)
    made = (from_transformers(name.split(':')[1]) if ':' in name else example(name))
    describe(*made[:3])
    assert [(op, said) for op, said, _ in compared] == [(op, ours) for op, _, ours in compared]
    assert len(compared) > 5


@pytest.mark.parametrize('name', ['unet', 'mixture', 't5', 'vit', 'sparse_embedding', 'gru'])
def test_flops_equal_those_of_a_real_step(name):
    """Fused attention counts nothing on a CPU, so that both take the unfused one."""
    model, batch, loss, _ = example(name)
    workload = describe(model, batch, loss, attention='math')
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        with FlopCounterMode(display=False) as counter:
            value_of(model, batch, loss).backward()
    assert workload.flops == counter.get_total_flops()


def test_views_launch_nothing():
    forward, _ = kernels(lambda x: x.view(4, 6).t().unsqueeze(0).expand(3, 6, 4)[1:].detach()
                         + x.view(4, 6).t(), (24,))
    assert [k.op for k in forward] == ['aten.add']


def test_a_reshape_that_copies_is_charged_as_a_copy():
    forward, _ = kernels(lambda x: x.t().reshape(24), (4, 6))
    assert [(k.op, k.read, k.written) for k in forward] == [('aten.clone', 96, 96)]


def test_an_expanded_operand_counts_its_unexpanded_bytes():
    # (4, 1) as (4, 1000): 16 bytes; the other operand and the result 16000 each.
    forward, _ = kernels(lambda x, y: x.expand(4, 1000) * y, (4, 1), (4, 1000))
    assert [(k.read, k.written) for k in forward] == [(16 + 16000, 16000)]


def test_an_operation_in_place_reads_and_writes_its_tensor_once():
    forward, _ = kernels(lambda x: (x * 2).add_(1), (10,))
    assert [(k.op, k.read, k.written) for k in forward] == [('aten.mul', 40, 40),
                                                           ('aten.add_', 40, 40)]


def test_fills_read_nothing_and_lists_count_every_tensor():
    forward, _ = kernels(lambda x, y: torch.cat([x, y, x]) + torch.zeros(7, device=x.device),
                         (2,), (3,))
    # x is in the list twice, and is read from memory once.
    assert [(k.op, k.read, k.written) for k in forward] == [
        ('aten.cat', 20, 28), ('aten.zeros', 0, 28), ('aten.add', 56, 28)]


def test_linear_takes_its_bias_along_and_its_backward_is_two_products_and_a_sum():
    forward, backward = kernels(torch.nn.functional.linear, (5, 8), (4, 8), (4,))
    assert [(k.op, k.kind, tuple(k.gemm)) for k in forward] == [
        ('aten.addmm', 'gemm', (5, 4, 8, 1))]
    assert [(k.op, k.gemm and tuple(k.gemm)) for k in backward[1:]] == [
        ('aten.mm', (5, 8, 4, 1)), ('aten.mm', (4, 8, 5, 1)), ('aten.sum', None)]


def shapes(m, n, k):
    return kernels(lambda a, b: a @ b, (m, k), (k, n))


def test_a_product_of_few_tiles_is_made_in_parts_and_their_sum():
    """The classifier of ResNet-50 as traces of an A100 and a V100 show it."""
    (product, total), _ = shapes(32, 1000, 2048)  # 8 tiles
    assert (product.op, total.op) == ('aten.mm', 'cublas.sum_of_parts')
    size = 4 * 32 * 1000
    assert product.written == size
    assert total.read == total.written == 5 * size  # parts are written and read
    assert (product.operations, total.operations) == (1, 0)
    assert (product.multiprocessors, total.multiprocessors) == (None, 17)
    (_, total), _ = shapes(32, 2048, 1000)  # 16 tiles; 5 parts of 200
    assert total.read == 5 * 4 * 32 * 2048
    assert len(shapes(1000, 2048, 32)[0]) == 1  # nothing to cut
    assert len(shapes(32, 1000, 399)[0]) == 1  # no two parts of 200
    # 53 tiles and 54: an A100 has 108 multiprocessors.
    for tiles, fewest in ((53, 107), (54, 109), (151, 303)):
        (_, total), _ = shapes(128, tiles * 128, 2048)
        assert total.read == 2 * 4 * 128 * tiles * 128
        assert total.multiprocessors == fewest
    assert len(shapes(128, 152 * 128, 2048)[0]) == 1


def test_products_in_16_bits_and_in_tf32_are_whole():
    """As an H200 made all of lm350's (tests/data/h200/kernels.csv.gz)."""
    (product,), _ = kernels(lambda a, b: a @ b, torch.randn(32, 800).bfloat16(),
                            torch.randn(800, 64).bfloat16())
    assert (product.type, product.written) == ('bf16', 2 * 32 * 64)
    model = nn.Linear(800, 64, bias=False)
    ops = {tf32: [k.op for k in describe(model, torch.randn(32, 800), lambda m, x: m(x).sum(),
                                         tf32=tf32).forward] for tf32 in (None, 'all')}
    assert ops == {None: ['aten.mm', 'cublas.sum_of_parts', 'aten.sum'],
                   'all': ['aten.mm', 'aten.sum']}


def test_products_of_many_tiles_have_a_counter_on_large_gpus():
    # 8192 x 4096 is 1024 tiles of 128 x 256, 8192 x 2048 half of that.
    for n, expected in ((4096, ['cublas.memset', 'aten.mm']), (2048, ['aten.mm'])):
        forward, _ = kernels(lambda a, b: a @ b,
                             torch.empty(8192, 64, dtype=torch.bfloat16, device='meta'),
                             torch.empty(64, n, dtype=torch.bfloat16, device='meta'))
        assert [k.op for k in forward] == expected
    # In fp32 a gradient of a weight, which sums the batch, has one as well.
    _, backward = kernels(lambda x, w: nn.functional.linear(x, w).relu(),
                          torch.empty(8192, 512, device='meta'),
                          torch.empty(20000, 512, device='meta'))
    assert [(k.op, k.multiprocessors) for k in backward if 'cublas' in k.op] == [
        ('cublas.memset', None)]


def test_products_say_how_many_operands_lie_along_k():
    forward, backward = kernels(lambda *given: nn.functional.linear(*given).relu(),
                                (5, 8), (4, 8), (4,))
    assert [k.along_k for k in forward if k.gemm] == [2]
    # The input's gradient reads the weight across; the weight's both.
    assert [k.along_k for k in backward if k.gemm] == [1, 0]
    model = nn.Linear(8, 4)
    text = describe(model, torch.randn(5, 8, requires_grad=True),
                    lambda m, x: m(x).relu().sum()).text()
    assert 'gemm: {m: 5, n: 4, k: 8, batch: 1}' in text
    assert 'gemm: {m: 5, n: 8, k: 4, batch: 1, along_k: 1}' in text
    assert 'gemm: {m: 4, n: 8, k: 5, batch: 1, along_k: 0}' in text


@pytest.mark.parametrize('sizes', [(16, 16), (24, 16), (16, 40)])
def test_flops_of_attention_count_both_sizes_of_heads(sizes):
    size, value_size = sizes
    made = [torch.randn(2, 3, 8, each) for each in (size, size, value_size)]
    forward, backward = kernels(torch.nn.functional.scaled_dot_product_attention, *made)
    with FlopCounterMode(display=False) as counter:
        tensors = [each.to('meta').requires_grad_() for each in made]
        result = torch.ops.aten._scaled_dot_product_efficient_attention(
            *tensors, None, True)[0]
        said = counter.get_total_flops()
        result.sum().backward()
    assert sum(k.flops for k in forward) == said == 2 * 2 * 3 * 8 * 8 * (size + value_size)
    assert sum(k.flops for k in backward) == counter.get_total_flops() - said


@pytest.mark.parametrize('a, b', [((12, 8), (3, 8, 20)), ((16, 12), (12, 24)),
                                  ((3, 4, 8), (3, 8, 20)), ((3, 4, 8), (8, 12))])
def test_grouped_products_of_fp32_have_the_results_of_real_ones(a, b):
    a, b = torch.randn(a), torch.randn(b)
    offsets = None if a.dim() == b.dim() == 3 else torch.tensor([4, 8, 12], dtype=torch.int32)
    real = torch._grouped_mm(a, b, offs=offsets)
    args = [each if each is None else each.to('meta') for each in (a, b, offsets)]
    ours = results.result_of(torch.ops.aten._grouped_mm.default, args, {})
    assert (ours.shape, ours.stride(), ours.dtype) == (real.shape, real.stride(), real.dtype)


@pytest.mark.parametrize('dtype, launches', [(torch.bfloat16, 1), (torch.float32, 3)])
def test_grouped_products_are_one_kernel_in_bf16_and_one_for_each_group_elsewhere(dtype, launches):
    forward, _ = kernels(
        lambda a, b: torch._grouped_mm(a, b, offs=torch.zeros(3, dtype=torch.int32)).relu(),
        torch.randn(12, 8).to(dtype), torch.randn(3, 8, 16).to(dtype))
    product = next(kernel for kernel in forward if kernel.gemm)
    assert (product.launches, product.operations) == (launches, launches)
    assert tuple(product.gemm) == (4, 16, 8, 3)


def test_a_grouped_convolution_is_independent_products():
    forward, backward = kernels(
        lambda x, w, b: torch.nn.functional.conv2d(x, w, b, stride=2, padding=1, groups=2),
        (3, 8, 10, 10), (6, 4, 3, 3), (6,))
    # 3 x 5 x 5 places; 3 channels out and 4 x 9 in of each group.
    kernel, = (k for k in forward if k.kind == 'conv')
    assert tuple(kernel.gemm) == (75, 3, 36, 2)
    assert kernel.read == 4 * (3 * 8 * 100 + 6 * 36) and kernel.written == 4 * 75 * 6
    assert forward[-1].op == 'aten.add_'  # the bias
    convolutions = [k for k in backward if k.kind == 'conv']
    assert [tuple(k.gemm) for k in convolutions] == [(75, 4, 27, 2), (3, 36, 75, 2)]


def test_layer_norm_is_one_kernel_forward_and_two_backward():
    forward, backward = kernels(lambda x, w, b: torch.nn.functional.layer_norm(x, (8,), w, b),
                                (5, 8), (8,), (8,))
    assert [k.op for k in forward] == ['aten.native_layer_norm']
    norm = [k for k in backward if 'layer_norm' in k.op]
    assert [k.launches for k in norm] == [1, 1]
    assert norm[0].written == 160 and norm[1].written == 64


def test_few_indices_of_an_embedding_are_added_by_one_kernel_and_many_are_sorted():
    def backward(count):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Embedding(100, 4)

            def forward(self, indices):
                return self.table(indices).sum()
        made = describe(Model(), torch.zeros(count, dtype=torch.long))
        return [k.launches for k in made.backward if 'embedding' in k.op or 'sort' in k.op
                or 'fill_' in k.op]
    assert backward(3072) == [1, 1]
    assert sum(backward(3073)) > 10


def test_multi_tensor_launches_follow_the_limits_of_chunks_and_tensors():
    assert launches_of([1] * 110, 1) == 1 and launches_of([1] * 111, 1) == 2
    assert launches_of([65536 * 320], 1) == 1 and launches_of([65536 * 320 + 1], 1) == 2
    model = example('resnext', 'resnet50')[0]
    sizes = [p.numel() for p in model.parameters()]
    assert len(sizes) == 161
    assert launches_of(sizes, 1) == 3 and launches_of(sizes, 2) == 3  # as in a trace of an A100


def test_what_is_kept_is_what_autograd_saves_each_storage_once():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    workload = describe(model, torch.randn(2, 8), lambda m, x: m(x).sum())
    # The input (2 x 8) by the first layer, ReLU's result (2 x 16) by ReLU; parameters not.
    assert [layer.kept for layer in workload.layers] == [64, 128, 0]


# What operations run inside by torch's own profiler, and is no kernel or one of a CPU alone.
NO_KERNELS = {'empty', 'empty_like', 'empty_strided', 'resize_', 'as_strided', 'as_strided_',
              'view', 'expand', 'squeeze', 'squeeze_', 'unsqueeze', 'unsqueeze_', 'real', 'to',
              'fill_', 'scalar_tensor', 'result_type', 'softmax', '_to_copy', 'copy_'}


@pytest.mark.parametrize('name, call, hidden', [
    ('masked_fill', lambda x: x.masked_fill(x.detach() > 0, 0.0), ['clone', 'masked_fill_']),
    ('logsumexp', lambda x: x.logsumexp(-1),
     ['amax', 'abs', 'eq', 'masked_fill_', 'sub', 'exp_', 'sum', 'log_', 'add_']),
    ('_safe_softmax', lambda x: torch.ops.aten._safe_softmax(x, -1),
     ['_softmax', 'isneginf', 'all', 'where'])])
def test_operations_made_of_others_launch_as_many_kernels_as_those(name, call, hidden):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call(torch.randn(16, 64))
    names = [event.name[6:] for event in profile.events() if event.name.startswith('aten::')]
    inside, made = names[names.index(name) + 1:], []
    for each in inside:  # abs calls itself, and copies what clones and casts have made
        if each in hidden and each not in made:
            made.append(each)
    assert made == hidden
    assert set(inside) - set(hidden) <= {*NO_KERNELS, name}
    forward, _ = kernels(call, (16, 64))
    known = [kernel for kernel in forward if kernel.op != 'aten.gt']
    assert sum(kernel.launches for kernel in known) == len(hidden)
