"""Models of the catalogue against the descriptions of the same models in PyTorch: both are priced
by the laws of kernels by class, so that a step takes as long."""
import json
import subprocess

import pytest
from describe_models import EXAMPLES, torch

from ddpsim.describe import describe
from ddpsim.describe.user_file import made_by

BATCH, LENGTH = 4, 256
BATCHES = {'dlrm': 2048}


def course():
    """CS336's small model (scenarios/catalogue/models/cs336-small.yaml)."""
    import course_model
    model = course_model.LanguageModel(10000, LENGTH, width=768, layers=12, heads=12, inner=3072)
    tokens = torch.zeros(BATCH, LENGTH, dtype=torch.long, device='meta')
    return model, (tokens, tokens), course_model.loss


def llama():
    """Llama 2 7B."""
    transformers = pytest.importorskip('transformers')
    config = transformers.LlamaConfig(use_cache=False)
    return language_model(transformers.LlamaForCausalLM(config), config)


def gpt2():
    transformers = pytest.importorskip('transformers')
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
    return language_model(transformers.GPT2LMHeadModel(config), config)


def language_model(model, config):
    tokens = torch.zeros(BATCH, LENGTH, dtype=torch.long, device='meta')
    return model, {'input_ids': tokens, 'labels': tokens}, None


def bert():
    transformers = pytest.importorskip('transformers')
    config = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    tokens = torch.zeros(BATCH, LENGTH, dtype=torch.long, device='meta')
    return (transformers.BertModel(config), {'input_ids': tokens},
            lambda model, batch: model(**batch).pooler_output.sum())


def resnet50():
    model, (pictures, classes), loss, _ = made_by(f'{EXAMPLES}/resnext.py:resnet50')
    return model, (pictures[:BATCH], classes[:BATCH]), loss


def whisper():
    transformers = pytest.importorskip('transformers')
    config = transformers.WhisperConfig(
        vocab_size=51865, d_model=384, encoder_layers=4, decoder_layers=4,
        encoder_attention_heads=6, decoder_attention_heads=6, encoder_ffn_dim=1536,
        decoder_ffn_dim=1536, dropout=0, use_cache=False)
    return (transformers.WhisperForConditionalGeneration(config),
            {'input_features': torch.zeros(BATCH, 80, 3000, device='meta'),
             'labels': torch.zeros(BATCH, LENGTH, dtype=torch.long, device='meta')}, None)


def dlrm():
    model, batch, loss, _ = made_by(f'{EXAMPLES}/dlrm.py')
    return model, batch, loss


MODELS = {'cs336-small': course, 'llama2-7b': llama, 'gpt2': gpt2, 'bert-base': bert,
          'resnet50': resnet50, 'whisper-tiny': whisper, 'dlrm': dlrm}
# How a description and a scenario name a pair of formats: (what describe() takes, the model's own
# format, `workload` of the catalogue, `compute` of the description).
FORMATS = {'fp32': ({}, None, {'dtype': 'fp32'}, 'fp32'),
           'tf32': ({'tf32': 'all'}, None, {'dtype': 'fp32', 'compute': 'tf32'}, None),
           'autocast': ({'autocast': torch.bfloat16}, None, {'dtype': 'fp32', 'compute': 'bf16'},
                        None),
           'bf16': ({}, torch.bfloat16, {'dtype': 'bf16'}, None)}
CASES = [(name, how, device) for name in MODELS for how, device in
         (('fp32', 'v100'), ('tf32', 'a100-80'), ('autocast', 'h200'), ('bf16', 'a100-80'))
         if (name, how) != ('resnet50', 'bf16')]


def in_format(batch, own_format):
    """The batch with the model's format in place of fp32."""
    def one(tensor):
        return tensor.to(own_format) if tensor.is_floating_point() else tensor
    if isinstance(batch, dict):
        return {key: one(value) for key, value in batch.items()}
    return tuple(one(value) for value in batch)


def times(program, folder, workload, device, *settings):
    """Milliseconds of a step without communication, and of its passes."""
    file = folder / 'scenario.yaml'
    file.write_text(json.dumps({'workload': workload, 'cluster': {'device': device},
                                'compare': ['none']}))
    words = [word for setting in settings for word in ('--set', setting)]
    done = subprocess.run([program, 'run', file, *words, '--json', '-', '-q'], check=True,
                          capture_output=True, text=True)
    result = json.loads(done.stdout)['results'][0]
    return [result[key] for key in ('step_ms', 'forward_ms', 'backward_ms')]


@pytest.mark.parametrize('name', ['whisper-tiny', 'dlrm'])
def test_hooks_fire_in_the_order_of_the_description(program, tmp_path, name):
    with torch.device('meta'):
        model, batch, loss = MODELS[name]()
    described = describe(model, batch, loss, torch.optim.AdamW)
    file = tmp_path / 'scenario.yaml'
    ours = {'model': name, 'batch': BATCHES.get(name, BATCH), 'sequence': LENGTH}
    file.write_text(json.dumps({'workload': ours,
                                'cluster': {'device': 'h200'}, 'compare': ['bucketed']}))
    done = subprocess.run([program, 'schedule', file, '--json', '-', '-q'], check=True,
                          capture_output=True, text=True)
    hooks = [hook['parameter'] for hook in json.loads(done.stdout)['hooks']]
    theirs = [described.parameters[i].name for i in described.arrival]
    assert sorted(hooks) == sorted(theirs)

    # The two parameters of a norm are complete after one kernel, in either order.
    def modules(names):
        return [name.rpartition('.')[0] for name in names]
    assert modules(hooks) == modules(theirs)


@pytest.mark.one_in(3)
@pytest.mark.parametrize('name, how, device', CASES)
def test_a_step_takes_as_long_as_its_description_says(program, tmp_path, name, how, device):
    taken, own_format, workload, compute = FORMATS[how]
    with torch.device('meta'):
        model, batch, loss = MODELS[name]()
    if own_format:
        model = model.to(own_format)
        batch = in_format(batch, own_format)
    described = tmp_path / 'described.yaml'
    described.write_text(describe(model, batch, loss, torch.optim.AdamW, **taken).text())
    ours = {'model': name, 'batch': BATCHES.get(name, BATCH), 'sequence': LENGTH, **workload}
    theirs = {'model': str(described), **({'compute': compute} if compute else {})}
    # Within 2 % on the device alone, and 4 % with its host: a description counts one host for all
    # devices, whose convolutions have different numbers of launches.
    for settings, within in ((('cluster.launch=1 ns',), 0.02), ((), 0.04)):
        own, other = (times(program, tmp_path, each, device, *settings) for each in (ours, theirs))
        assert own == pytest.approx(other, rel=within), settings
