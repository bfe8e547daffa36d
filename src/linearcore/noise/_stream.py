"""Random numbers of the label-noise laws, and the choice of a wrong label.

All randomness comes from uniform numbers in [0, 1) with 53 random bits, from a Mersenne Twister on the CPU. They are equal
bit by bit on every machine. For each label `chance` decides whether it is wrong, and `which` decides what it becomes. Both
are sampled first, for every label and for every law. So with the same seed, labels that are wrong at one rate are wrong at
every higher rate, and two laws with the same probabilities give the same labels.

Values computed from features (a matrix product, a softmax) may differ in their last bits between machines. A label then
differs only if its uniform number, which does not depend on the features, lies between the two values of a threshold. For
3,072 pixels and another order of summation these values differ by at most 1e-11, and by 1e-15 on average. So the probability
that any of 50,000 labels in 10 classes differs is about 1e-9.
"""

import math

import torch
from torch import Tensor

from linearcore._streams import stream_for


def seeded(seed: int, purpose: str = "wrong labels") -> torch.Generator:
    """Returns the generator of a seed and a purpose. It differs from the generator of torch.manual_seed(seed)."""
    return stream_for(purpose, seed)


def uniform(stream: torch.Generator, *shape: int) -> Tensor:
    """Returns uniform float64 numbers in [0, 1)."""
    return torch.rand(*shape, dtype=torch.float64, generator=stream)


def normal(stream: torch.Generator, *shape: int) -> Tensor:
    """Returns float64 standard normal numbers by the Box–Muller transform; torch.randn differs between processors."""
    count = math.prod(shape)
    first, second = uniform(stream, 2, (count + 1) // 2)
    radius = (-2 * torch.log1p(-first)).sqrt()
    angle = 2 * math.pi * second
    return torch.cat([radius * angle.cos(), radius * angle.sin()])[:count].reshape(shape)


def wrong_labels(clean: Tensor, weights: Tensor, which: Tensor) -> Tensor:
    """Samples one wrong label per row, with probability proportional to its weight.

    Classes are ordered cyclically, starting after the true class, as in `symmetric`. So equal weights give the same labels.

    Args:
        clean: (N,) true labels.
        weights: (N, n) non-negative; the weight of the true class is ignored, and some other weight must be positive.
        which: (N,) uniform numbers.

    Returns:
        (N,) int64, different from `clean` in every row.
    """
    num_classes = weights.shape[1]
    others = (clean[:, None] + torch.arange(1, num_classes)) % num_classes
    cumulative = weights.gather(1, others).cumsum(1)
    # `which` is at most 1 − 2⁻⁵³, so the threshold is below the total, and a last class with weight 0 is never chosen.
    threshold = which[:, None] * cumulative[:, -1:]
    index = (cumulative <= threshold).sum(1, keepdim=True)
    return others.gather(1, index).squeeze(1)
