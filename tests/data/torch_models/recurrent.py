"""A language model of two GRU layers: 48 MiB of gradients; the head's are ready at once, a layer's
all together."""
import torch


class Recurrent(torch.nn.Module):
    def __init__(self, tokens=6000, width=640):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, width)
        self.layers = torch.nn.GRU(width, width, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(width, tokens)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))[0])


def make(samples=16, length=12):
    torch.manual_seed(0)
    model = Recurrent()
    batch = torch.randint(6000, (samples, length))

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
    return model, batch, loss, torch.optim.Adam(model.parameters(), lr=1e-4)


def small():
    """With little to compute: the same gradients in the same order."""
    return make(2, 3)
