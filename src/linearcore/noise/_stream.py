"""Random numbers of the generators, and the step from a label to a wrong one.

All draws are made of one thing, uniform numbers in [0, 1) with 53 random bits from a Mersenne Twister on the CPU, which are
equal bit by bit on every machine. Each label has a `chance`, which decides whether it is wrong, and a `which`, which decides
what it becomes; both are drawn for every label and first of all, whatever the law. Hence draws of one seed are nested in the
rate, and two laws that agree somewhere give the same labels there.

What is computed from features (a matrix product, a softmax) may differ in its last bits between two machines. A label then
differs only if its uniform number, which does not depend on the features, falls between the two versions of a threshold.
With 3,072 stored pixels and another order of summation these are 1e-11 apart at most and 1e-15 on average, so that one of
50,000 labels in 10 classes differs with a probability of about 1e-9.
"""

import math

import torch
from torch import Tensor

from linearcore._streams import stream_for


def seeded(seed: int, purpose: str = "wrong labels") -> torch.Generator:
    """The stream that belongs to a seed; not the one that torch.manual_seed gives to whoever parts the data."""
    return stream_for(purpose, seed)


def uniform(stream: torch.Generator, *shape: int) -> Tensor:
    """Float64 numbers in [0, 1)."""
    return torch.rand(*shape, dtype=torch.float64, generator=stream)


def normal(stream: torch.Generator, *shape: int) -> Tensor:
    """Float64 standard normal numbers, by Box and Muller's transform: torch's own takes another way on every processor."""
    count = math.prod(shape)
    first, second = uniform(stream, 2, (count + 1) // 2)
    radius = (-2 * torch.log1p(-first)).sqrt()
    angle = 2 * math.pi * second
    return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count].reshape(shape)


def wrong_labels(clean: Tensor, weights: Tensor, which: Tensor) -> Tensor:
    """One wrong label for every row, with probability proportional to its weight.

    Classes are counted from the true one upwards and around, as `symmetric` does, so that equal weights give its labels.

    Args:
        clean: (N,) true labels.
        weights: (N, n) non-negative, not all zero but at the true class, whose own weight does not count.
        which: (N,) uniform numbers.

    Returns:
        (N,) int64, nowhere equal to `clean`.
    """
    num_classes = weights.shape[1]
    others = (clean[:, None] + torch.arange(1, num_classes)) % num_classes
    cumulative = weights.gather(1, others).cumsum(1)
    # `which` is at most 1 − 2⁻⁵³, so that the product is below the total and no class without weight is chosen at the end.
    height = which[:, None] * cumulative[:, -1:]
    step = (cumulative <= height).sum(1, keepdim=True)
    return others.gather(1, step).squeeze(1)
