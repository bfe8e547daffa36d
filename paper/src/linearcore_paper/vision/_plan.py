"""What happens in an epoch, decided before it begins: order, augmentation, rates.

Everything is drawn on the CPU from uniform numbers with 53 bits, as `linearcore.noise` draws them. Hence two runs with one
seed see the same images in the same order, moved and mirrored alike, whatever their loss and on whatever machine.
"""

import math

import torch
from torch import Tensor

from linearcore.runtime import stream_for
from linearcore_paper.vision._settings import Recipe

#: How far an image is moved at most, in pixels.
REACH = 4


def steps_of(count: int, recipe: Recipe) -> int:
    """Steps of an epoch over `count` images: full batches only."""
    return count // recipe.batch


def epoch_plan(count: int, recipe: Recipe, epoch: int) -> Tensor:
    """Which images an epoch sees, and how.

    Args:
        count: number of training images.
        recipe: its batch, seed and augmentation.
        epoch: from 0.

    Returns:
        (4, steps · batch) int64: place in the training set, how far down, how far to the right (both from −4 to 4), and 1
        for mirrored images.

    Example:
        >>> epoch_plan(5, Recipe(batch=2, augment=False), epoch=0)[1:]
        tensor([[0, 0, 0, 0],
                [0, 0, 0, 0],
                [0, 0, 0, 0]])
    """
    stream = stream_for(f"epoch {epoch}", recipe.seed)
    # Drawn for all images, and whether it is used or not: neither the batch nor augmentation changes the rest.
    draws = torch.rand(4, count, dtype=torch.float64, generator=stream)
    used = steps_of(count, recipe) * recipe.batch
    order = draws[0].argsort(stable=True)[:used]
    if not recipe.augment:
        return torch.stack([order, *torch.zeros(3, used, dtype=torch.int64)])
    moved = (draws[1:3, :used] * (2 * REACH + 1)).long() - REACH
    return torch.stack([order, *moved, (draws[3, :used] < 0.5).long()])


def epoch_rates(steps: int, recipe: Recipe, epoch: int) -> Tensor:
    """The learning rate of each step of an epoch, (steps,) float32.

    Args:
        steps: of an epoch.
        recipe: its rate, schedule, warmup and epochs.
        epoch: from 0.

    Example:
        >>> recipe = Recipe(rate=1.0, epochs=2)
        >>> torch.cat([epoch_rates(2, recipe, epoch) for epoch in range(2)])
        tensor([1.0000, 0.8536, 0.5000, 0.1464])
    """
    total = steps * recipe.epochs
    return torch.tensor([_rate_at(step, total, recipe) for step in range(epoch * steps, (epoch + 1) * steps)])


def _rate_at(step: int, total: int, recipe: Recipe) -> float:
    rising = round(recipe.warmup * total)
    if step < rising:
        return recipe.rate * (step + 1) / rising
    done = (step - rising) / max(1, total - rising)
    if recipe.schedule == "cosine":
        return recipe.rate * (1 + math.cos(math.pi * done)) / 2
    return recipe.rate * (1 - done) if recipe.schedule == "linear" else recipe.rate
