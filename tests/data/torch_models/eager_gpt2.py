"""GPT-2 of 124 M parameters as courses write it: attention from single operations, biases, a head
that shares the table of tokens. A vocabulary of 50257, which no tensor core's tile divides."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer('seen', torch.ones(length, length).tril()[None, None])

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            each.view(batch, length, self.heads, -1).transpose(1, 2)
            for each in self.c_attn(x).split(width, dim=2))
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(self.seen[:, :, :length, :length] == 0, float('-inf'))
        mixed = scores.softmax(-1) @ value
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, length)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate='tanh'))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, width=768, heads=12, layers=12, length=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads, length) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def make(batch=16, vocabulary=50257):
    model = Gpt2(vocabulary)
    tokens = torch.randint(0, 50257, (2, batch, 1024))
    loss = lambda model, pair: F.cross_entropy(model(pair[0]).flatten(0, 1), pair[1].flatten())
    return model, tuple(tokens), loss, torch.optim.AdamW(model.parameters(), lr=3e-4)
