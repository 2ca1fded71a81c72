"""A small residual convolutional network with batch norm: 34 MiB of gradients, most of them ready
early."""
import torch


class Block(torch.nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        convolution = lambda begin, end, kernel, step: torch.nn.Conv2d(
            begin, end, kernel, step, kernel // 2, bias=False)
        self.first = convolution(inputs, outputs, 3, stride)
        self.first_norm = torch.nn.BatchNorm2d(outputs)
        self.second = convolution(outputs, outputs, 3, 1)
        self.second_norm = torch.nn.BatchNorm2d(outputs)
        self.shortcut = convolution(inputs, outputs, 1, stride)

    def forward(self, x):
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


def make(samples=8, side=64):
    torch.manual_seed(0)
    channels = (48, 96, 192, 384, 640)
    blocks = [Block(begin, end, 2) for begin, end in zip(channels, channels[1:])]
    model = torch.nn.Sequential(torch.nn.Conv2d(3, channels[0], 3, padding=1), *blocks,
                                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                torch.nn.Linear(channels[-1], 100))
    batch = torch.randn(samples, 3, side, side), torch.randint(100, (samples,))

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
    return model, batch, loss, optimizer


def small():
    """With little to compute: the same gradients in the same order."""
    return make(2, 16)
