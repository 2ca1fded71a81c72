"""What the tests of ddpsim.describe share: models of several kinds, small enough to run."""
import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if importlib.util.find_spec('ddpsim') is None:  # not installed: the sources
    sys.path.insert(0, str(ROOT / 'python'))
torch = pytest.importorskip('torch', minversion='2.6')

EXAMPLES = ROOT / 'scenarios' / 'examples' / 'models'
SMALL = ['vit', 'unet', 'mixture', 't5', 'llama3', 'resnext', 'gru', 'sparse_embedding',
         'unused_parameters', 'dlrm']


def example(name, function='small'):
    """(model, batch, loss, optimizer) of an example, for real, on the CPU."""
    specification = importlib.util.spec_from_file_location(name, EXAMPLES / f'{name}.py')
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    torch.manual_seed(1)
    return getattr(module, function)()


def from_transformers(name):
    """A small model of the transformers library, and a batch with labels."""
    transformers = pytest.importorskip('transformers')
    t = transformers
    text = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=48, max_position_embeddings=32)
    made = {
        'gpt2': lambda: t.GPT2LMHeadModel(t.GPT2Config(
            vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=32)),
        'llama': lambda: t.LlamaForCausalLM(t.LlamaConfig(**text, num_key_value_heads=2)),
        'bert': lambda: t.BertForMaskedLM(t.BertConfig(**text)),
        'vit': lambda: t.ViTForImageClassification(t.ViTConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            image_size=32, patch_size=8, num_labels=10)),
        't5': lambda: t.T5ForConditionalGeneration(t.T5Config(
            vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4,
            decoder_start_token_id=0)),
        'mixtral': lambda: t.MixtralForCausalLM(t.MixtralConfig(
            **text, num_key_value_heads=2, num_local_experts=4)).to(torch.bfloat16),
        'whisper': lambda: t.WhisperForConditionalGeneration(t.WhisperConfig(
            vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48,
            decoder_ffn_dim=48, max_source_positions=20, max_target_positions=32,
            num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=1)),
    }
    torch.manual_seed(1)
    model = made[name]()
    batch = {'input_ids': torch.randint(3, 64, (2, 12)), 'labels': torch.randint(3, 64, (2, 12))}
    if name == 'vit':
        batch = {'pixel_values': torch.randn(2, 3, 32, 32), 'labels': torch.randint(10, (2,))}
    if name == 'whisper':
        batch = {'input_features': torch.randn(2, 8, 40), 'labels': torch.randint(3, 64, (2, 12))}
    return model.train(), batch, None, None


def value_of(model, batch, loss):
    """The loss of a real step."""
    from ddpsim.describe.step import loss_function
    return loss_function(loss, [])(model, batch)


def real_order(model, batch, loss):
    """Names of parameters in the order their hooks fire in a real step on the CPU."""
    order = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name))
    value_of(model, batch, loss).backward()
    return order


def described_order(workload):
    return [workload.parameters[i].name for i in workload.arrival]
