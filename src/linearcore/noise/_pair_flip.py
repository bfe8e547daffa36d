"""Pair flips: every class has one other class that it is mistaken for."""

from collections.abc import Mapping

import torch
from torch import Tensor

from linearcore._arrays import Labels
from linearcore._checks import complaint
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels

#: CIFAR-10's classes that look alike: truck → automobile, bird → airplane, deer → horse, cat ↔ dog (Patrini et al. 2017).
CIFAR10_PAIRS: Mapping[int, int] = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}


def pair_flip(
    labels: Labels, rate: float, *, num_classes: int, seed: int, to: Mapping[int, int] | None = None
) -> NoisyLabels:
    """Turns each label into its class's partner with probability `rate`.

    The hardest noise at a given rate: all mistakes of a class point the same way, and beyond rate ½ the wrong label is the
    likelier one. With m(y) the partner of class y, independently for each label,

        P(ỹ = m(y)) = rate,    P(ỹ = y) = 1 − rate.

    Without `to` the partner is the next class, m(y) = y + 1 mod n. A class that `to` leaves out keeps its labels: with
    `CIFAR10_PAIRS` and balanced classes a rate of 0.4 makes 20 % of all labels wrong, not 40 %. Papers call either number
    the rate; `realised_rate` of the result is the share of all labels.

    Draws depend on `seed` and the number of labels only and are nested in the rate, as with `symmetric`.

    Args:
        labels: clean labels in 0..n−1, any shape.
        rate: probability that a label of a class with a partner is wrong, in [0, 1].
        num_classes: n ≥ 2.
        seed: a non-negative integer that names the draw.
        to: class → partner, another class.

    Returns:
        The noisy labels; `law["to"]` lists the partner of every class, itself where there is none.

    Raises:
        TypeError: if `labels` are no integers.
        ValueError: if an argument is out of its range.

    Example:
        >>> noisy = pair_flip([0, 1, 2] * 1000, 0.4, num_classes=3, seed=0)
        >>> noisy.transitions
        tensor([[610, 390,   0],
                [  0, 599, 401],
                [370,   0, 630]])
        >>> pair_flip([3, 5, 8] * 10, 1.0, num_classes=10, seed=0, to=CIFAR10_PAIRS).labels[:3]
        tensor([5, 3, 8])

    Cost: O(number of labels) time and memory, on the CPU.

    Han et al., Co-teaching (NeurIPS 2018), for the next class; Patrini et al., Making deep neural networks robust to label
    noise (CVPR 2017), for classes that look alike.
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
    for source, goal in to.items():
        if source == goal or not all(isinstance(label, int) and 0 <= label < num_classes for label in (source, goal)):
            must = f"map classes in 0..{num_classes - 1} to other ones"
            raise ValueError(complaint("to", must, f"{source!r}: {goal!r}", advice))
        partner[source] = goal
    return partner
