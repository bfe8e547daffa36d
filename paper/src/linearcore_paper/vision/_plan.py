"""Plans an epoch in advance: order of the images, augmentation, learning rates.

All random numbers are float64 uniforms from a CPU generator, as in `linearcore.noise`. Two runs with the same seed therefore
use the same images in the same order with the same augmentation, for every loss and on every machine.
"""

import math

import torch
from torch import Tensor

from linearcore.runtime import stream_for
from linearcore_paper.vision._settings import Recipe

#: Largest shift of an image, in pixels.
MAX_SHIFT = 4


def steps_of(count: int, recipe: Recipe) -> int:
    """Returns the number of steps of an epoch over `count` images; incomplete batches are dropped."""
    return count // recipe.batch


def epoch_plan(count: int, recipe: Recipe, epoch: int) -> Tensor:
    """Draws the order and the augmentation of an epoch.

    Args:
        count: number of training images.
        recipe: its batch size, seed and augmentation are used.
        epoch: number of the epoch, from 0.

    Returns:
        (4, steps · batch) int64: index in the training set, shift down, shift right (both from −4 to 4), and 1 for mirrored
        images.

    Example:
        >>> epoch_plan(5, Recipe(batch=2, augment=False), epoch=0)[1:]
        tensor([[0, 0, 0, 0],
                [0, 0, 0, 0],
                [0, 0, 0, 0]])
    """
    stream = stream_for(f"epoch {epoch}", recipe.seed)
    # Drawn for all images even if unused, so that batch size and augmentation do not change the order.
    uniforms = torch.rand(4, count, dtype=torch.float64, generator=stream)
    num_used = steps_of(count, recipe) * recipe.batch
    order = uniforms[0].argsort(stable=True)[:num_used]
    if not recipe.augment:
        return torch.stack([order, *torch.zeros(3, num_used, dtype=torch.int64)])
    shifts = (uniforms[1:3, :num_used] * (2 * MAX_SHIFT + 1)).long() - MAX_SHIFT
    return torch.stack([order, *shifts, (uniforms[3, :num_used] < 0.5).long()])


def epoch_rates(steps: int, recipe: Recipe, epoch: int) -> Tensor:
    """Returns the learning rate of each step of an epoch, (steps,) float32.

    Args:
        steps: number of steps per epoch.
        recipe: its learning rate, schedule, warmup and epochs are used.
        epoch: number of the epoch, from 0.

    Example:
        >>> recipe = Recipe(lr=1.0, epochs=2)
        >>> torch.cat([epoch_rates(2, recipe, epoch) for epoch in range(2)])
        tensor([1.0000, 0.8536, 0.5000, 0.1464])
    """
    total = steps * recipe.epochs
    return torch.tensor([_rate_at(step, total, recipe) for step in range(epoch * steps, (epoch + 1) * steps)])


def _rate_at(step: int, total: int, recipe: Recipe) -> float:
    warmup_steps = round(recipe.warmup * total)
    if step < warmup_steps:
        return recipe.lr * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total - warmup_steps)
    if recipe.schedule == "cosine":
        return recipe.lr * (1 + math.cos(math.pi * progress)) / 2
    return recipe.lr * (1 - progress) if recipe.schedule == "linear" else recipe.lr
