"""What PyTorch does with small networks of T5's and Mixtral's architecture.

    python3 expert_and_t5_oracle.py IN OUT

IN holds a line per network: fp32 or bf16, a family, and its numbers. OUT gets a line per network:
the bytes that saved tensors hold, as memory_oracle.py counts them; the number of parameters; for
each, in the order of registration, its name and its shape ("512x64"); then the names again, in the
order in which the hooks fire that DistributedDataParallel hangs on the accumulation of gradients.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.dont_write_bytecode = True  # the import below leaves nothing beside the sources
from memory_oracle import LlamaAttention, RmsNorm, causal_loss, heads, joined, kept_bytes, tables


# --- T5 ---


class T5Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.to(torch.float32)
        # As in memory_oracle.py, not mean().
        x = x * torch.rsqrt(wide.pow(2).sum(-1, keepdim=True) / x.shape[-1] + 1e-6)
        return self.weight * x.to(self.weight.dtype)


class T5Attention(nn.Module):
    def __init__(self, width, count, size, buckets):
        super().__init__()
        self.count, self.buckets = count, buckets
        self.q = nn.Linear(width, count * size, bias=False)
        self.k = nn.Linear(width, count * size, bias=False)
        self.v = nn.Linear(width, count * size, bias=False)
        self.o = nn.Linear(count * size, width, bias=False)
        if buckets:
            self.relative_attention_bias = nn.Embedding(buckets, count)

    def bias(self, scores, mask):
        if not self.buckets:
            return torch.zeros((1, *scores.shape[1:]), dtype=scores.dtype) + mask
        distance = torch.arange(scores.shape[3])[None] - torch.arange(scores.shape[2])[:, None]
        rows = (distance + self.buckets // 2).clamp(0, self.buckets - 1)
        return self.relative_attention_bias(rows).permute(2, 0, 1)[None] + mask

    def forward(self, x, source, bias, mask):
        query = heads(self.q(x), self.count)
        key, value = heads(self.k(source), self.count), heads(self.v(source), self.count)
        scores = query @ key.transpose(3, 2)
        if bias is None:
            bias = self.bias(scores, mask)
        scores += bias
        weights = scores.float().softmax(-1).type_as(scores)
        return self.o(joined(weights @ value)), bias


class T5SelfAttention(nn.Module):
    def __init__(self, width, count, size, buckets):
        super().__init__()
        self.SelfAttention = T5Attention(width, count, size, buckets)
        self.layer_norm = T5Norm(width)

    def forward(self, x, bias, mask):
        normed = self.layer_norm(x)
        result, bias = self.SelfAttention(normed, normed, bias, mask)
        return x + result, bias


class T5CrossAttention(nn.Module):
    def __init__(self, width, count, size):
        super().__init__()
        self.EncDecAttention = T5Attention(width, count, size, 0)
        self.layer_norm = T5Norm(width)

    def forward(self, x, source, bias, mask):
        result, bias = self.EncDecAttention(self.layer_norm(x), source, bias, mask)
        return x + result, bias


class T5Dense(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.wi = nn.Linear(width, inner, bias=False)
        self.wo = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.wo(F.relu(self.wi(x)))


class T5FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.DenseReluDense = T5Dense(width, inner)
        self.layer_norm = T5Norm(width)

    def forward(self, x):
        return x + self.DenseReluDense(self.layer_norm(x))


class T5Block(nn.Module):
    def __init__(self, width, inner, count, size, buckets, decodes):
        super().__init__()
        self.layer = nn.ModuleList([T5SelfAttention(width, count, size, buckets)])
        if decodes:
            self.layer.append(T5CrossAttention(width, count, size))
        self.layer.append(T5FeedForward(width, inner))


class T5Stack(nn.Module):
    def __init__(self, table, layers, width, inner, count, size, buckets, decodes):
        super().__init__()
        self.embed_tokens = table
        self.block = nn.ModuleList(
            T5Block(width, inner, count, size, buckets if i == 0 else 0, decodes)
            for i in range(layers))
        self.final_layer_norm = T5Norm(width)

    def forward(self, tokens, source=None):
        x = self.embed_tokens(tokens)
        length, shut = tokens.shape[1], torch.finfo(x.dtype).min
        if source is None:
            mask = torch.zeros(len(tokens), 1, 1, length, dtype=x.dtype)
        else:
            mask = torch.full((length, length), shut, dtype=x.dtype).triu(1)
            mask = mask.expand(len(tokens), 1, length, length)
            open_to_all = torch.zeros(len(tokens), 1, 1, source.shape[1], dtype=x.dtype)
        own = across = None
        for block in self.block:
            x, own = block.layer[0](x, own, mask)
            if source is not None:
                x, across = block.layer[1](x, source, across, open_to_all)
            x = block.layer[-1](x)
        return self.final_layer_norm(x)


class T5(nn.Module):
    def __init__(self, layers, decoder_layers, width, inner, count, size, vocabulary, buckets):
        super().__init__()
        self.shared = nn.Embedding(vocabulary, width)
        shape = width, inner, count, size, buckets
        self.encoder = T5Stack(self.shared, layers, *shape, False)
        self.decoder = T5Stack(self.shared, decoder_layers, *shape, True)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, tokens, targets):
        source = self.encoder(tokens)
        shifted = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], 1)
        x = self.decoder(shifted, source)
        logits = self.lm_head(x * x.shape[-1] ** -0.5)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


# --- Mixtral ---


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)
        self.w3 = nn.Linear(width, inner, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseExperts(nn.Module):
    def __init__(self, width, inner, experts, chosen):
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, inner) for _ in range(experts))

    def forward(self, x):
        rows = x.view(-1, x.shape[-1])
        shares, picked = torch.topk(self.gate(rows).softmax(1, dtype=torch.float), self.chosen)
        shares /= shares.sum(-1, keepdim=True)
        shares = shares.to(x.dtype)
        result = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            tokens, choice = torch.where(picked == number)
            result.index_add_(0, tokens, expert(rows[tokens]) * shares[tokens, choice, None])
        return result.view(x.shape)


class MixtralBlock(nn.Module):
    def __init__(self, width, inner, count, kv, experts, chosen):
        super().__init__()
        self.self_attn = LlamaAttention(width, count, kv)
        self.block_sparse_moe = SparseExperts(width, inner, experts, chosen)
        self.input_layernorm = RmsNorm(width, False)
        self.post_attention_layernorm = RmsNorm(width, False)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.block_sparse_moe(self.post_attention_layernorm(x))


class MixtralModel(nn.Module):
    def __init__(self, layers, vocabulary, width, *shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(MixtralBlock(width, *shape) for _ in range(layers))
        self.norm = RmsNorm(width, False)


class Mixtral(nn.Module):
    def __init__(self, layers, vocabulary, width, inner, count, kv, experts, chosen):
        super().__init__()
        self.model = MixtralModel(layers, vocabulary, width, inner, count, kv, experts, chosen)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.head_width = width // count

    def forward(self, tokens, _):
        x = self.model.embed_tokens(tokens)
        cos, sin = (torch.cat([t, t], -1)[None, None] for t in
                    tables(tokens.shape[1], self.head_width, x.dtype))
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return causal_loss(self.lm_head(self.model.norm(x)), tokens)


def build(family, batch, length, *numbers):
    """The network and what it is fed; of T5 the target's length comes first."""
    if family == "t5":
        target, *shape = numbers
        network, vocabulary = T5(*shape), shape[6]
    else:
        target = length
        network, vocabulary = Mixtral(*numbers), numbers[1]
    return network, (torch.randint(vocabulary, (batch, length)),
                     torch.randint(vocabulary, (batch, target)))


def arrivals(network, inputs):
    fired = []
    accumulators = []  # a node lives as long as someone holds it
    for name, parameter in network.named_parameters():
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *unused, name=name: fired.append(name))
        accumulators.append(node)
    network(*inputs).backward()
    return fired


def main(networks, answers):
    torch.manual_seed(1)
    with open(networks) as source, open(answers, "w") as out:
        for line in source:
            dtype, family, *numbers = line.split()
            network, inputs = build(family, *map(int, numbers))
            network.to(torch.bfloat16 if dtype == "bf16" else torch.float32)
            parameters = [f"{name} {'x'.join(map(str, each.shape))}"
                          for name, each in network.named_parameters()]
            print(kept_bytes(network, *inputs), len(parameters), *parameters,
                  *arrivals(network, inputs), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
