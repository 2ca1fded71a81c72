"""DLRM (Naumov et al., arXiv 1906.00091): a table for each categorical feature, a network over the
dense ones, products of all pairs, and a network over these. Gradients of tables are dense, as
DistributedDataParallel sends them over NCCL.

    ddpsim describe scenarios/examples/models/dlrm.py -o dlrm.yaml
"""
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits


def layers(widths):
    """Linear and ReLU in turn."""
    members = []
    for inputs, outputs in zip(widths, widths[1:]):
        members += [nn.Linear(inputs, outputs), nn.ReLU()]
    return members


class Dlrm(nn.Module):
    def __init__(self, rows, width, dense, bottom, top):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in rows)
        self.bottom = nn.Sequential(*layers([dense, *bottom, width]))
        vectors = len(rows) + 1
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(*layers([width + pairs, *top]), nn.Linear(top[-1], 1))
        self.register_buffer('pair', torch.tril_indices(vectors, vectors, -1), persistent=False)

    def forward(self, dense, categories):
        low = self.bottom(dense)
        vectors = torch.stack([low] + [table(categories[:, number])
                                       for number, table in enumerate(self.tables)], 1)
        products = vectors @ vectors.transpose(1, 2)
        pairs = products[:, self.pair[0], self.pair[1]]
        return self.top(torch.cat([low, pairs], 1)).squeeze(1)


def loss(model, batch):
    dense, categories, clicked = batch
    return binary_cross_entropy_with_logits(model(dense, categories), clicked)


def made(rows, width, dense, bottom, top, batch):
    model = Dlrm(rows, width, dense, bottom, top)
    categories = torch.stack([torch.randint(count, (batch,)) for count in rows], 1)
    data = torch.rand(batch, dense), categories, torch.rand(batch)
    return model, data, loss, torch.optim.SGD(model.parameters(), lr=0.1)


def make(batch=2048):
    """13 dense and 26 categorical features, as Criteo's, with tables of 100 000 rows."""
    return made([100_000] * 26, 64, 13, (512, 256), (512, 256), batch)


def small(batch=4):
    return made([10, 20, 30], 8, 5, (16,), (16,), batch)
