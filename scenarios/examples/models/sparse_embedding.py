"""A recommender: a large table whose gradient is sparse (DDP sends only the rows that were used),
and a small network over sums of its rows.

    ddpsim describe scenarios/examples/models/sparse_embedding.py -o sparse.yaml
"""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items=1_000_000, width=64, hidden=512):
        super().__init__()
        self.items = nn.Embedding(items, width, sparse=True)
        self.tower = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden),
                                   nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, seen):
        return self.tower(self.items(seen).mean(1)).squeeze(1)


def made(model, items, batch, seen):
    data = torch.randint(items, (batch, seen)), torch.rand(batch)
    return model, data, nn.BCEWithLogitsLoss(), torch.optim.SGD(model.parameters(), lr=0.1)


def make(batch=512, seen=20):
    return made(Recommender(), 1_000_000, batch, seen)


def small(batch=4, seen=3):
    return made(Recommender(items=100, width=8, hidden=16), 100, batch, seen)
