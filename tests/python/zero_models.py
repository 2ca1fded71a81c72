"""Small models whose modules all have parameters of their own or contain such that do: what
DeepSpeed gathers ahead depends on all modules."""
import torch
from torch import nn


class Odd(nn.Module):
    """Sizes that no number of ranks divides, and a parameter beside its module's children."""

    def __init__(self, inside, outside):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, inside))
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return torch.tanh(self.linear(x * self.scale))


def made(name):
    """(model, batch)"""
    torch.manual_seed(1)
    if name == 'linears':
        blocks = [nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)) for _ in range(3)]
        return nn.Sequential(*blocks), torch.randn(8, 64)
    return nn.Sequential(Odd(50, 71), Odd(71, 33), nn.Linear(33, 20)), torch.randn(4, 50)
