"""Whole models: counts, limits of time and memory, the text that is written."""
import subprocess
import sys

import pytest
import yaml
from describe_models import EXAMPLES, SMALL, example, from_transformers, torch

from ddpsim.describe import describe
from ddpsim.describe.user_file import made_by

MEASURE = '''
import resource, sys, time
sys.path[:0] = {path!r}
import torch
from ddpsim.describe.step import describe
from ddpsim.describe.user_file import made_by
describe(*made_by({warm!r}))                       # imports, and libraries of rules
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
describe(*made_by({place!r}))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
'''


@pytest.fixture(scope='module')
def llama():
    return describe(*made_by(f'{EXAMPLES}/llama3.py:make_8b'))


def test_llama_3_8b_has_its_parameters_and_products(llama):
    elements = sum(torch.Size(p.shape).numel() for p in llama.parameters)
    assert elements == 8_030_261_248 and len(llama.parameters) == 291
    # Forward: 2 x 7 504 658 432 weights (without the embedding) x 8192 tokens; attention by 32
    # heads of 128, 4 x 32 x 8192 x 8192 x 128 in each of 32 layers, before a causal discount.
    products = sum(k.flops for k in llama.forward if k.kind == 'gemm')
    attention = sum(k.flops for k in llama.forward if k.kind == 'attention')
    assert products == 2 * 7_504_658_432 * 8192 == 122_956_323_749_888
    assert attention == 32 * 4 * 32 * 8192 * 8192 * 128 == 35_184_372_088_832
    assert sum(k.flops for k in llama.backward if k.kind == 'gemm') == 245_912_647_499_776
    assert sum(k.flops for k in llama.backward if k.kind == 'attention') == 87_960_930_222_080
    assert llama.attention == 'flash' and (llama.dtype, llama.sequence) == ('bf16', 8192)


def test_no_mask_is_made_for_a_causal_model_without_padding(llama):
    model, batch, loss, _ = from_transformers('llama')
    for workload in (llama, describe(model.to(torch.bfloat16), batch, loss)):
        assert any(k.attention for k in workload.forward)
        assert all(k.attention.causal for k in workload.forward if k.attention)
        made = {k.op.split('.')[1] for k in workload.forward}
        assert not made & {'tril', 'triu', 'where', 'masked_fill', 'masked_fill_', 'full'}


@pytest.mark.parametrize('function, seconds', [('make_8b', 30), ('make_70b', 60)])
def test_a_large_model_takes_seconds_and_no_memory(function, seconds):
    """A description of 8 billion parameters takes 1 s alone on two cores; loaded machines take
    longer. Memory does not depend on the machine: it stays under 100 MiB beside the imports."""
    script = MEASURE.format(path=sys.path, warm=f'{EXAMPLES}/llama3.py:small',
                            place=f'{EXAMPLES}/llama3.py:{function}')
    said = subprocess.run([sys.executable, '-W', 'ignore', '-c', script], check=True, text=True,
                          capture_output=True).stdout.split()
    assert float(said[0]) < seconds
    assert int(said[1]) < 100 * 1024  # KiB


@pytest.mark.parametrize('name', SMALL)
def test_parameters_are_those_of_named_parameters(name):
    model, batch, loss, optimizer = example(name)
    workload = describe(model, batch, loss, optimizer)
    trained = [(n, tuple(p.shape)) for n, p in model.named_parameters() if p.requires_grad]
    assert [(p.name, p.shape) for p in workload.parameters] == trained
    assert sum(b.tensors for b in workload.buffers) == len(list(model.buffers()))
    assert sum(b.bytes for b in workload.buffers) == sum(
        b.numel() * b.element_size() for b in model.buffers())
    assert workload.batch == batch[0].shape[0]


def test_the_model_is_not_changed():
    model, batch, loss, _ = example('resnext')
    before = {name: value.clone() for name, value in model.state_dict().items()}
    describe(model, batch, loss)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(p.grad is None and p.device.type == 'cpu' for p in model.parameters())
    assert not model._forward_hooks and not torch.nn.modules.module._global_forward_hooks


@pytest.mark.one_in(2)
@pytest.mark.parametrize('name', SMALL)
def test_a_file_has_what_a_model_in_memory_has(name):
    """Made on the meta device by us, or for real by the user: the same description."""
    made = describe(*made_by(f'{EXAMPLES}/{name}.py:small'), source='s').text()
    assert made == describe(*example(name), source='s').text()


def test_the_same_model_gives_the_same_bytes_whatever_the_seed_and_threads():
    texts = set()
    for seed, threads in ((1, 1), (2, 2)):
        torch.manual_seed(seed)
        kept = torch.get_num_threads()
        torch.set_num_threads(threads)
        texts.add(describe(*made_by(f'{EXAMPLES}/vit.py:small')).text())
        torch.set_num_threads(kept)
    assert len(texts) == 1


def test_the_text_says_the_whole_workload():
    workload = describe(*example('vit'))
    read = yaml.safe_load(workload.text())
    assert read['format'] == 'ddpsim.workload/2'
    assert (read['model'], read['batch'], read['dtype'], read['optimizer']) == (
        'VisionTransformer', 4, 'fp32', 'adamw')

    def kernels(entries):
        for entry in entries:
            index, count = entry if isinstance(entry, list) else (entry, 1)
            yield from [read['kernels'][index]] * count
    for layer, written in zip(workload.layers, read['layers']):
        assert written['name'] == layer.name and written['kept'] == layer.kept
        for phase in ('forward', 'backward'):
            ours = getattr(layer, phase)
            for kernel, entry in zip(ours, list(kernels(written[phase])), strict=True):
                assert (entry['op'], entry['kind'], entry['type']) == (kernel.op, kernel.kind,
                                                                      kernel.type)
                assert (entry['read'], entry['written'], entry['flops'], entry['launches']) == (
                    kernel.read, kernel.written, kernel.flops, kernel.launches)
                if kernel.gemm:
                    shape = entry['gemm']
                    assert entry['flops'] == 2 * shape['m'] * shape['n'] * shape['k'] * shape[
                        'batch']
    assert read['arrival'] == workload.arrival
    for parameter, entry in zip(workload.parameters, read['parameters'], strict=True):
        assert (entry['name'], entry['shape']) == (parameter.name, list(parameter.shape))
        assert entry['after'] < len(workload.layers[entry['layer']].backward)


def test_layers_are_blocks():
    names = {name: [layer.name for layer in describe(*example(name)[:3]).layers]
             for name in ('vit', 'resnext', 'unet', 't5')}
    assert names['vit'] == ['patches', 'blocks.0', 'blocks.1', 'norm', 'head']
    assert names['resnext'] == ['conv1', 'bn1', 'relu', 'maxpool', 'layer1.0', 'layer2.0',
                                'layer2.1', 'avgpool', 'fc']
    assert names['unet'] == ['down.0', 'pool', 'down.1', 'pool (2)', 'middle', 'up.0', 'up.1',
                             'head']
    assert [n for n in names['t5'] if 'blocks' in n] == [
        'encoder.blocks.0', 'encoder.blocks.1', 'decoder.blocks.0', 'decoder.blocks.1']


def test_a_gpt_2_keeps_its_tie():
    workload = describe(*made_by(f'{EXAMPLES}/from_transformers.py:gpt2'))
    assert len(workload.parameters) == 148
