"""A frozen backbone of 400 million fp32 parameters under a small trainable head."""
import torch
from torch import nn


def make(batch=8):
    body = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU()) for _ in range(95)))
    body.requires_grad_(False)
    head = nn.Linear(2048, 10)
    model = nn.Sequential(body, head)
    data = torch.randn(batch, 2048), torch.randint(0, 10, (batch,))
    return model, data, nn.CrossEntropyLoss(), torch.optim.AdamW(head.parameters())
