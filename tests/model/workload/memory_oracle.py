"""What PyTorch's autograd keeps between the forward and the backward pass of small networks.

    python3 memory_oracle.py IN OUT

IN holds a line per network: fp32 or bf16, a family, and its numbers. Of a family/2 every second
block is an activation checkpoint. OUT gets a line per network:
the bytes that saved tensors hold, each storage counted once and parameters left out, the bytes of
all parameters, and the names of the parameters as they are registered. The networks are written as
the libraries that ddpsim's architectures name write them; attention that runs as one kernel on a
GPU is a function that keeps what FlashAttention keeps.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class FusedAttention(torch.autograd.Function):
    """Keeps queries, keys, values, the result and a logarithm for every row."""

    @staticmethod
    def forward(ctx, query, key, value):
        groups = query.shape[1] // key.shape[1]
        scores = query @ key.repeat_interleave(groups, 1).transpose(-1, -2)
        result = scores.softmax(-1) @ value.repeat_interleave(groups, 1)
        result = result.transpose(1, 2).contiguous().transpose(1, 2)
        ctx.save_for_backward(query, key, value, result, scores.float().logsumexp(-1))
        return result

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, _, _ = ctx.saved_tensors
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)


def heads(x, count):
    return x.view(*x.shape[:2], count, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class RmsNorm(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.wide = wide

    def forward(self, x):
        given = x.dtype
        x = x.to(torch.float32)
        # Not mean(): until PyTorch 2.0 it kept its input, of which only the size is needed.
        x = x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + 1e-5)
        return (self.weight * x).to(given) if self.wide else self.weight * x.to(given)


def tables(sequence, width, dtype):
    angles = torch.outer(torch.arange(sequence), 1e4 ** -(torch.arange(0, width, 2) / width))
    return angles.cos().to(dtype), angles.sin().to(dtype)


# --- Stanford CS336 ---


class Einsum(nn.Module):
    def __init__(self, taken, given):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(given, taken) * 0.02)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class CourseAttention(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.count = count
        self.q_proj = Einsum(width, width)
        self.k_proj = Einsum(width, width)
        self.v_proj = Einsum(width, width)
        self.output_proj = Einsum(width, width)

    def rotated(self, x):
        positions = torch.arange(x.shape[2])
        cos, sin = torch.stack(tables(x.shape[2], x.shape[3], torch.float32))[:, positions]
        first, second = x[..., 0::2], x[..., 1::2]
        turned = torch.stack([cos * first - sin * second, sin * first + cos * second], -1)
        return turned.flatten(-2).to(x.dtype)

    def forward(self, x):
        query, key, value = (
            heads(f(x), self.count) for f in (self.q_proj, self.k_proj, self.v_proj))
        query, key = self.rotated(query), self.rotated(key)
        places = torch.arange(x.shape[1])
        mask = places[:, None] >= places[None, :]
        scores = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
        scores = torch.where(mask, scores, torch.tensor(float("-inf"), dtype=scores.dtype))
        scores = scores - torch.max(scores, dim=-1, keepdim=True)[0]
        powers = torch.exp(scores)
        weights = powers / torch.sum(powers, dim=-1, keepdim=True)
        result = torch.einsum("...qk,...kd->...qd", weights, value)
        return self.output_proj(result.transpose(1, 2).contiguous().flatten(2))


class CourseFeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1 = Einsum(width, inner)
        self.w2 = Einsum(inner, width)
        self.w3 = Einsum(width, inner)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * torch.sigmoid(gate) * self.w3(x))


class CourseBlock(nn.Module):
    def __init__(self, width, inner, count):
        super().__init__()
        self.ln1 = RmsNorm(width, True)
        self.attn = CourseAttention(width, count)
        self.ln2 = RmsNorm(width, True)
        self.ffn = CourseFeedForward(width, inner)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Course(nn.Module):
    def __init__(self, layers, width, inner, count, kv, vocabulary):
        super().__init__()
        self.token_embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(CourseBlock(width, inner, count) for _ in range(layers))
        self.ln_final = RmsNorm(width, True)
        self.lm_head = Einsum(width, vocabulary)

    def forward(self, tokens, targets):
        x = self.token_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        logits = self.lm_head(self.ln_final(x))
        logits = logits - torch.max(logits, dim=-1, keepdim=True)[0]
        logs = logits - torch.log(torch.sum(torch.exp(logits), dim=-1, keepdim=True))
        return torch.mean(torch.gather(-logs, -1, targets.unsqueeze(-1)))


# --- Hugging Face ---


def causal_loss(logits, tokens):
    logits = logits.float()[:, :-1].contiguous()
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1))


class LlamaAttention(nn.Module):
    def __init__(self, width, count, kv):
        super().__init__()
        self.count, self.kv = count, kv
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width // count * kv, bias=False)
        self.v_proj = nn.Linear(width, width // count * kv, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        def rotated(x):
            half = x.shape[-1] // 2
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

        query = rotated(heads(self.q_proj(x), self.count))
        key = rotated(heads(self.k_proj(x), self.kv))
        return self.o_proj(joined(FusedAttention.apply(query, key, heads(self.v_proj(x), self.kv))))


class LlamaFeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self, width, inner, count, kv):
        super().__init__()
        self.self_attn = LlamaAttention(width, count, kv)
        self.mlp = LlamaFeedForward(width, inner)
        self.input_layernorm = RmsNorm(width, False)
        self.post_attention_layernorm = RmsNorm(width, False)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, layers, width, inner, count, kv, vocabulary):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, inner, count, kv) for _ in range(layers))
        self.norm = RmsNorm(width, False)


class Llama(nn.Module):
    def __init__(self, layers, width, inner, count, kv, vocabulary):
        super().__init__()
        self.model = LlamaModel(layers, width, inner, count, kv or count, vocabulary)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.head_width = width // count

    def forward(self, tokens, _):
        x = self.model.embed_tokens(tokens)
        cos, sin = (torch.cat([t, t], -1)[None, None] for t in
                    tables(tokens.shape[1], self.head_width, x.dtype))
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return causal_loss(self.lm_head(self.model.norm(x)), tokens)


class Conv1D(nn.Module):
    def __init__(self, given, taken):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(taken, given) * 0.02)
        self.bias = nn.Parameter(torch.zeros(given))

    def forward(self, x):
        rows = torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        return rows.view(*x.shape[:-1], -1)


class Gpt2Attention(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.count = count
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)

    def forward(self, x):
        parts = self.c_attn(x).split(x.shape[-1], 2)
        return self.c_proj(joined(FusedAttention.apply(*(heads(p, self.count) for p in parts))))


class Gpt2FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.c_fc = Conv1D(inner, width)
        self.c_proj = Conv1D(width, inner)

    def forward(self, x):
        x = self.c_fc(x)
        return self.c_proj(
            0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3.0)))))


class Gpt2Block(nn.Module):
    def __init__(self, width, inner, count):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Gpt2Attention(width, count)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Gpt2FeedForward(width, inner)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2Model(nn.Module):
    def __init__(self, layers, width, inner, count, vocabulary, positions):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(Gpt2Block(width, inner, count) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)


class Gpt2(nn.Module):
    def __init__(self, layers, width, inner, count, kv, vocabulary, positions=512):
        super().__init__()
        self.transformer = Gpt2Model(layers, width, inner, count, vocabulary, positions)

    def forward(self, tokens, _):
        body = self.transformer
        x = body.wte(tokens) + body.wpe(torch.arange(tokens.shape[1])[None])
        for block in body.h:
            x = block(x)
        return causal_loss(F.linear(body.ln_f(x), body.wte.weight), tokens)


class Named(nn.Module):
    """Modules by their names, of which one may be "self"."""

    def __init__(this, /, **modules):
        super(Named, this).__init__()
        for name, module in modules.items():
            this.add_module(name, module)


class BertBlock(nn.Module):
    def __init__(self, width, inner, count):
        super().__init__()
        self.count = count
        self.attention = Named(
            self=Named(query=nn.Linear(width, width), key=nn.Linear(width, width),
                           value=nn.Linear(width, width)),
            output=Named(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width)))
        self.intermediate = Named(dense=nn.Linear(width, inner))
        self.output = Named(dense=nn.Linear(inner, width), LayerNorm=nn.LayerNorm(width))

    def forward(self, x):
        inputs = getattr(self.attention, "self")
        parts = (heads(f(x), self.count) for f in (inputs.query, inputs.key, inputs.value))
        attended = joined(FusedAttention.apply(*parts))
        output = self.attention.output
        x = output.LayerNorm(output.dense(attended) + x)
        inner = F.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(self.output.dense(inner) + x)


class Bert(nn.Module):
    def __init__(self, layers, width, inner, count, kv, vocabulary, positions=512):
        super().__init__()
        self.embeddings = Named(
            word_embeddings=nn.Embedding(vocabulary, width),
            position_embeddings=nn.Embedding(positions, width),
            token_type_embeddings=nn.Embedding(2, width), LayerNorm=nn.LayerNorm(width))
        self.encoder = Named(
            layer=nn.ModuleList(BertBlock(width, inner, count) for _ in range(layers)))
        self.pooler = Named(dense=nn.Linear(width, width))

    def forward(self, tokens, _):
        tables = self.embeddings
        x = tables.word_embeddings(tokens) + tables.token_type_embeddings(torch.zeros_like(tokens))
        x = tables.LayerNorm(x + tables.position_embeddings(torch.arange(tokens.shape[1])[None]))
        for block in self.encoder.layer:
            x = block(x)
        return torch.tanh(self.pooler.dense(x[:, 0])).sum()


# --- torchvision ---


class ResidualBlock(nn.Module):
    def __init__(self, taken, width, stride, bottleneck):
        super().__init__()
        given = 4 * width if bottleneck else width
        sizes = ([(taken, width, 1, 1), (width, width, 3, stride), (width, given, 1, 1)]
                 if bottleneck else [(taken, given, 3, stride), (given, given, 3, 1)])
        self.count = len(sizes)
        for i, (a, b, size, step) in enumerate(sizes, 1):
            self.add_module(f"conv{i}", nn.Conv2d(a, b, size, step, size // 2, bias=False))
            self.add_module(f"bn{i}", nn.BatchNorm2d(b))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or taken != given:
            self.downsample = nn.Sequential(
                nn.Conv2d(taken, given, 1, stride, bias=False), nn.BatchNorm2d(given))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            if i < self.count:
                y = self.relu(y)
        y += self.downsample(x) if self.downsample else x
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self, bottleneck, classes, *blocks):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        taken = 64
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                layers.append(ResidualBlock(taken, 64 << stage, stride, bottleneck))
                taken = (64 << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(taken, classes)

    def forward(self, pictures, targets):
        x = self.maxpool(self.relu(self.bn1(self.conv1(pictures))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return F.cross_entropy(self.fc(self.avgpool(x).flatten(1)), targets)


class VitAttention(nn.Module):
    """As nn.MultiheadAttention of PyTorch 2: one projection, made contiguous, one kernel."""

    def __init__(self, width, count):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.randn(3 * width, width) * 0.02)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.count = count

    def forward(self, x):
        x = x.transpose(0, 1)
        length, batch, width = x.shape
        packed = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        packed = packed.unflatten(-1, (3, width)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        query, key, value = (
            part.reshape(length, batch, self.count, -1).permute(1, 2, 0, 3)
            for part in packed.contiguous())
        result = FusedAttention.apply(query, key, value).permute(2, 0, 1, 3).contiguous()
        result = self.out_proj(result.view(batch * length, width))
        return result.view(length, batch, width).transpose(0, 1)


class VitBlock(nn.Module):
    def __init__(self, width, inner, count):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.self_attention = VitAttention(width, count)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Identity(),
                                 nn.Linear(inner, width))

    def forward(self, x):
        x = x + self.self_attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class VitEncoder(nn.Module):
    def __init__(self, length, layers, width, inner, count):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.layers = Named(**{f"encoder_layer_{i}": VitBlock(width, inner, count)
                               for i in range(layers)})
        self.ln = nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.pos_embedding
        for layer in self.layers.children():
            x = layer(x)
        return self.ln(x)


class Vit(nn.Module):
    def __init__(self, size, patch, layers, width, inner, count, classes):
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(1, 1, width))
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.encoder = VitEncoder((size // patch) ** 2 + 1, layers, width, inner, count)
        self.heads = Named(head=nn.Linear(width, classes))

    def forward(self, pictures, targets):
        x = self.conv_proj(pictures).flatten(2).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1)
        return F.cross_entropy(self.heads.head(self.encoder(x)[:, 0]), targets)


class Vgg(nn.Module):
    def __init__(self, classes, *channels):
        super().__init__()
        modules, taken = [], 3
        for given in channels:
            if given == 0:
                modules.append(nn.MaxPool2d(2, 2))
            else:
                modules += [nn.Conv2d(taken, given, 3, padding=1), nn.ReLU(inplace=True)]
                taken = given
        self.features = nn.Sequential(*modules)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(49 * taken, 4096), nn.ReLU(inplace=True), nn.Identity(),
            nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Identity(),
            nn.Linear(4096, classes))

    def forward(self, pictures, targets):
        x = self.avgpool(self.features(pictures)).flatten(1)
        return F.cross_entropy(self.classifier(x), targets)


class Perceptron(nn.Module):
    def __init__(self, bias, *widths):
        super().__init__()
        for i, (taken, given) in enumerate(zip(widths, widths[1:])):
            self.add_module(str(2 * i), nn.Linear(taken, given, bias=bias == 1))
        self.last = str(2 * len(widths) - 4)

    def forward(self, x, targets):
        for name, module in self.named_children():
            x = module(x) if name == self.last else F.relu(module(x))
        return F.mse_loss(x, targets)


def kept_bytes(network, *inputs):
    """Of distinct storages that are not parameters or buffers."""
    mine = [*network.parameters(), *network.buffers()]
    known = {tensor.storage().data_ptr() for tensor in mine}
    held, sizes = [], {}

    def keep(tensor):
        held.append(tensor)  # so that no other tensor takes its place in memory
        storage = tensor.storage()
        if storage.data_ptr() not in known:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(*inputs).backward
    return sum(sizes.values())


def build(dtype, family, *numbers):
    """The network and what it is fed; the batch and a size come first."""
    batch, size, *shape = numbers
    transformers = {"cs336": Course, "llama": Llama, "gpt2": Gpt2, "bert": Bert}
    if family in transformers:
        network = transformers[family](*shape)
        vocabulary = shape[5]
        tokens = torch.randint(vocabulary, (batch, size))
        return network.to(dtype), (tokens, torch.randint(vocabulary, (batch, size)))
    if family == "mlp":
        network = Perceptron(*shape)
        return network.to(dtype), (torch.randn(batch, shape[1], dtype=dtype),
                                   torch.randn(batch, shape[-1], dtype=dtype))
    network, classes = {
        "resnet": lambda: (ResNet(shape[0] == 1, *shape[1:]), shape[1]),
        "vgg": lambda: (Vgg(*shape), shape[0]),
        "vit": lambda: (Vit(size, *shape), shape[-1]),
    }[family]()
    pictures = torch.randn(batch, 3, size, size, dtype=dtype)
    return network.to(dtype), (pictures, torch.randint(classes, (batch,)))


class Kept(torch.autograd.Function):
    """What a checkpoint keeps of its input, which it does not tell saved_tensors_hooks."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def checkpoint_blocks(network, every):
    kinds = (CourseBlock, LlamaBlock, Gpt2Block, BertBlock, VitBlock)
    blocks = [each for each in network.modules() if isinstance(each, kinds)]
    for block in blocks[every - 1::every]:
        block.forward = lambda x, *more, run=block.forward: checkpoint(
            run, Kept.apply(x), *more, use_reentrant=False)


def main(networks, answers):
    torch.manual_seed(1)
    with open(networks) as source, open(answers, "w") as out:
        for line in source:
            dtype, family, *numbers = line.split()
            family, _, every = family.partition("/")
            network, inputs = build(torch.bfloat16 if dtype == "bf16" else torch.float32, family,
                                    *map(int, numbers))
            if every:
                checkpoint_blocks(network, int(every))
            names = [name for name, _ in network.named_parameters()]
            size = sum(p.numel() * p.element_size() for p in network.parameters())
            print(kept_bytes(network, *inputs), size, *names, file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
