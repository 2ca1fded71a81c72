"""An encoder and a decoder in the manner of T5: RMS norms, biases of relative positions that all
blocks share, one table of tokens at both ends.

    ddpsim describe scenarios/examples/models/t5.py -o t5.yaml
"""
import torch
from torch import nn
from torch.nn.functional import cross_entropy, relu


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, memory, bias):
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        scores = q @ k.transpose(-1, -2)
        scores = scores if bias is None else scores + bias
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = (nn.Linear(width, 4 * width, bias=False),
                              nn.Linear(4 * width, width, bias=False))

    def forward(self, x):
        return self.down(relu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width, heads, decodes):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(width), Attention(width, heads)
        if decodes:
            self.norm2, self.cross = nn.RMSNorm(width), Attention(width, heads)
        self.norm3, self.mlp = nn.RMSNorm(width), FeedForward(width)

    def forward(self, x, bias, memory=None):
        n = self.norm1(x)
        x = x + self.attention(n, n, bias)
        if memory is not None:
            x = x + self.cross(self.norm2(x), memory, None)
        return x + self.mlp(self.norm3(x))


class Stack(nn.Module):
    def __init__(self, width, depth, heads, decodes, distances=32):
        super().__init__()
        self.bias = nn.Embedding(2 * distances, heads)
        self.distances, self.decodes = distances, decodes
        self.blocks = nn.ModuleList(Block(width, heads, decodes) for _ in range(depth))
        self.norm = nn.RMSNorm(width)

    def forward(self, x, memory=None):
        place = torch.arange(x.shape[1], device=x.device)
        apart = (place[None] - place[:, None]).clamp(-self.distances, self.distances - 1)
        bias = self.bias(apart + self.distances).permute(2, 0, 1)[None]
        if self.decodes:
            bias = bias + torch.full_like(bias, float('-inf')).triu(1)
        for block in self.blocks:
            x = block(x, bias, memory)
        return self.norm(x)


class T5(nn.Module):
    def __init__(self, vocabulary=32128, width=512, depth=6, heads=8):
        super().__init__()
        self.shared = nn.Embedding(vocabulary, width)
        self.encoder = Stack(width, depth, heads, decodes=False)
        self.decoder = Stack(width, depth, heads, decodes=True)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.shared.weight

    def forward(self, source, target):
        memory = self.encoder(self.shared(source))
        return self.head(self.decoder(self.shared(target), memory))


def loss(model, batch):
    source, target, following = batch
    return cross_entropy(model(source, target).flatten(0, 1), following.flatten())


def make(batch=16, length=512):
    model = T5()
    data = [torch.randint(32128, (batch, length)) for _ in range(3)]
    return model, data, loss, torch.optim.AdamW(model.parameters())


def small(batch=2, length=12):
    model = T5(vocabulary=64, width=32, depth=2, heads=4)
    data = [torch.randint(64, (batch, length)) for _ in range(3)]
    return model, data, loss, torch.optim.AdamW(model.parameters())
