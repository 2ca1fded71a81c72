"""Models that show rules of DistributedDataParallel, a function each, as scripts for
ddpsim.profile make them."""
import torch
from torch import nn


def squared(model, batch):
    return model(batch).square().mean()


def trained(model, batch, loss=squared):
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=1e-3)


def mlp():
    """9 MiB of gradients: several buckets even at the default cap, for its first is 1 MiB."""
    layers = [nn.Linear(300, 500), nn.ReLU(), nn.Linear(500, 700), nn.ReLU(),
              nn.Linear(700, 900), nn.ReLU(), nn.Linear(900, 1100), nn.ReLU(),
              nn.Linear(1100, 200)]
    return trained(nn.Sequential(*layers), torch.randn(4, 300))


def convolution():
    """Convolutions with a bias, and batch norms: two kinds of buffers."""
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(),
                          nn.Conv2d(64, 128, 3, stride=2), nn.BatchNorm2d(128), nn.ReLU(),
                          nn.Conv2d(128, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))
    return trained(model, torch.randn(2, 3, 16, 16))


class Tied(nn.Module):
    """The head's weight is the embedding's: its gradient is complete last."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 128)
        self.inner = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128),
                                   nn.LayerNorm(128))
        self.head = nn.Linear(128, 2000, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.inner(self.embedding(tokens)))


def tied():
    return trained(Tied(), torch.randint(2000, (3, 5)))


class Partly(nn.Module):
    """Two layers of five take no part."""

    def __init__(self):
        super().__init__()
        self.first, self.idle = nn.Linear(400, 600), nn.Linear(600, 600)
        self.second = nn.Linear(600, 800)
        self.silent, self.last = nn.Linear(300, 300), nn.Linear(800, 100)

    def forward(self, x):
        return self.last(self.second(self.first(x)))


def partly():
    return trained(Partly(), torch.randn(4, 400))


def small():
    """One bucket, of which PowerSGD compresses some."""
    return trained(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                      nn.Linear(256, 10)), torch.randn(4, 64))


def narrow():
    """One bucket of convolutions: PowerSGD sees each as a matrix of its first extent."""
    return trained(
        nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 5, bias=False),
                      nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                      nn.Linear(256, 40)),
        torch.randn(2, 3, 12, 12))


def odd():
    """Sizes that no alignment divides."""
    return trained(
        nn.Sequential(nn.Linear(13, 37), nn.ReLU(), nn.Linear(37, 101), nn.ReLU(),
                      nn.Linear(101, 53), nn.ReLU(), nn.Linear(53, 3)), torch.randn(4, 13))


class Mixed(nn.Module):
    """Every second layer's parameters are stored in fp16: a sequence of buckets for each type."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width + 64) for width in range(256, 640, 64))
        for layer in self.layers[::2]:
            layer.half()

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.linear(x, layer.weight.float(), layer.bias.float())
        return x


def mixed():
    return trained(Mixed(), torch.randn(2, 256))


def table():
    """An embedding with sparse gradients before dense layers; of 24 words, 17 are different
    ones."""
    return trained(
        nn.Sequential(nn.Embedding(3000, 200, sparse=True), nn.Linear(200, 700), nn.ReLU(),
                      nn.Linear(700, 700)), (101 * torch.arange(24) % (101 * 17)).reshape(4, 6))
