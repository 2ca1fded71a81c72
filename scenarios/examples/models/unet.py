"""A U-Net: down to ever smaller pictures, and up again beside what was kept on the way.

    ddpsim describe scenarios/examples/models/unet.py -o unet.yaml
"""
import torch
from torch import nn


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(8, outputs), nn.SiLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(8, outputs), nn.SiLU())


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.enlarge = nn.ConvTranspose2d(inputs, outputs, 2, stride=2)
        self.refine = double(2 * outputs, outputs)

    def forward(self, x, kept):
        return self.refine(torch.cat([self.enlarge(x), kept], dim=1))


class UNet(nn.Module):
    def __init__(self, channels=(64, 128, 256, 512), classes=21):
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((3, *channels), channels))
        self.pool = nn.MaxPool2d(2)
        self.middle = double(channels[-1], 2 * channels[-1])
        self.up = nn.ModuleList(Up(2 * c, c) for c in reversed(channels))
        self.head = nn.Conv2d(channels[0], classes, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
            x = self.pool(x)
        x = self.middle(x)
        for up, beside in zip(self.up, reversed(kept)):
            x = up(x, beside)
        return self.head(x)


def make(batch=8):
    model = UNet()
    data = torch.randn(batch, 3, 256, 256), torch.randint(21, (batch, 256, 256))
    return model, data, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())


def small(batch=2):
    model = UNet(channels=(8, 16), classes=4)
    data = torch.randn(batch, 3, 32, 32), torch.randint(4, (batch, 32, 32))
    return model, data, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters())
