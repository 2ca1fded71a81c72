"""A multilayer perceptron with biases; 24 MiB of gradients if LARGE is set in the environment."""
import os

import torch


def make():
    torch.manual_seed(0)
    widths = [1024] * 7 if os.environ.get('LARGE') else [64, 96, 32, 10]
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    batch = torch.randn(64, widths[0]), torch.randn(64, widths[-1])

    def loss(model, batch):
        return torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
