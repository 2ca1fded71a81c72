#!/usr/bin/env python3
"""A model of your own in plain PyTorch: described on no device, predicted and tuned for a cluster.

`pip install .[torch]` first. Nothing is computed and no memory is taken.
"""
# %% A vision transformer.
import torch
from torch import nn

import ddpsim


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=768, depth=12, heads=12, patch=16, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.zeros(1, (224 // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


# %% One training step of it.
with torch.device('meta'):
    model = VisionTransformer()
    images, labels = torch.empty(64, 3, 224, 224), torch.empty(64, dtype=torch.long)
optimizer = torch.optim.AdamW(model.parameters())
workload = ddpsim.describe(model, (images, labels), nn.CrossEntropyLoss(), optimizer)
print(workload)

# %% Predicted on three devices, and tuned.
for device in ('a100-80', 'h100-sxm', 'b200'):
    result = ddpsim.run(workload, set={'cluster': {'device': device, 'ranks_per_node': 8,
                                                   'intra_node': 'nvlink4'}})
    print(f'{device:10} {result["bucketed"].step_ms:8.2f} ms')
plan = ddpsim.tune(workload, cluster='dgx-h100', nodes=4)
print(plan.ddp_kwargs)
