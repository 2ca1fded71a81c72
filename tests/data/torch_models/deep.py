"""Deep and narrow: 30 equal layers of 1.4 MB, whose gradients are small and many."""
import torch
from torch import nn


def make():
    torch.manual_seed(0)
    layers = []
    for _ in range(30):
        layers += [nn.Linear(600, 600), nn.ReLU()]
    model = nn.Sequential(*layers)
    batch = torch.randn(32, 600), torch.randn(32, 600)
    loss = lambda model, batch: nn.functional.mse_loss(model(batch[0]), batch[1])
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
