"""Trains many small networks at once: S seeds × T tries, with batched matrix products.

A seed has its own rows, labels, initial weights and order of the rows. The tries of a seed differ in learning rate and
scale of the loss only, so they share their batches. Every network is trained as if alone: losses are summed over networks,
and both optimisers work on each entry by itself.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.heads import NormedStack

#: Losses of rows: scores (N, C), labels (N,) and positions (N,) in the table of all rows of all networks, to (N,).
RowLosses = Callable[[Tensor, Tensor, Tensor], Tensor]
#: Rows of an evaluation step.
CHUNK = 1000


@dataclass(frozen=True)
class Steps:
    """How the networks are trained.

    Attributes:
        optimizer: "adam" or "sgd".
        lrs, scales: learning rate and factor of the loss of each try, (T,) each.
        epochs: number of epochs; the learning rate follows a cosine to zero.
        batch: rows per step.
        momentum, decay: momentum and weight decay of SGD.
        betas, eps: constants of Adam.
    """

    optimizer: str
    lrs: tuple[float, ...]
    scales: tuple[float, ...]
    epochs: int
    batch: int
    momentum: float = 0.9
    decay: float = 5e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8


class NetworkStack:
    """S × T networks with no or one hidden layer of ReLU units. The tries of a seed start from the same weights.

    Args:
        sizes: number of inputs, of hidden units if there is a hidden layer, and of classes.
        seeds: seeds of the initial weights.
        tries: number of tries T.
        is_normed: whether the last layer is `linearcore.NormedScores`, before which there is no bias.
    """

    def __init__(self, sizes: Sequence[int], seeds: Sequence[int], tries: int, *, is_normed: bool = False) -> None:
        starts = [_initial_weights(sizes, seed) for seed in seeds]
        # First layer (S, D, T, H), so that one product with the shared batch serves all tries; later ones (S, T, H, C).
        self.parameters: list[Tensor] = []
        self.try_axis: list[int] = []
        for place, same in enumerate(zip(*starts, strict=True)):
            if is_normed and place == len(starts[0]) - 1:
                continue
            axis = 2 if place < 2 else 1
            start = torch.stack(same).unsqueeze(axis)
            shape = [*start.shape[:axis], tries, *start.shape[axis + 1 :]]
            self.parameters.append(start.expand(shape).contiguous().requires_grad_())
            self.try_axis.append(axis)
        self.has_hidden = len(sizes) == 3
        self.tries = tries
        self.norm = NormedStack(len(seeds) * tries, sizes[-1]) if is_normed else None

    def scores(self, inputs: Tensor) -> Tensor:
        """Returns scores (S·T, B, C) of inputs (S, B, D)."""
        weight, *rest = self.parameters
        bias = rest.pop(0) if rest and (self.has_hidden or self.norm is None) else None
        outputs = _product(inputs, weight.flatten(2), None if bias is None else bias.flatten(2))
        outputs = outputs.unflatten(2, (self.tries, -1)).transpose(1, 2).flatten(0, 1)
        if self.has_hidden:
            outputs = _product(outputs.relu(), rest[0].flatten(0, 1), rest[1].flatten(0, 1) if len(rest) > 1 else None)
        if self.norm is not None:
            outputs = self.norm(outputs)
        return outputs

    @torch.no_grad()
    def evaluate(self, inputs: Tensor, rows: Tensor) -> Tensor:
        """Returns scores (S·T, R, C) of the rows (S, R) of inputs (N, D)."""
        if self.norm is not None:
            self.norm.eval()
        found = torch.cat([self.scores(inputs[part]) for part in rows.split(CHUNK, dim=1)], 1)
        if self.norm is not None:
            self.norm.train()
        return found


def train(
    networks: NetworkStack, inputs: Tensor, labels: Tensor, rows: Tensor, loss: RowLosses, steps: Steps, seeds: Sequence[int]
) -> None:
    """Trains all networks in place.

    Args:
        networks: S × T networks.
        inputs: (N, D).
        labels: (S, N) labels of each seed.
        rows: (S, R) training rows of each seed.
        loss: losses of rows; its last argument counts network by network, network · R + place in `rows`.
        steps: optimiser, learning rates, scales, epochs and batch size.
        seeds: seeds of the order of the rows.
    """
    tries, count = len(steps.lrs), rows.shape[1]
    batch = min(steps.batch, count)
    per_epoch = count // batch
    update = {"adam": _Adam, "sgd": _Momentum}[steps.optimizer](networks, steps)
    factor = torch.tensor(steps.scales).repeat(len(seeds)) / batch
    offsets = count * torch.arange(len(seeds) * tries).view(-1, 1)
    shufflers = [torch.Generator().manual_seed(2000 + seed) for seed in seeds]
    for epoch in range(steps.epochs):
        order = torch.stack([torch.randperm(count, generator=shuffler) for shuffler in shufflers])
        for place, part in enumerate(order[:, : per_epoch * batch].split(batch, dim=1)):
            chosen = rows.gather(1, part)
            scores = networks.scores(inputs[chosen])
            target = labels.gather(1, chosen).repeat_interleave(tries, 0)
            positions = part.repeat_interleave(tries, 0) + offsets
            losses = loss(scores.flatten(0, 1), target.flatten(), positions.flatten())
            (losses.view(len(factor), -1).sum(1) * factor).sum().backward()
            progress = (epoch * per_epoch + place) / (steps.epochs * per_epoch)
            update.step(0.5 * (1 + math.cos(math.pi * progress)))


class _Update:
    """Base class of optimisers with a learning rate for each try."""

    def __init__(self, networks: NetworkStack, steps: Steps) -> None:
        self.parameters, self.steps = networks.parameters, steps
        self.lrs = [
            torch.tensor(steps.lrs).view([-1 if axis == place else 1 for place in range(parameter.dim())])
            for parameter, axis in zip(networks.parameters, networks.try_axis, strict=True)
        ]
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]

    @torch.no_grad()
    def step(self, decline: float) -> None:
        """Makes one step with the learning rates multiplied by `decline`, and removes the gradients."""
        for place, parameter in enumerate(self.parameters):
            assert parameter.grad is not None
            self.change(place, parameter, parameter.grad, decline)
            parameter.grad = None

    def change(self, place: int, parameter: Tensor, gradient: Tensor, decline: float) -> None:
        """Changes one parameter."""
        raise NotImplementedError


class _Momentum(_Update):
    """torch.optim.SGD with momentum and weight decay."""

    def change(self, place: int, parameter: Tensor, gradient: Tensor, decline: float) -> None:
        self.means[place].mul_(self.steps.momentum).add_(gradient).add_(parameter, alpha=self.steps.decay)
        parameter.addcmul_(self.means[place], self.lrs[place], value=-decline)


class _Adam(_Update):
    """torch.optim.Adam."""

    def __init__(self, networks: NetworkStack, steps: Steps) -> None:
        super().__init__(networks, steps)
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.count = 0

    def change(self, place: int, parameter: Tensor, gradient: Tensor, decline: float) -> None:
        self.count += place == 0
        first, second = self.steps.betas
        self.means[place].lerp_(gradient, 1 - first)
        self.squares[place].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        divisor = self.squares[place].sqrt().div_(math.sqrt(1 - second**self.count)).add_(self.steps.eps)
        direction = torch.div(self.means[place], divisor, out=divisor)
        parameter.addcmul_(direction, self.lrs[place], value=-decline / (1 - first**self.count))


def _initial_weights(sizes: Sequence[int], seed: int) -> list[Tensor]:
    """Returns weight (in, out) and bias (1, out) of each layer, uniform in ±1/√in as in torch.nn.Linear."""
    stream = torch.Generator().manual_seed(1000 + seed)
    weights = []
    for before, after in itertools.pairwise(sizes):
        start = (2 * torch.rand(before + 1, after, generator=stream) - 1) / math.sqrt(before)
        weights += [start[:-1], start[-1:]]
    return weights


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.bmm(inputs, weight) if bias is None else torch.baddbmm(bias, inputs, weight)
