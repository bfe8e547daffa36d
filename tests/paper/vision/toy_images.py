"""Small images whose classes are easy to see: each has its own colour, with noise on it."""

import functools

import torch

from linearcore.losses.baselines import cross_entropy
from linearcore_paper.vision import Images, Recipe

CLASSES = ("red", "green", "blue")
LOSS = functools.partial(cross_entropy, reduction="none")
SHORT = Recipe("small", width=4, epochs=3, batch=16, lr=0.05, seed=3)


def toy(count, seed=0, side=8):
    stream = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=stream)
    images = torch.randint(0, 120, (count, 3, side, side), generator=stream)
    images[torch.arange(count), labels] += 120
    return Images(images.to(torch.uint8), labels, CLASSES)


def same_weights(one, other):
    pairs = zip(one.network.state_dict().values(), other.network.state_dict().values(), strict=True)
    return all(torch.equal(left, right) for left, right in pairs)


def without_time(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]
