"""Models that were once described wrongly without a word, or blamed for what was not theirs."""
import gc
import json
import subprocess
import weakref

import pytest
from describe_models import ROOT, torch

import ddpsim
from ddpsim.describe import DescribeError, describe
from ddpsim.describe.user_file import made_by

MODELS = ROOT / 'tests' / 'data' / 'torch_models'


def described(place, **settings):
    model, batch, loss, optimizer = made_by(f'{MODELS}/{place}')
    return describe(model, batch, loss, optimizer, **settings)


def bytes_of(parameter):
    size = {'fp32': 4, 'fp64': 8, 'complex64': 8, 'complex128': 16}[parameter.dtype]
    for extent in parameter.shape:
        size *= extent
    return size


# --- number formats ---

def test_complex_parameters_have_eight_bytes():
    workload = described('fourier.py:make')
    # 8 of 147,456 complex numbers and 8,705 of fp32.
    assert sum(map(bytes_of, workload.parameters)) == 8 * 147456 * 8 + 8705 * 4
    assert [p.dtype for p in workload.parameters].count('complex64') == 8
    # A product of complex numbers is four of real ones: eight einsums forward, each with two
    # gradients.
    assert any(note.startswith('24 products of complex64 numbers priced as 4 real products')
               for note in workload.notes)
    products = [k for k in workload.forward if k.op == 'aten.bmm' and k.gemm]
    assert all(kernel.gemm.batch % 4 == 0 and not kernel.tensor_cores for kernel in products)


@pytest.mark.parametrize('dtype, name', [(torch.float64, 'fp64'), (torch.complex128, 'complex128')])
def test_wide_formats_are_told_by_name(dtype, name):
    model = torch.nn.Linear(4, 3, dtype=dtype)
    workload = describe(model, torch.randn(2, 4, dtype=dtype),
                        lambda model, batch: model(batch).abs().sum())
    assert {p.dtype for p in workload.parameters} == {name} and workload.dtype == name
    assert any('numbers priced as' in note and '2 to 64 times as long' in note
               for note in workload.notes)


def test_a_format_without_a_name_is_refused():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.zeros(4, dtype=torch.complex32))

        def forward(self, x):
            return (x * self.scale.to(torch.complex64)).abs().sum()
    with pytest.raises(DescribeError, match='complex32 are not described; known: float32, bfloat'):
        describe(Model(), torch.randn(2, 4))


def test_frozen_parameters_of_eight_bits_are_counted_by_their_size():
    model = torch.nn.Linear(4, 3)
    model.codes = torch.nn.Parameter(torch.zeros(1000, dtype=torch.uint8), requires_grad=False)
    model.table = torch.zeros(10, dtype=torch.float8_e4m3fn)
    workload = describe(model, torch.randn(2, 4), lambda model, batch: model(batch).sum())
    assert sorted((f.tensors, f.bytes) for f in workload.frozen) == [(1, 10), (1, 1000)]


# --- memory ---

def test_what_is_not_trained_is_written_down():
    workload = described('frozen.py:make')
    # 95 layers of a weight and a bias.
    assert [(f.tensors, f.bytes) for f in workload.frozen] == [(190, 95 * (2048 * 2048 + 2048) * 4)]
    assert workload.inputs == 8 * 2048 * 4 + 8 * 8
    assert 'frozen: [{tensors: 190, bytes: 1594613760}]\ninputs: 65600\n' in workload.text()


def test_adapters_of_a_frozen_model_of_seven_billion():
    pytest.importorskip('transformers')
    workload = described('lora.py:make')
    assert [f.bytes for f in workload.frozen if f.bytes > 1 << 30] == [6738415616 * 2]


def test_layers_hold_at_most_what_a_step_holds():
    # Three results of 4 x 8 numbers, rounded up to 512 bytes as the allocator gives them, and a
    # loss: what is alive when the last kernel of forward runs.
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Tanh())
    workload = describe(model, torch.randn(4, 8), lambda model, batch: model(batch).sum())
    # The first result is let go once Tanh has kept its own.
    assert max(layer.forward_peak for layer in workload.layers) == 3 * 512


def test_a_capture_holds_no_tensor_of_the_step():
    kept = []

    class Model(torch.nn.Linear):
        def forward(self, x):
            result = super().forward(x)
            kept.append(weakref.ref(result.untyped_storage()))
            return result.detach().clone() * super().forward(x)
    describe(Model(4, 4), torch.randn(2, 4), lambda model, batch: model(batch).sum())
    gc.collect()
    assert kept and kept[0]() is None


# --- collectives of a model's own ---

def test_synchronised_batch_norms_send_what_torch_sends():
    workload = described('synchronised.py:make')
    sent = [(each.op, each.phase, each.bytes) for each in workload.collectives]
    # torch/nn/modules/_functions.py: mean, deviation and count of 64 channels; two sums of them.
    assert sent == (20 * [('all_gather', 'forward', 4 * (2 * 64 + 1))]
                    + 20 * [('all_reduce', 'backward', 4 * 2 * 64)])
    assert workload.collectives[0].module == '1.1'
    assert any('sends 20 all_gather in forward of 516 bytes a rank, 20 all_reduce in backward of '
               '512 bytes a rank (as one of 2 ranks): what follows waits for each' in note
               for note in workload.notes)
    assert ('  - {op: all_gather, pass: forward, module: "1.1", bytes: 516, layer: 1, after: '
            in workload.text())


def behind(workload, sent):
    """The operation that a collective waits for."""
    layer = workload.layers[sent.layer]
    return (layer.forward if sent.phase == 'forward' else layer.backward)[sent.after].op


def test_a_collective_stands_behind_the_kernel_that_makes_what_it_sends():
    workload = described('synchronised.py:make')
    assert {behind(workload, each) for each in workload.collectives} == {'aten.cat'}
    assert [each.layer for each in workload.collectives] == [*range(1, 21), *range(20, 0, -1)]


def step_ms(program, folder, text, ranks, *settings):
    (folder / 'model.yaml').write_text(text)
    (folder / 'scenario.yaml').write_text(
        'workload: {model: model.yaml}\n'
        f'cluster: {{device: h100-sxm, ranks_per_node: {ranks}, intra_node: nvlink4}}\n'
        'compare: [none, bucketed]\n')
    words = [program, 'run', folder / 'scenario.yaml', '--json', '-', '-q', *settings]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return {row['strategy']: row for row in json.loads(done.stdout)['results']}


def test_a_step_is_longer_by_what_its_model_sends(program, tmp_path):
    text = described('synchronised.py:make').text()
    begin, end = text.index('collectives:'), text.index('end: ')
    # Changed on purpose: without the seal of the last line.
    text = text[:end] + text[end:].split('#')[0].rstrip() + '\n'
    silent = text[:begin] + text[end:]
    twice = text[:begin] + text[begin:].replace(', layer: ', ', count: 2, layer: ')
    # With a host that never bounds, a step without averaging is longer by the collectives alone.
    free = ('--set', 'cluster.launch=0 us', '--set', 'cluster.skew=0')
    without, own, more = (step_ms(program, tmp_path, each, 2, *free)
                          for each in (silent, text, twice))
    added = own['none']['step_ms'] - without['none']['step_ms']
    assert added > 40 * 0.005
    assert more['none']['step_ms'] - without['none']['step_ms'] == pytest.approx(2 * added)
    # They are part of the passes, and no communication of gradients.
    assert own['none']['collectives'] == 0
    assert own['bucketed']['collectives'] == without['bucketed']['collectives']
    assert own['bucketed']['step_ms'] > without['bucketed']['step_ms'] + added / 2
    # One rank alone sends nothing.
    alone = [step_ms(program, tmp_path, each, 1)['none']['step_ms'] for each in (text, silent)]
    assert alone[0] == alone[1]


def test_plain_batch_norms_send_nothing():
    workload = described('synchronised.py:plain')
    assert not workload.collectives and 'collectives' not in workload.text()
    assert not described('synchronised.py:make', ranks=1).collectives
    assert not torch.distributed.is_initialized()


def gathered_loss(gather):
    def loss(model, batch):
        features = model(batch)
        logits = features @ gather(features).T
        return torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)))
    return loss


@pytest.mark.parametrize('ranks', [2, 4])
def test_a_loss_that_gathers_features_is_that_of_all_ranks(ranks):
    def gather(features):
        distributed = torch.distributed
        if not distributed.is_initialized():
            return features
        others = [torch.empty_like(features) for _ in range(distributed.get_world_size())]
        distributed.all_gather(others, features.detach())
        return torch.cat([features, *others[1:]])
    workload = describe(torch.nn.Linear(8, 16), torch.randn(5, 8), gathered_loss(gather),
                        ranks=ranks)
    assert [(c.op, c.phase, c.bytes) for c in workload.collectives] == [
        ('all_gather', 'forward', 5 * 16 * 4)]
    logits = [k.gemm for k in workload.forward if k.gemm][-1]
    assert (logits.m, logits.n, logits.k) == (5, 5 * ranks, 16)


@pytest.mark.filterwarnings('ignore::FutureWarning')
def test_collectives_that_autograd_knows_are_seen_both_ways():
    from torch.distributed import _functional_collectives as collectives

    def gather(features):
        return collectives.all_gather_tensor_autograd(features, 0, torch.distributed.group.WORLD)
    workload = describe(torch.nn.Linear(8, 16), torch.randn(5, 8), gathered_loss(gather))
    assert [(c.op, c.phase, c.bytes) for c in workload.collectives] == [
        ('all_gather', 'forward', 5 * 16 * 4), ('reduce_scatter', 'backward', 2 * 5 * 16 * 4)]


SENT_BY_HOOKS = """
import torch


def make():
    model = torch.nn.Linear(8, 16)

    def send(parameter):
        torch.distributed.all_reduce(parameter.grad, async_op=True)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(send)
    return (model, torch.randn(4, 8), lambda model, batch: model(batch).sum(),
            torch.optim.SGD(model.parameters(), lr=0.1))
"""


@pytest.mark.skipif(not hasattr(torch.Tensor, 'register_post_accumulate_grad_hook'),
                    reason='before torch 2.1')
def test_a_collective_outside_all_modules_is_read_as_the_models(program, tmp_path):
    (tmp_path / 'hooks.py').write_text(SENT_BY_HOOKS)
    workload = describe(*made_by(f'{tmp_path}/hooks.py:make'))
    # The bias of 16 and the weight of 8 x 16 elements.
    assert {(each.op, each.phase, each.module, each.bytes) for each in workload.collectives} == {
        ('all_reduce', 'backward', '', 4 * 16), ('all_reduce', 'backward', '', 4 * 8 * 16)}
    text = workload.text()
    assert '  - {op: all_reduce, pass: backward, bytes: 64, layer: 0, after: ' in text
    assert step_ms(program, tmp_path, text, 2)['none']['step_ms'] > 0


# --- sparse gradients ---

@pytest.mark.parametrize('function', ['make', 'plain'])
def test_sparse_gradients_of_bags_have_rows(function):
    workload = described(f'bag.py:{function}')
    # 64 samples of four indices.
    assert [(p.name, p.rows) for p in workload.parameters if p.sparse] == [('emb.weight', 64 * 4)]


def test_a_recommender_has_a_sparse_gradient_for_each_table():
    workload = described('recommender.py:make')
    assert [(p.name, p.rows) for p in workload.parameters if p.sparse] == [
        (f'emb.{i}.weight', 2048 * 4) for i in range(8)]


# --- masks ---

@pytest.mark.parametrize('function, more', [('make', 0), ('classify', 1), ('without', 0)])
def test_a_model_that_looks_for_padding_is_described(function, more):
    pytest.importorskip('transformers')
    workload = described(f'padding.py:{function}')
    assert len(workload.parameters) == 28 + more
    assert any('attention_mask taken as all ones' in note for note in workload.notes)


TEXT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=64, pad_token_id=0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize('family, more', [
    ('BigBird', {'attention_type': 'original_full'}), ('RoFormer', {}), ('ConvBert', {}),
    ('SqueezeBert', {'embedding_size': 32}), ('Electra', {'embedding_size': 16}),
    ('DebertaV2', {'relative_attention': True, 'pos_att_type': ['p2c', 'c2p'],
                   'position_buckets': 8})])
def test_models_that_make_masks_of_their_own_are_described(family, more):
    transformers = pytest.importorskip('transformers')
    config = getattr(transformers, f'{family}Config')(**TEXT, **more)
    model = getattr(transformers, f'{family}ForMaskedLM')(config)
    ids = torch.randint(3, 64, (2, 16))
    workload = describe(model, {'input_ids': ids, 'labels': ids,
                                'attention_mask': torch.ones_like(ids)})
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(workload.parameters) == len(trained)


def test_a_model_that_compares_the_name_of_its_attention_is_described():
    transformers = pytest.importorskip('transformers')
    model = transformers.FalconForCausalLM(transformers.FalconConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, pad_token_id=0))
    ids = torch.randint(3, 64, (2, 16))
    workload = describe(model, {'input_ids': ids, 'labels': ids,
                                'attention_mask': torch.ones_like(ids)})
    assert workload.attention == 'efficient'


def test_a_layer_that_is_dropped_by_a_drawn_number_is_described():
    class Model(torch.nn.Linear):
        def forward(self, x):
            return x if torch.rand([]) < 0 else super().forward(x)
    workload = describe(Model(4, 4), torch.randn(2, 4), lambda model, batch: model(batch).sum())
    assert any(kernel.op == 'aten.addmm' for kernel in workload.forward)


# --- whose fault ---

def test_a_mistake_of_ours_is_not_the_models(monkeypatch):
    from ddpsim.describe import capture
    from ddpsim.describe.errors import OwnFault

    def broken(call):
        return call.nothing_of_that_name
    monkeypatch.setattr(capture, 'kernels_of', broken)
    with pytest.raises(OwnFault, match='ddpsim itself fails at .*, not the model .*AttributeError'):
        describe(torch.nn.Linear(4, 4), torch.randn(2, 4), lambda model, batch: model(batch).sum())


def test_a_mistake_of_the_models_is_the_models():
    class Model(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).no_such_method()
    with pytest.raises(DescribeError, match='AttributeError') as problem:
        describe(Model(4, 4), torch.randn(2, 4), lambda model, batch: model(batch).sum())
    assert 'ddpsim itself' not in str(problem.value)


# --- steps that somebody published ---

@pytest.mark.parametrize('settings, compute, published', [
    ({}, 'fp32', 1000), ({'tf32': 'all'}, 'tf32', 333), ({'autocast': 'bf16'}, None, 300)])
def test_an_eager_gpt2_takes_what_a_course_says_it_takes(tmp_path, settings, compute, published):
    """Milliseconds of a step of 16 x 1024 tokens on one A100, from the syllabus of "Let's reproduce
    GPT-2 (124M)" (classcentral.com)."""
    file = tmp_path / 'gpt2.yaml'
    described('eager_gpt2.py:make', **settings).save(str(file))
    step = ddpsim.run(file, set={
        'cluster.device': 'a100-80', 'cluster.nodes': 1, 'cluster.ranks_per_node': 1,
        'compare': ['none'], **({'workload.compute': compute} if compute else {})})
    assert step.record['results'][0]['step_ms'] == pytest.approx(published, rel=0.2)


def described_layer(**settings):
    return describe(torch.nn.Linear(4, 4), torch.zeros(2, 4),
                    lambda model, batch: model(batch).sum(), **settings)


@pytest.mark.parametrize('optimizer', [None, 'sgd'])
def test_a_step_that_updates_nothing_is_noted(optimizer):
    notes = described_layer(optimizer=optimizer).notes
    assert any('updates nothing' in note for note in notes) == (optimizer is None)


@pytest.mark.parametrize('device', ['cpu', 'cuda'])
def test_a_description_for_a_cpu_is_noted_on_a_gpu(program, tmp_path, device):
    file = tmp_path / 'model.yaml'
    described_layer(optimizer='sgd', device=device).save(file)
    done = subprocess.run([program, 'run', file, '--device', 'h100-sxm', '--ranks', '2', '--link',
                           'nvlink4'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ('was described as PyTorch runs on a CPU' in done.stderr) == (device == 'cpu')
