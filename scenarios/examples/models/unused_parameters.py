"""A model with parameters that no gradient reaches: a second head that this step does not use, and
a frozen first layer. DDP needs find_unused_parameters for it.

    ddpsim describe scenarios/examples/models/unused_parameters.py -o unused.yaml
"""
import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.classes, self.boxes = nn.Linear(width, 100), nn.Linear(width, 4)

    def forward(self, x):
        return self.classes(self.body(self.frozen(x)))


def made(width, batch):
    model = TwoHeads(width)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    data = torch.randn(batch, width), torch.randint(100, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.AdamW(trained)


def make(batch=256):
    return made(1024, batch)


def small(batch=4):
    return made(16, batch)
