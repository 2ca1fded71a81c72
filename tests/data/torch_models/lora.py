"""LoRA rank 16 on q and v of a frozen 7-billion-parameter Llama in bf16 (shapes of Llama 2 7B)."""
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class LoRA(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, rank, bias=False, dtype=torch.bfloat16)
        self.b = nn.Linear(rank, base.out_features, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.base(x) + 2.0 * self.b(self.a(x))


def make(batch=1):
    config = LlamaConfig(num_hidden_layers=32, hidden_size=4096, intermediate_size=11008,
                         num_attention_heads=32, vocab_size=32000)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.requires_grad_(False)
    for layer in model.model.layers:
        layer.self_attn.q_proj = LoRA(layer.self_attn.q_proj)
        layer.self_attn.v_proj = LoRA(layer.self_attn.v_proj)
    ids = torch.randint(0, 32000, (batch, 512))
    trained = [p for p in model.parameters() if p.requires_grad]
    return model, {"input_ids": ids, "labels": ids}, None, torch.optim.AdamW(trained)
