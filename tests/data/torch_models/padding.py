"""GPT-2 with a padding token, as fine-tuning scripts set it, and an attention mask in the batch."""
import torch
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel


def ids(batch, length=64):
    return torch.randint(0, 50000, (batch, length))


def make(batch=4):
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, pad_token_id=50256))
    i = ids(batch)
    data = {"input_ids": i, "attention_mask": torch.ones_like(i), "labels": i}
    return model, data, None, torch.optim.AdamW(model.parameters())


def classify(batch=4):
    model = GPT2ForSequenceClassification(GPT2Config(n_layer=2, pad_token_id=50256))
    i = ids(batch)
    labels = torch.randint(0, 2, (batch,))
    data = {"input_ids": i, "attention_mask": torch.ones_like(i), "labels": labels}
    return model, data, None, torch.optim.AdamW(model.parameters())


def without(batch=4):
    model = GPT2LMHeadModel(GPT2Config(n_layer=2))
    i = ids(batch)
    data = {"input_ids": i, "attention_mask": torch.ones_like(i), "labels": i}
    return model, data, None, torch.optim.AdamW(model.parameters())
