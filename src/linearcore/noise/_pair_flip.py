"""Pair-flip noise: each class is confused with one other class."""

from collections.abc import Mapping

import torch
from torch import Tensor

from linearcore._arrays import Labels
from linearcore._checks import complaint
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels

#: Similar classes of CIFAR-10: truck → automobile, bird → airplane, deer → horse, cat ↔ dog (Patrini et al. 2017).
CIFAR10_PAIRS: Mapping[int, int] = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}


def pair_flip(
    labels: Labels, rate: float, *, num_classes: int, seed: int, to: Mapping[int, int] | None = None
) -> NoisyLabels:
    """Replaces each label by the partner of its class with probability `rate`.

    This is the hardest noise for a given rate: all wrong labels of a class are the same class, and above rate ½ the wrong
    label is more likely than the true one. With m(y) the partner of class y, independently for each label,

        P(ỹ = m(y)) = rate,    P(ỹ = y) = 1 − rate.

    By default the partner is the next class, m(y) = y + 1 mod n. Classes that are not in `to` keep their labels. So with
    `CIFAR10_PAIRS`, balanced classes and rate=0.4, 20 % of all labels are wrong, not 40 %. Papers use the word rate for
    either number; `realised_rate` of the result is the fraction of all labels.

    With the same seed, labels that are wrong at one rate are wrong at every higher rate, as with `symmetric`.

    Args:
        labels: clean labels in 0..n−1, any shape.
        rate: probability that a label of a class with a partner is wrong, in [0, 1].
        num_classes: n ≥ 2.
        seed: random seed, a non-negative integer.
        to: dict from class to partner class.

    Returns:
        The noisy labels; `law["to"]` lists the partner of every class, or the class itself if it has no partner.

    Raises:
        TypeError: if `labels` are not integers.
        ValueError: if an argument is out of range.

    Example:
        >>> noisy = pair_flip([0, 1, 2] * 1000, 0.4, num_classes=3, seed=0)
        >>> noisy.transitions
        tensor([[610, 390,   0],
                [  0, 599, 401],
                [370,   0, 630]])
        >>> pair_flip([3, 5, 8] * 10, 1.0, num_classes=10, seed=0, to=CIFAR10_PAIRS).labels[:3]
        tensor([5, 3, 8])

    References: Han et al., Co-teaching (NeurIPS 2018), for the next class; Patrini et al., Making deep neural networks
    robust to label noise (CVPR 2017), for `CIFAR10_PAIRS`.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    partner = _partners(to, num_classes)
    noisy = torch.where(draw.chance < rate, partner[draw.clean], draw.clean)
    return draw.finish(noisy, rate=rate, law={"generator": "pair_flip", "to": partner.tolist()})


def _partners(to: Mapping[int, int] | None, num_classes: int) -> Tensor:
    partner = torch.arange(num_classes)
    if to is None:
        return (partner + 1) % num_classes
    advice = "write a dict such as {3: 5, 5: 3}"
    if not isinstance(to, Mapping):
        raise ValueError(complaint("to", "map classes to classes", repr(to), advice))
    for source, other in to.items():
        if source == other or not all(isinstance(label, int) and 0 <= label < num_classes for label in (source, other)):
            must = f"map classes in 0..{num_classes - 1} to other classes"
            raise ValueError(complaint("to", must, f"{source!r}: {other!r}", advice))
        partner[source] = other
    return partner
