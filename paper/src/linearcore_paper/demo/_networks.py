"""Trains many small networks at once: one batched matrix product instead of a loop over seeds and rates."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from linearcore.heads import NormedStack

#: Maps scores (N, C) and class indices (N,) to losses (N,).
Loss = Callable[[Tensor, Tensor], Tensor]


class Networks:
    """S × R networks with one hidden ReLU layer; the R networks of a seed have the same initial weights.

    Args:
        seeds: S seeds of the initial weights.
        copies: R, the number of networks for each seed.
        sizes: inputs, hidden units, outputs.
        is_normed: whether `linearcore.NormedScores` is the last layer.
    """

    def __init__(self, seeds: Sequence[int], copies: int, sizes: tuple[int, int, int], *, is_normed: bool = False) -> None:
        inputs, hidden, outputs = sizes
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.seeds, self.copies = tuple(seeds), copies
        # A bias is a row (1, outputs) that `baddbmm` adds to every row of the batch.
        self.parameters = [
            _uniform(generators, shape, inputs_of_layer).repeat_interleave(copies, 0).requires_grad_()
            for shape, inputs_of_layer in (
                ((inputs, hidden), inputs),
                ((1, hidden), inputs),
                ((hidden, outputs), hidden),
                ((1, outputs), hidden),
            )
        ]
        self.norm = NormedStack(len(seeds) * copies, outputs) if is_normed else None

    def scores(self, inputs: Tensor, *, is_training: bool = False) -> Tensor:
        """Scores (S·R, B, C) for inputs (S·R, B, D), one batch for each network."""
        first, first_bias, second, second_bias = self.parameters
        hidden = torch.baddbmm(first_bias, inputs, first).relu()
        if self.norm is None:
            return torch.baddbmm(second_bias, hidden, second)
        # Without the bias: the norm cancels it, and Adam would amplify the rounding errors in its gradient.
        normed: Tensor = self.norm.train(is_training)(torch.bmm(hidden, second))
        return normed

    def accuracy(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Accuracy (S, R) on inputs (S, B, D); labels are (S, R, B), or (S, 1, B) if all copies have the same."""
        with torch.no_grad():
            best = self.scores(inputs.repeat_interleave(self.copies, 0)).argmax(-1)
        right = best.reshape(len(self.seeds), self.copies, -1) == labels
        return right.double().mean(-1)


def train(
    networks: Networks,
    inputs: Tensor,
    labels: Tensor,
    loss: Loss,
    *,
    learning_rate: float,
    epochs: int,
    batch_size: int,
) -> Iterator[int]:
    """Trains all networks with Adam and yields the number of each finished epoch.

    The order of the examples depends only on the seed, so that two losses see the same batches.

    Args:
        networks: the networks, trained in place.
        inputs: (S, N, D).
        labels: (S, R, N).
        loss: the loss of each example; each network minimises its mean over the batch.
        learning_rate: Adam's step size.
        epochs: passes over the examples.
        batch_size: examples of each network in a step.
    """
    count = inputs.shape[1]
    generators = [torch.Generator().manual_seed(seed) for seed in networks.seeds]
    inputs = inputs.repeat_interleave(networks.copies, 0)
    labels = labels.flatten(0, 1)
    network = torch.arange(len(inputs)).unsqueeze(1)
    optimizer = torch.optim.Adam(networks.parameters, lr=learning_rate, fused=True)
    for epoch in range(epochs):
        order = torch.stack([torch.randperm(count, generator=generator) for generator in generators])
        order = order.repeat_interleave(networks.copies, 0)
        for start in range(0, count, batch_size):
            rows = order[:, start : start + batch_size]
            scores = networks.scores(inputs[network, rows], is_training=True)
            losses = loss(scores.flatten(0, 1), labels[network, rows].flatten())
            optimizer.zero_grad()
            # The networks share no weights, so each gets the gradient of its own loss.
            (losses.sum() / rows.shape[1]).backward()
            optimizer.step()
        yield epoch + 1


def _uniform(generators: Sequence[torch.Generator], shape: tuple[int, int], inputs: int) -> Tensor:
    """One matrix for each generator, uniform in ±1/√inputs as in torch.nn.Linear."""
    return torch.stack([(2 * torch.rand(shape, generator=generator) - 1) / inputs**0.5 for generator in generators])
