"""A vision transformer (ViT-B/16): pictures cut into patches, twelve blocks, a class.

    ddpsim describe scenarios/examples/models/vit.py -o vit.yaml
"""
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x):
        samples, tokens, width = x.shape
        q, k, v = (self.qkv(x).view(samples, tokens, 3, self.heads, width // self.heads)
                   .permute(2, 0, 3, 1, 4))
        x = scaled_dot_product_attention(q, k, v)
        return self.project(x.transpose(1, 2).reshape(samples, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, image=224, patch=16, width=768, depth=12, heads=12, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, pictures):
        x = self.patches(pictures).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


def make(batch=64):
    model = VisionTransformer()
    data = torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters())


def small(batch=4):
    model = VisionTransformer(image=32, patch=8, width=64, depth=2, heads=4, classes=10)
    data = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters())
