"""A ResNet-like stack whose batch norms are converted to SyncBatchNorm, as recipes for detection
and segmentation do."""
import torch
from torch import nn


def block(c):
    return nn.Sequential(nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU())


def net(n=20, c=64):
    return nn.Sequential(nn.Conv2d(3, c, 3, padding=1), *(block(c) for _ in range(n)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 10))


def make(batch=16):
    model = nn.SyncBatchNorm.convert_sync_batchnorm(net())
    data = torch.randn(batch, 3, 64, 64), torch.randint(0, 10, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1)


def plain(batch=16):
    model = net()
    data = torch.randn(batch, 3, 64, 64), torch.randint(0, 10, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1)
