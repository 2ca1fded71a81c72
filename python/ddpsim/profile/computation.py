"""What the all-reduces run beside."""
import torch

from .parameters import accumulator_of, parameters_of


class Passes:
    """Forward and backward of the user's model. Each gradient in its place is a place for an
    all-reduce."""

    def __init__(self, model, batch, loss):
        self.model, self.batch, self.loss = model, batch, loss
        self.at_place, self.place = None, 0
        self.accumulators = []  # they live as long as somebody holds them
        for parameter in parameters_of(model):
            if parameter.tensor.requires_grad:
                accumulator = accumulator_of(parameter.tensor)
                accumulator.register_hook(self.gradient_is_ready)
                self.accumulators.append(accumulator)

    def gradient_is_ready(self, *_):
        if self.at_place:
            self.at_place(self.place)
            self.place += 1

    def __call__(self, at_place=None):
        self.at_place, self.place = at_place, 0
        for parameter in self.model.parameters():
            parameter.grad = None
        self.loss(self.model, self.batch).backward()


class Multiplications:
    """Matrix multiplications of some 20 ms, where there is no model. Before each is a place for an
    all-reduce."""

    def __init__(self, device, clock):
        extent = 512 if device.type == 'cpu' else 4096
        self.left, self.right = (torch.randn(extent, extent, device=device) for _ in range(2))
        self.out = torch.empty_like(self.left)
        self.count = 1
        self()
        for _ in range(3):
            begin = clock.mark()
            self()
            end = clock.mark()
            clock.settle()
            self.count = max(1, round(0.02 * self.count / max(1e-6, clock.seconds(begin, end))))

    def __call__(self, at_place=None):
        for place in range(self.count):
            if at_place:
                at_place(place)
            torch.mm(self.left, self.right, out=self.out)
