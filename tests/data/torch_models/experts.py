"""Four blocks of a mixture of experts: every token goes to the two of four experts that its gate
prefers. Every expert sees the whole batch, weighted: none is ever without a gradient."""
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, inner, count=4, chosen=2):
        super().__init__()
        self.norm, self.gate, self.chosen = nn.LayerNorm(width), nn.Linear(width, count), chosen
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))
            for _ in range(count))

    def forward(self, x):
        seen = self.norm(x)
        weights = self.gate(seen).softmax(-1)
        least = weights.topk(self.chosen, -1).values[..., -1:]
        weights = weights * (weights >= least)
        for index, expert in enumerate(self.experts):
            x = x + weights[..., index:index + 1] * expert(seen)
        return x


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), *(Experts(256, 512) for _ in range(4)),
                          nn.Linear(256, 50))
    batch = torch.randn(32, 128), torch.randint(50, (32,))
    loss = lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1])
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
