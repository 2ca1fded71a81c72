"""Models of the `transformers` library, built from a configuration: no weights are loaded.

    ddpsim describe scenarios/examples/models/from_transformers.py:gpt2 -o gpt2.yaml

Functions: gpt2, llama, bert, vit, t5, mixtral, whisper. A batch is what the model's forward()
takes; with "labels" in it the model computes its own loss.
"""
import torch
import transformers


def tokens(vocabulary, batch, length):
    return torch.randint(vocabulary, (batch, length))


def language_model(kind, config, batch, length, dtype=torch.float32):
    model = kind.from_config(config, dtype=dtype)
    data = {'input_ids': tokens(config.vocab_size, batch, length),
            'labels': tokens(config.vocab_size, batch, length)}
    return model, data, None, torch.optim.AdamW(model.parameters())


def gpt2(batch=8, length=1024):
    return language_model(transformers.AutoModelForCausalLM, transformers.GPT2Config(), batch,
                          length)


def llama(batch=1, length=4096):
    config = transformers.LlamaConfig()  # Llama 2, 7 billion parameters
    return language_model(transformers.AutoModelForCausalLM, config, batch, length, torch.bfloat16)


def mixtral(batch=1, length=4096):
    return language_model(transformers.AutoModelForCausalLM, transformers.MixtralConfig(), batch,
                          length, torch.bfloat16)


def bert(batch=16, length=512):
    return language_model(transformers.AutoModelForMaskedLM, transformers.BertConfig(), batch,
                          length)


def t5(batch=8, length=512):
    config = transformers.T5Config(decoder_start_token_id=0)
    return language_model(transformers.AutoModelForSeq2SeqLM, config, batch, length)


def vit(batch=32):
    config = transformers.ViTConfig(num_labels=1000)
    model = transformers.AutoModelForImageClassification.from_config(config)
    data = {'pixel_values': torch.randn(batch, 3, 224, 224),
            'labels': torch.randint(1000, (batch,))}
    return model, data, None, torch.optim.AdamW(model.parameters())


def whisper(batch=8):
    config = transformers.WhisperConfig()
    model = transformers.AutoModelForSpeechSeq2Seq.from_config(config)
    data = {'input_features': torch.randn(batch, config.num_mel_bins, 3000),
            'labels': tokens(config.vocab_size, batch, 128)}
    return model, data, None, torch.optim.AdamW(model.parameters())
