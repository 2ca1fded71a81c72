"""Llama 3, of 8 or 70 billion parameters: grouped heads, rotary positions, SwiGLU, RMS norms.

    ddpsim describe scenarios/examples/models/llama3.py:make_8b -o llama3-8b.yaml
    ddpsim describe scenarios/examples/models/llama3.py:make_70b -o llama3-70b.yaml
"""
import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.size = width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (project(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
                   for project in (self.q_proj, self.k_proj, self.v_proj))
        x = scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v,
                                         is_causal=True, enable_gqa=True)
        return self.o_proj(x.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, width, hidden, heads, groups):
        super().__init__()
        self.input_norm, self.attention = nn.RMSNorm(width), Attention(width, heads, groups)
        self.mlp_norm, self.mlp = nn.RMSNorm(width), MLP(width, hidden)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.input_norm(x), cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self, vocabulary=128256, width=4096, hidden=14336, depth=32, heads=32, groups=8):
        super().__init__()
        self.size = width // heads
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, hidden, heads, groups) for _ in range(depth))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        rate = 500000.0 ** -(torch.arange(0, self.size, 2, device=x.device) / self.size)
        angle = torch.outer(torch.arange(tokens.shape[1], device=x.device), rate).repeat(1, 2)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def loss(model, batch):
    tokens, targets = batch
    return cross_entropy(model(tokens).flatten(0, 1).float(), targets.flatten())


def made(model, batch, length, vocabulary):
    data = torch.randint(vocabulary, (batch, length)), torch.randint(vocabulary, (batch, length))
    return model, data, loss, torch.optim.AdamW(model.parameters())


def make_8b(batch=1, length=8192):
    return made(Llama().bfloat16(), batch, length, 128256)


def make_70b(batch=1, length=8192):
    model = Llama(width=8192, hidden=28672, depth=80, heads=64).bfloat16()
    return made(model, batch, length, 128256)


def small(batch=2, length=16):
    return made(Llama(vocabulary=100, width=64, hidden=128, depth=2, heads=4, groups=2), batch,
                length, 100)
