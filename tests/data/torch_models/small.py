"""Small models for tests of ddpsim.profile, a function each.

    python3 small.py FUNCTION

prints what torch itself says of one, as JSON: names and shapes of the parameters that get a
gradient in a step, in registration order, and their names in the order their gradients arrive.
"""
import json
import os
import sys
import time

import torch
from torch import nn


def squared(model, batch):
    return model(batch).float().square().mean()


def perceptron():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU(),
                         nn.Linear(8, 4)), torch.randn(4, 16), squared


def trained():
    model, batch, loss = perceptron()
    return model, batch, loss, torch.optim.AdamW(model.parameters())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.inner = nn.Linear(6, 6)
        self.head = nn.Linear(6, 12, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.inner(self.embedding(tokens)))


def tied():
    return Tied(), torch.randint(12, (3, 5)), squared


class Partly(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.used(x))


def unused():
    return Partly(), torch.randn(2, 4), squared


def frozen():
    model, batch, loss = perceptron()
    model[0].requires_grad_(False)
    return model, batch, loss


def sparse():
    model = nn.Sequential(nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2))
    return model, torch.randint(20, (3, 5)), squared


def half():
    return nn.Sequential(nn.Linear(4, 4, dtype=torch.bfloat16),
                         nn.Linear(4, 2, dtype=torch.bfloat16)), \
        torch.randn(2, 4, dtype=torch.bfloat16), squared


class Odd(nn.Module):
    """Names that are no words, and a parameter without extents."""

    def __init__(self):
        super().__init__()
        for name in ('a: b', 'quote"back\\slash', "[1, 2]", '# no comment', 'größe \u2028\x7f',
                     'no'):
            self.add_module(name, nn.Linear(3, 3))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return self.scale * x


def odd():
    return Odd(), torch.randn(2, 3), squared


def vector():
    model, batch, _ = perceptron()
    return model, batch, lambda model, batch: model(batch)


def number():
    model, batch, _ = perceptron()
    return model, batch, lambda model, batch: 3.5


def detached():
    model, batch, loss = perceptron()
    return model, batch, lambda model, batch: loss(model, batch).detach()


def still():
    model, batch, loss = perceptron()
    return model.requires_grad_(False), batch, loss


def doubles():
    model, batch, loss = perceptron()
    return model.double(), batch.double(), loss


def alone():
    return perceptron()[:1]


def no_module():
    return 'model', None, squared


def no_optimizer():
    return *perceptron(), 'adam'


def raises():
    raise ValueError('the data set is not there')


def mismatched():
    return perceptron()[0], torch.randn(4, 5), squared


def leaves():
    sys.exit(7)


def dies():
    """Rank 1 is gone in the middle of the steps."""
    model, batch, loss = perceptron()
    steps = 0

    def deadly(model, batch):
        nonlocal steps
        steps += 1
        if os.environ.get('RANK') == '1' and steps == 4:
            os._exit(3)
        return loss(model, batch)
    return model, batch, deadly


def sleeps():
    """Rank 1 is in no hurry."""
    model, batch, loss = perceptron()

    def slow(model, batch):
        if os.environ.get('RANK') == '1':
            time.sleep(600)
        return loss(model, batch)
    return model, batch, slow


def main():
    model, batch, loss = globals()[sys.argv[1]]()[:3]
    arrived = []
    parameters = [(name, tensor) for name, tensor in model.named_parameters()
                  if tensor.requires_grad]
    for name, tensor in parameters:
        tensor.register_hook(lambda gradient, name=name: arrived.append(name))
    loss(model, batch).backward()
    json.dump({'parameters': [{'name': name, 'shape': list(tensor.shape)}
                              for name, tensor in parameters],
               'arrival': arrived}, sys.stdout)


if __name__ == '__main__':
    main()
