"""A character model of two GRU layers.

    ddpsim describe scenarios/examples/models/gru.py -o gru.yaml
"""
import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Characters(nn.Module):
    def __init__(self, characters=256, width=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.gru = nn.GRU(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, text):
        return self.head(self.gru(self.embed(text))[0])


def loss(model, batch):
    text, following = batch
    return cross_entropy(model(text).flatten(0, 1), following.flatten())


def make(batch=64, length=128):
    model = Characters()
    data = torch.randint(256, (batch, length)), torch.randint(256, (batch, length))
    return model, data, loss, torch.optim.Adam(model.parameters())


def small(batch=2, length=5):
    model = Characters(characters=32, width=16)
    data = torch.randint(32, (batch, length)), torch.randint(32, (batch, length))
    return model, data, loss, torch.optim.Adam(model.parameters())
