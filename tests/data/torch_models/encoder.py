"""A small transformer encoder whose head is its embedding: 36 MiB of gradients, the embedding's
ready last."""
import torch


class Encoder(torch.nn.Module):
    def __init__(self, tokens=10000, width=320, layers=5):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, width)
        self.positions = torch.nn.Parameter(torch.zeros(64, width))
        layer = lambda: torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0,
                                                         batch_first=True)
        self.layers = torch.nn.ModuleList(layer() for _ in range(layers))
        self.head = torch.nn.Linear(width, tokens)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def make(samples=6):
    torch.manual_seed(0)
    model = Encoder()
    batch = torch.randint(10000, (samples, 64))

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
    return model, batch, loss, torch.optim.AdamW(model.parameters(), lr=1e-4)


def small():
    """With little to compute: the same gradients in the same order."""
    return make(1)
