"""The networks of steps.json: NAME() -> (model, data, loss, optimizer), as `ddpsim describe` takes
them.

The two that were also measured with channels last have a function NAME_last."""
import torch
from torch import nn
from torch.nn import functional as F


def ce(model, data):
    x, y = data
    out = model(x)
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


def tokens(vocabulary, *shape):
    return torch.randint(vocabulary, shape)


class Attn(nn.Module):
    def __init__(self, d, h, causal):
        super().__init__()
        self.h, self.causal = h, causal
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = (f(x).view(b, s, self.h, d // self.h).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.transpose(1, 2).reshape(b, s, d))


class Block(nn.Module):
    def __init__(self, d, h, causal, ff=4):
        super().__init__()
        self.a, self.b = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attn(d, h, causal)
        self.up, self.down = nn.Linear(d, ff * d), nn.Linear(ff * d, d)

    def forward(self, x):
        x = x + self.attn(self.a(x))
        return x + self.down(F.gelu(self.up(self.b(x))))


class Lm(nn.Module):
    def __init__(self, vocabulary, d, layers, heads, length):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, x):
        y = self.tok(x) + self.pos(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def lm350(batch=8, length=1024):
    model = Lm(50304, 1024, 24, 16, length)
    data = tokens(50304, batch, length), tokens(50304, batch, length)
    return model, data, ce, torch.optim.AdamW(model.parameters(), lr=1e-4)


class Bottle(nn.Module):
    def __init__(self, i, m, stride, groups=1):
        super().__init__()
        o = 4 * m
        self.c1, self.n1 = nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m)
        self.c2 = nn.Conv2d(m, m, 3, stride, 1, groups=groups, bias=False)
        self.n2 = nn.BatchNorm2d(m)
        self.c3, self.n3 = nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o)
        self.short = None if i == o and stride == 1 else nn.Sequential(
            nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        y = F.relu(self.n1(self.c1(x)), inplace=True)
        y = F.relu(self.n2(self.c2(y)), inplace=True)
        short = x if self.short is None else self.short(x)
        return F.relu(self.n3(self.c3(y)) + short, inplace=True)


def resnet(layers, batch):
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
             nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, count in enumerate(layers):
        for n in range(count):
            parts.append(Bottle(i, 64 << stage, 2 if stage and n == 0 else 1))
            i = 4 * (64 << stage)
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    data = torch.randn(batch, 3, 224, 224), tokens(1000, batch)
    return model, data, ce, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def resnet101(batch=96):
    return resnet((3, 4, 23, 3), batch)


class Inverted(nn.Module):
    def __init__(self, i, o, stride, grow):
        super().__init__()
        m = i * grow
        self.body = nn.Sequential(
            nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m), nn.SiLU(True),
            nn.Conv2d(m, m, 3, stride, 1, groups=m, bias=False), nn.BatchNorm2d(m), nn.SiLU(True),
            nn.Conv2d(m, o, 1, bias=False), nn.BatchNorm2d(o))
        self.same = i == o and stride == 1

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobile(batch=256):
    plan = [(24, 2, 1, 1), (32, 4, 2, 2), (64, 4, 4, 2), (128, 6, 6, 2), (160, 6, 9, 1),
            (256, 6, 8, 2)]
    i = 24
    parts = [nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.SiLU(True)]
    for o, grow, count, stride in plan:
        for n in range(count):
            parts.append(Inverted(i, o, stride if n == 0 else 1, grow))
            i = o
    model = nn.Sequential(*parts, nn.Conv2d(256, 1280, 1, bias=False), nn.BatchNorm2d(1280),
                          nn.SiLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(1280, 1000))
    data = torch.randn(batch, 3, 224, 224), tokens(1000, batch)
    return model, data, ce, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


class Dlrm(nn.Module):
    def __init__(self, tables=26, rows=100000, d=128):
        super().__init__()
        self.e = nn.ModuleList(nn.Embedding(rows, d) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                    nn.Linear(256, d), nn.ReLU())
        n = tables + 1
        self.top = nn.Sequential(nn.Linear(n * n + d, 1024), nn.ReLU(), nn.Linear(1024, 1024),
                                 nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, data):
        dense, sparse = data
        x = self.bottom(dense)
        z = torch.stack([x] + [e(sparse[:, i]) for i, e in enumerate(self.e)], 1)
        return self.top(torch.cat([torch.bmm(z, z.transpose(1, 2)).flatten(1), x], 1))


def dlrm(batch=8192):
    model = Dlrm()
    data = (torch.randn(batch, 13), tokens(100000, batch, 26)), torch.rand(batch, 1)

    def loss(m, d):
        return F.binary_cross_entropy_with_logits(m(d[0]), d[1])
    return model, data, loss, torch.optim.SGD(model.parameters(), 0.1)


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(33000, 1024)
        self.r = nn.LSTM(1024, 1024, 3, batch_first=True)
        self.h = nn.Linear(1024, 33000)

    def forward(self, x):
        return self.h(self.r(self.e(x))[0])


def lstm(batch=64, length=64):
    model = Rnn()
    data = tokens(33000, batch, length), tokens(33000, batch, length)
    return model, data, ce, torch.optim.Adam(model.parameters())


def hf(kind, config, batch, length, dtype=torch.float32, **more):
    model = kind.from_config(config, dtype=dtype)
    data = {'input_ids': tokens(config.vocab_size, batch, length),
            'labels': tokens(config.vocab_size, batch, length), **more}
    return model, data, None, torch.optim.AdamW(model.parameters())


def llama1b(batch=2, length=2048):
    import transformers as t
    c = t.LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22,
                      num_attention_heads=32, num_key_value_heads=4, vocab_size=32000,
                      max_position_embeddings=2048)
    return hf(t.AutoModelForCausalLM, c, batch, length, torch.bfloat16)


def _last(make):
    def made():
        model, (x, y), loss, optimizer = make()
        data = x.to(memory_format=torch.channels_last), y
        return model.to(memory_format=torch.channels_last), data, loss, optimizer
    return made


resnet101_last, mobile_last = _last(resnet101), _last(mobile)

# name: (function, modes); fp32 (TF32 off), tf32, amp (bf16 autocast), bf16 (parameters), last (amp,
# channels last)
CASES = {'lm350': (lm350, ['amp', 'tf32', 'fp32']),
         'resnet101': (resnet101, ['amp', 'last', 'tf32', 'fp32']),
         'mobile': (mobile, ['last', 'tf32']), 'dlrm': (dlrm, ['fp32', 'tf32']),
         'lstm': (lstm, ['fp32', 'amp']), 'llama1b': (llama1b, ['bf16'])}
