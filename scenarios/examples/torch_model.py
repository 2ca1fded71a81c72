"""What ddpsim.profile takes: a network of your own, a batch, how its loss is computed, and
an optimizer.

    python3 -m ddpsim.profile --script scenarios/examples/torch_model.py:make
"""
import torch


def make():
    layers, channels = [], [3, 48, 96, 192, 384, 640, 640]
    for inputs, outputs in zip(channels, channels[1:]):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, stride=1 if inputs == 3 else 2, padding=1),
                   torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                torch.nn.Linear(640, 100))
    batch = torch.randn(64, 3, 64, 64), torch.randint(100, (64,))

    def loss(model, batch):
        pictures, classes = batch
        return torch.nn.functional.cross_entropy(model(pictures), classes)
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
