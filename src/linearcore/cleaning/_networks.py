"""One small network per fold, all trained together with batched matrix products."""

from collections.abc import Iterator

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.cleaning._losses import RowLoss
from linearcore.heads import NormedStack


class FoldNetworks:
    """K networks with one hidden layer of ReLU units and different initial weights.

    Args:
        folds: number of networks, K.
        sizes: number of inputs, hidden units and outputs.
        generator: random generator of the initial weights.
        is_normed: whether the last layer is `linearcore.NormedScores`.
    """

    def __init__(self, folds: int, sizes: tuple[int, int, int], generator: torch.Generator, is_normed: bool = False) -> None:
        self.parameters: list[Tensor] = []
        inputs, hidden, outputs = sizes
        for fan_in, fan_out in ((inputs, hidden), (hidden, outputs)):
            # Uniform in ±1/√fan_in, as in torch.nn.Linear; the last row is the bias.
            start = (2 * torch.rand(folds, fan_in + 1, fan_out, generator=generator) - 1) / max(1, fan_in) ** 0.5
            self.parameters += [start[:, :-1].clone().requires_grad_(), start[:, -1:].clone().requires_grad_()]
        self.norm = NormedStack(folds, outputs) if is_normed else None

    def scores(self, inputs: Tensor) -> Tensor:
        """Returns the training scores (K, B, C) of inputs (K, B, D), a batch for each network."""
        first, first_bias, second, second_bias = self.parameters
        hidden = torch.baddbmm(first_bias, inputs, first).relu()
        if self.norm is None:
            return torch.baddbmm(second_bias, hidden, second)
        # Batch normalisation removes the bias. Its gradient is then rounding noise, from which Adam would make full steps.
        normed: Tensor = self.norm(torch.bmm(hidden, second))
        return normed

    def scores_of(self, fold: int, inputs: Tensor) -> Tensor:
        """Returns the scores (B, C) of inputs (B, D) by one network."""
        first, first_bias, second, second_bias = (parameter[fold] for parameter in self.parameters)
        hidden = torch.addmm(first_bias, inputs, first).relu()
        return torch.addmm(second_bias, hidden, second) if self.norm is None else self.norm.evaluate(fold, hidden @ second)


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
    """Trains every network with Adam on its own rows, and yields the number of each finished epoch.

    Args:
        networks: K networks, trained in place.
        inputs: (N, D).
        labels: (N,).
        parts: K vectors of row indices, the training rows of each network. If their lengths differ, an epoch has as many
            rows as the shortest, and skips a random choice of the other rows.
        loss: loss of each row; every network minimises its mean over the batch.
        learning_rate: learning rate of Adam.
        epochs: number of epochs.
        batch_size: rows per step and network.
        generator: random generator of the order of the rows.

    Raises:
        ValueError: if the loss does not return one number per row.
    """
    optimizer = torch.optim.Adam(networks.parameters, lr=learning_rate, fused=True)
    shortest = min(map(len, parts))
    for epoch in range(1, epochs + 1):
        order = torch.stack([part[torch.randperm(len(part), generator=generator)[:shortest]] for part in parts])
        for rows in order.split(batch_size, dim=1):
            losses = loss(networks.scores(inputs[rows]).flatten(0, 1), labels[rows].flatten())
            if losses.shape != (rows.numel(),):
                advice = 'pass a loss with reduction="none"'
                raise ValueError(complaint("loss", "return one number per row", f"shape {tuple(losses.shape)}", advice))
            optimizer.zero_grad()
            # The networks share no weights, so the gradient of the sum contains the gradient of each network.
            (losses.sum() / rows.shape[1]).backward()
            optimizer.step()
        yield epoch
