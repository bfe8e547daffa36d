"""Symmetric noise: every wrong label is as likely as every other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint, holds
from linearcore.noise._noisy_labels import NoisyLabels, describe_draw


def symmetric(
    labels: Tensor | npt.NDArray[np.integer] | Sequence[int], rate: float, *, num_classes: int, seed: int
) -> NoisyLabels:
    """Makes each label wrong with probability `rate`, the wrong one uniform over the n − 1 others.

    The simplest law, and the one that theory on noise tolerance is mostly about; mistakes that people make depend on
    the class and on the input. With clean label y, independently for each label,

        P(ỹ = y) = 1 − rate,    P(ỹ = v) = rate / (n − 1)    for v ≠ y.

    So `rate` is the expected share of wrong labels, not the share of labels that are drawn anew (some papers draw over
    all n classes, which leaves rate·(n − 1)/n wrong). The realised share varies; `transitions` of the result has it.
    The best label stays the most likely one while rate < 1 − 1/n.

    The draw depends on `seed` and on how many labels there are, never on the global random streams, the device or the
    dtype of `labels`. With the same seed, a label that is wrong at one rate is wrong at every higher rate, with the same
    wrong label, so that curves over the rate are not blurred by fresh draws.

    Args:
        labels: clean labels in 0..n−1, any shape: an integer tensor or array, or a sequence of ints.
        rate: probability of a wrong label, in [0, 1].
        num_classes: n ≥ 2.
        seed: a non-negative integer that names the draw.

    Returns:
        The noisy labels with their transition counts and hash.

    Raises:
        TypeError: if `labels` are no integers.
        ValueError: if an argument is out of its range.

    Example:
        >>> noisy = symmetric([0, 1, 2] * 1000, 0.4, num_classes=3, seed=0)
        >>> noisy.labels.shape, noisy.hash[:12]
        (torch.Size([3000]), '8da385c68367')
        >>> noisy.transitions
        tensor([[601, 200, 199],
                [172, 628, 200],
                [233, 193, 574]])

    Cost: O(number of labels) time and memory, on the CPU.
    """
    _check_options(rate, num_classes, seed)
    clean = _as_labels(labels, num_classes)
    generator = torch.Generator(device="cpu").manual_seed(seed)
    # Both numbers are drawn for every label, wrong or not: this is what makes the draws of two rates nested.
    chance, which = torch.rand(2, clean.numel(), dtype=torch.float64, generator=generator).reshape(2, *clean.shape)
    # `which` < 1, but its product with n − 1 may round up to n − 1, which would leave the label as it was.
    step = 1 + (which * (num_classes - 1)).long().clamp(max=num_classes - 2)
    # Multiplying by the flip keeps `rate = 0` exact; rand never reaches 1, so `rate = 1` is exact too.
    step = step * (chance < rate)
    noisy = (clean + step.to(clean.device)) % num_classes
    return describe_draw(clean, noisy, rate=float(rate), num_classes=num_classes)


def _check_options(rate: float, num_classes: int, seed: int) -> None:
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "count the classes"))
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise ValueError(complaint("rate", "be a probability", repr(rate), "pass a number in [0, 1], 0.2 for 20 %"))
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(complaint("seed", "be a non-negative integer below 2**63", repr(seed), "pass 0, for example"))


def _as_labels(labels: Tensor | npt.NDArray[np.integer] | Sequence[int], num_classes: int) -> Tensor:
    tensor = torch.as_tensor(labels)
    if tensor.numel() == 0:
        tensor = tensor.long()  # torch calls an empty list floating point
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint("labels", "be integers", tensor.dtype, "pass class indices, for example `.long()`"))
    tensor = tensor.long()
    in_range = (tensor >= 0) & (tensor < num_classes)
    holds("labels", in_range, f"lie in 0..{num_classes - 1}", "raise `num_classes`, or take out ignored labels first")
    return tensor
