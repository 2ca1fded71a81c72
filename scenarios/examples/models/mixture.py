"""A decoder with a mixture of experts: every token goes to its best expert, up to a capacity.

Tokens are sent to experts by one-hot products of fixed shape (as in GShard), so that no shape
depends on values.

    ddpsim describe scenarios/examples/models/mixture.py -o mixture.yaml
"""
import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, one_hot, scaled_dot_product_attention


class Experts(nn.Module):
    def __init__(self, width, hidden, experts, spare=1.25):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.empty(experts, width, hidden).normal_(std=0.02))
        self.down = nn.Parameter(torch.empty(experts, hidden, width).normal_(std=0.02))
        self.experts, self.spare = experts, spare

    def forward(self, x):
        samples, length, width = x.shape
        tokens = x.reshape(samples * length, width)
        capacity = int(self.spare * len(tokens) / self.experts)
        weight, expert = self.router(tokens).softmax(-1).max(-1)
        chosen = one_hot(expert, self.experts)
        place = (chosen.cumsum(0) * chosen).sum(-1) - 1    # in its expert's queue
        fits = (place < capacity).to(x.dtype)
        queue = one_hot(place.clamp(max=capacity - 1), capacity).to(x.dtype)
        send = torch.einsum('te,tc->ect', chosen.to(x.dtype), queue * fits[:, None])
        hidden = gelu(torch.bmm(send @ tokens, self.up))
        back = torch.einsum('ect,ecw->tw', send, torch.bmm(hidden, self.down))
        return (back * weight[:, None]).view(samples, length, width)


class Block(nn.Module):
    def __init__(self, width, heads, experts):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.experts = heads, Experts(width, 4 * width, experts)

    def forward(self, x):
        shape = *x.shape[:2], self.heads, -1
        q, k, v = (part.view(shape).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.experts(self.norm2(x))


class Mixture(nn.Module):
    def __init__(self, vocabulary=32000, width=512, depth=8, heads=8, experts=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, experts) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model, batch):
    tokens, targets = batch
    return cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def make(batch=8, length=512):
    model = Mixture()
    data = torch.randint(32000, (batch, length)), torch.randint(32000, (batch, length))
    return model, data, loss, torch.optim.AdamW(model.parameters())


def small(batch=2, length=16):
    model = Mixture(vocabulary=100, width=32, depth=2, heads=4, experts=4)
    data = torch.randint(100, (batch, length)), torch.randint(100, (batch, length))
    return model, data, loss, torch.optim.AdamW(model.parameters())
