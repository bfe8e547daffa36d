"""The networks of `ngram`, which compute emissions."""

import torch
from torch import Tensor, nn

from linearcore_paper.experiments.ngram.chunks import Task


def make_network(task: Task) -> nn.Module:
    """Returns a new network for a task."""
    return StringNetwork(task) if task.length else Network(task)


class Network(nn.Module):
    """Emissions from a window of three positions: an MLP on sums of embeddings, or a linear layer on numbers."""

    def __init__(self, task: Task, width: int = 48, hidden: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, width, padding_idx=0) for size in task.sizes)
        size = 3 * (width if task.sizes else task.parts["train"].inputs.shape[-1])
        layers = [nn.Dropout(0.2), nn.Linear(size, hidden), nn.Tanh(), nn.Dropout(0.2), nn.Linear(hidden, len(task.names))]
        self.top = nn.Sequential(*layers) if task.sizes else nn.Linear(size, len(task.names))

    def forward(self, inputs: Tensor) -> Tensor:
        """Returns emissions (B, L, |Y|)."""
        rows = torch.stack([table(inputs[..., i]) for i, table in enumerate(self.tables)]).sum(0) if self.tables else inputs
        padded = nn.functional.pad(rows, (0, 0, 1, 1))
        emissions: Tensor = self.top(torch.cat([padded[:, :-2], rows, padded[:, 2:]], -1))
        return emissions


class StringNetwork(nn.Module):
    """Emissions of all positions of a string from the sum of the embeddings of a word's features: an MLP."""

    def __init__(self, task: Task, width: int = 48, hidden: int = 256) -> None:
        super().__init__()
        tables = [nn.Embedding(size, width, padding_idx=0) for size in task.sizes]
        for table in tables:  # With the default, 1, the sum of eight saturates tanh.
            nn.init.normal_(table.weight, std=0.1)
        self.tables = nn.ModuleList(tables)
        self.shape = task.length, len(task.names)
        layers = [nn.Dropout(0.2), nn.Linear(width, hidden), nn.Tanh(), nn.Dropout(0.2)]
        self.top = nn.Sequential(*layers, nn.Linear(hidden, task.length * len(task.names)))

    def forward(self, inputs: Tensor) -> Tensor:
        """Returns emissions (B, L, |Y|) of words (B, 1, F)."""
        rows = torch.stack([table(inputs[:, 0, i]) for i, table in enumerate(self.tables)]).sum(0)
        emissions: Tensor = self.top(rows).unflatten(-1, self.shape)
        return emissions
