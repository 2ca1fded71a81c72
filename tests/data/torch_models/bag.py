"""An embedding (`plain`) and an embedding bag (`make`) with sparse gradients under one linear
layer."""
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, bag):
        super().__init__()
        self.bag = bag
        self.emb = (nn.EmbeddingBag(1000, 16, mode="sum", sparse=True) if bag
                    else nn.Embedding(1000, 16, sparse=True))
        self.lin = nn.Linear(16, 1)
    def forward(self, i):
        e = self.emb(i)
        return self.lin(e if self.bag else e.sum(1))


def make(batch=64, bag=True):
    m = M(bag)
    return m, (torch.randint(0, 1000, (batch, 4)), torch.rand(batch, 1)), nn.MSELoss()


def plain(batch=64):
    return make(batch, False)
