"""The language model of Stanford's course CS336, as its assignments hand it out
(cs336_basics/model.py), written with torch alone."""
import math

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, taken, given):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(given, taken))

    def forward(self, x):
        return torch.einsum('...i,oi->...o', x, self.weight)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        given = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (self.weight * x).to(given)


class RotaryEmbedding(nn.Module):
    """Positions are gathered from a table of cosines and sines, whose rows einx numbers before."""

    def __init__(self, context, size):
        super().__init__()
        self.context = context
        angles = torch.outer(torch.arange(context), 1e4 ** -(torch.arange(0, size, 2) / size))
        self.register_buffer('cache', torch.stack([angles.cos(), angles.sin()]), persistent=False)

    def forward(self, x, positions):
        first, second = x.view(*x.shape[:-1], -1, 2).movedim(-1, 0)
        rows = torch.arange(2, device=x.device)[:, None, None, None] * self.context + positions
        cos, sin = self.cache.flatten(0, 1)[rows]
        turned = torch.stack([cos * first - sin * second, sin * first + cos * second], -1)
        return turned.flatten(-2).contiguous()


class Attention(nn.Module):
    def __init__(self, width, heads, rotary):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = Linear(width, width), Linear(width, width)
        self.v_proj, self.output_proj = Linear(width, width), Linear(width, width)
        self.rotary = rotary

    def forward(self, x):
        query, key, value = (f(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
                             for f in (self.q_proj, self.k_proj, self.v_proj))
        positions = torch.arange(x.shape[1], device=x.device)[None, None]
        query, key = self.rotary(query, positions), self.rotary(key, positions)
        places = torch.arange(x.shape[1], device=x.device)
        mask = places[None, None, :, None] >= places[None, None, None]
        scores = torch.einsum('...qd,...kd->...qk', query, key) / math.sqrt(query.shape[-1])
        scores = torch.where(mask, scores, float('-inf'))
        scores = scores - torch.max(scores, dim=-1, keepdim=True)[0]
        powers = torch.exp(scores)
        weights = powers / torch.sum(powers, dim=-1, keepdim=True)
        result = torch.einsum('...qk,...kd->...qd', weights, value)
        return self.output_proj(result.transpose(1, 2).flatten(2).contiguous())


class SwiGLU(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(width, inner), Linear(inner, width), Linear(width, inner)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class Block(nn.Module):
    def __init__(self, width, inner, heads, rotary):
        super().__init__()
        self.attn = Attention(width, heads, rotary)
        self.ffn = SwiGLU(width, inner)
        self.ln1, self.ln2 = RMSNorm(width), RMSNorm(width)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, context, width, layers, heads, inner):
        super().__init__()
        self.token_embeddings = nn.Embedding(vocabulary, width)
        rotary = RotaryEmbedding(context, width // heads)
        self.layers = nn.ModuleList(Block(width, inner, heads, rotary) for _ in range(layers))
        self.ln_final = RMSNorm(width)
        self.lm_head = Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.token_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


def cross_entropy(logits, targets):
    logits = logits - torch.max(logits, dim=-1, keepdim=True)[0]
    logs = logits - torch.log(torch.sum(torch.exp(logits), dim=-1, keepdim=True))
    return torch.mean(torch.gather(-logs, -1, targets.unsqueeze(-1)))


def loss(model, batch):
    tokens, targets = batch
    return cross_entropy(model(tokens), targets)
