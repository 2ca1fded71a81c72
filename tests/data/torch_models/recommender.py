"""A small DLRM: sparse embedding bags, dense MLPs, dot interaction."""
import torch
from torch import nn


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    def __init__(self, rows=100000, tables=8, dim=64, sparse=True):
        super().__init__()
        self.emb = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum", sparse=sparse)
                                 for _ in range(tables))
        self.bottom = mlp([13, 512, 256, dim])
        n = tables + 1
        self.top = mlp([dim + n * (n - 1) // 2, 512, 256])
        self.last = nn.Linear(256, 1)

    def forward(self, dense, indices, offsets):
        x = self.bottom(dense)
        ly = [e(indices[k], offsets[k]) for k, e in enumerate(self.emb)]
        t = torch.cat([x] + ly, dim=1).view(x.shape[0], -1, x.shape[1])
        z = torch.bmm(t, t.transpose(1, 2))
        i, j = torch.tril_indices(t.shape[1], t.shape[1], -1)
        return self.last(self.top(torch.cat([x, z[:, i, j]], dim=1)))


def make(batch=2048, sparse=True):
    model = DLRM(sparse=sparse)
    dense = torch.randn(batch, 13)
    hot = 4
    indices = torch.randint(0, 100000, (8, batch * hot))
    offsets = torch.arange(0, batch * hot, hot).repeat(8, 1)
    y = torch.rand(batch, 1)
    data = dense, indices, offsets, y
    return model, data, nn.BCEWithLogitsLoss(), torch.optim.SGD(model.parameters(), 0.1)


def make_dense(batch=2048):
    return make(batch, False)
