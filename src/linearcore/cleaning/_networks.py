"""One small network for every fold, trained side by side: batched matrix products instead of a loop over the folds."""

from collections.abc import Iterator

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.cleaning._losses import RowLoss
from linearcore.heads import NormedStack


class FoldNetworks:
    """K networks with one hidden layer of rectified units, each with a start of its own.

    Args:
        folds: K.
        sizes: inputs, hidden units, outputs.
        generator: where the starts are drawn from.
        is_normed: whether they end in `linearcore.NormedScores`.
    """

    def __init__(self, folds: int, sizes: tuple[int, int, int], generator: torch.Generator, is_normed: bool = False) -> None:
        self.parameters: list[Tensor] = []
        inputs, hidden, outputs = sizes
        for width, above in ((inputs, hidden), (hidden, outputs)):
            # Uniform in ±1/√width, as torch.nn.Linear starts; the last row is the bias.
            start = (2 * torch.rand(folds, width + 1, above, generator=generator) - 1) / max(1, width) ** 0.5
            self.parameters += [start[:, :-1].clone().requires_grad_(), start[:, -1:].clone().requires_grad_()]
        self.norm = NormedStack(folds, outputs) if is_normed else None

    def scores(self, inputs: Tensor) -> Tensor:
        """Scores (K, B, C) of inputs (K, B, D) to train on, each network its own."""
        first, first_bias, second, second_bias = self.parameters
        hidden = torch.baddbmm(first_bias, inputs, first).relu()
        if self.norm is None:
            return torch.baddbmm(second_bias, hidden, second)
        # The norm removes any bias. Its gradient would be rounding alone, which Adam makes as large as any other.
        normed: Tensor = self.norm(torch.bmm(hidden, second))
        return normed

    def scores_of(self, fold: int, inputs: Tensor) -> Tensor:
        """Scores (B, C) of inputs (B, D) by one of them."""
        first, first_bias, second, second_bias = (parameter[fold] for parameter in self.parameters)
        hidden = torch.addmm(first_bias, inputs, first).relu()
        return torch.addmm(second_bias, hidden, second) if self.norm is None else self.norm.of(fold, hidden @ second)


def train_epochs(
    networks: FoldNetworks,
    inputs: Tensor,
    labels: Tensor,
    parts: list[Tensor],
    loss: RowLoss,
    *,
    learning_rate: float,
    epochs: int,
    batch_size: int,
    generator: torch.Generator,
) -> Iterator[int]:
    """Trains every network with Adam on the rows of its own part, and yields the number of each finished epoch.

    Args:
        networks: K networks, trained in place.
        inputs: (N, D).
        labels: (N,).
        parts: K vectors of row numbers. Where their lengths differ, all epochs are as long as the shortest, and an epoch
            leaves out other rows of the longer ones than the last did.
        loss: the loss of each row; every network minimises its mean over the batch.
        learning_rate: Adam's step size.
        epochs: passes.
        batch_size: rows of every network in a step.
        generator: where the order of the rows is drawn from.

    Raises:
        ValueError: if the loss gives anything but one number a row.
    """
    optimizer = torch.optim.Adam(networks.parameters, lr=learning_rate, fused=True)
    shortest = min(map(len, parts))
    for epoch in range(1, epochs + 1):
        order = torch.stack([part[torch.randperm(len(part), generator=generator)[:shortest]] for part in parts])
        for rows in order.split(batch_size, dim=1):
            losses = loss(networks.scores(inputs[rows]).flatten(0, 1), labels[rows].flatten())
            if losses.shape != (rows.numel(),):
                advice = 'pass a loss with reduction="none"'
                raise ValueError(complaint("loss", "give one number a row", f"shape {tuple(losses.shape)}", advice))
            optimizer.zero_grad()
            # No network has weights in common with another: the gradient of the sum is each network's own.
            (losses.sum() / rows.shape[1]).backward()
            optimizer.step()
        yield epoch
