#!/usr/bin/env python3
"""Forward and backward of the CS336 medium model in PyTorch on one GPU, for comparison with
ddpsim's kernels.

    tools/torch_backward.py --batch 8 --sequence 512 --dtype bf16

Prints one JSON object: medians over steps in ms, and the time of each linear layer's three GEMMs.
Exit code 77 where there is no PyTorch or no GPU for it.
"""
import argparse
import json
import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print('no PyTorch here', file=sys.stderr)
    sys.exit(77)

SETS = 8  # of operands: 8 x 18 MB or more, beyond an L2 of 50 MB
# As scenarios/catalogue has cs336-medium.
WIDTH, LAYERS, HEADS, INNER, VOCABULARY = 1024, 24, 16, 4096, 10000


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5)
        return (x * scale).to(x.dtype) * self.weight


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False)
        self.q, self.k, self.v, self.o = (linear(WIDTH, WIDTH) for _ in range(4))
        self.w1, self.w3, self.w2 = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)
        self.ln1, self.ln2 = Norm(), Norm()

    def forward(self, x, rotation):
        batch, sequence, _ = x.shape
        h = self.ln1(x)
        q, k, v = (f(h).view(batch, sequence, HEADS, -1).transpose(1, 2)
                   for f in (self.q, self.k, self.v))
        q, k = rotate(q, rotation), rotate(k, rotation)
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        mask = torch.ones(sequence, sequence, dtype=torch.bool, device=x.device).tril()
        attended = scores.masked_fill(~mask, float('-inf')).softmax(-1) @ v
        x = x + self.o(attended.transpose(1, 2).reshape(batch, sequence, WIDTH))
        h = self.ln2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


def rotate(x, rotation):
    cosine, sine = rotation
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = Norm()
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        half = WIDTH // HEADS // 2
        angles = torch.outer(torch.arange(tokens.shape[1], device=x.device).float(),
                             10000 ** (-torch.arange(half, device=x.device).float() / half))
        rotation = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, rotation)
        return self.head(self.norm(x))


def milliseconds(run, repeats):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def milliseconds_each(run, repeats):
    """Milliseconds of one call among many, each with an event behind it, as ddpsim's kernels have:
    without an event a kernel begins before the one in front of it has ended. The GPU is kept busy
    until all are enqueued, and no operand is still in its cache."""
    calls = 4 * SETS
    for i in range(SETS):
        run(i)
    times = []
    for _ in range(repeats):
        torch.cuda._sleep(20_000_000)  # about 10 ms: the host gets ahead
        events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
        events[0].record()
        for i in range(calls):
            run(i % SETS)
            events[i + 1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[-1]) / calls)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--sequence', type=int, default=512)
    parser.add_argument('--dtype', choices=['fp32', 'bf16'], default='bf16')
    parser.add_argument('--repeats', type=int, default=10)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print('no GPU for PyTorch here', file=sys.stderr)
        return 77
    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = {'fp32': torch.float32, 'bf16': torch.bfloat16}[arguments.dtype]
    model = Model().cuda().to(dtype)
    tokens = torch.randint(VOCABULARY, (arguments.batch, arguments.sequence), device='cuda')

    def step():
        model.zero_grad(set_to_none=False)
        F.cross_entropy(model(tokens).float().flatten(0, 1), tokens.flatten()).backward()

    with torch.no_grad():
        forward = milliseconds(lambda: model(tokens), arguments.repeats)
    whole = milliseconds(step, arguments.repeats)
    gemms = []
    rows = arguments.batch * arguments.sequence
    for inputs, outputs in ((WIDTH, WIDTH), (WIDTH, INNER), (INNER, WIDTH), (WIDTH, VOCABULARY)):
        random = lambda *shape: [
            torch.randn(*shape, device='cuda', dtype=dtype) for _ in range(SETS)
        ]
        xs, ws, ys = random(rows, inputs), random(outputs, inputs), random(rows, outputs)
        for name, shape, run in (('forward', (rows, outputs, inputs), lambda i: xs[i] @ ws[i].t()),
                                 ('backward', (rows, inputs, outputs),
                                  lambda i: ys[i] @ ws[i]), ('backward', (outputs, inputs, rows),
                                                             lambda i: ys[i].t() @ xs[i])):
            gemms.append({'pass': name, 'm': shape[0], 'n': shape[1], 'k': shape[2],
                          'ms': milliseconds_each(run, arguments.repeats)})
    json.dump(
        {
            'torch': torch.__version__, 'gpu': torch.cuda.get_device_name(),
            'dtype': arguments.dtype, 'batch': arguments.batch, 'sequence': arguments.sequence,
            'forward_ms': forward, 'forward_backward_ms': whole, 'gemms': gemms
        }, sys.stdout, indent=1)
    print()
    return 0


if __name__ == '__main__':
    sys.exit(main())
