"""ResNeXt-50 (32 x 4d): bottlenecks whose 3 x 3 convolution is in 32 groups. With one group of
width 64 it is ResNet-50 (`resnet50`), layer by layer torchvision's.

    ddpsim describe scenarios/examples/models/resnext.py -o resnext.yaml
"""
import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs, planes, stride, groups, width_per_group):
        super().__init__()
        width, outputs = planes * width_per_group // 64 * groups, 4 * planes
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNeXt(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), groups=32, width_per_group=4, classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs, self.stages = 64, len(blocks)
        for stage, count in enumerate(blocks):
            planes, members = 64 << stage, []
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                members.append(Bottleneck(inputs, planes, stride, groups, width_per_group))
                inputs = 4 * planes
            setattr(self, f'layer{stage + 1}', nn.Sequential(*members))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f'layer{stage + 1}')(x)
        return self.fc(self.avgpool(x).flatten(1))


def made(model, batch, side, classes):
    data = torch.randn(batch, 3, side, side), torch.randint(classes, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    return model, data, nn.CrossEntropyLoss(), optimizer


def make(batch=64):
    return made(ResNeXt(), batch, 224, 1000)


def resnet50(batch=64):
    return made(ResNeXt(groups=1, width_per_group=64), batch, 224, 1000)


def small(batch=2):
    return made(ResNeXt(blocks=(1, 2), groups=4, width_per_group=8, classes=10), batch, 64, 10)
