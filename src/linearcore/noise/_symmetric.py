"""Symmetric noise: every wrong label is as likely as every other."""

from linearcore._arrays import Labels
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels


def symmetric(labels: Labels, rate: float, *, num_classes: int, seed: int) -> NoisyLabels:
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
        (torch.Size([3000]), '762462e4db5a')
        >>> noisy.transitions
        tensor([[610, 198, 192],
                [213, 599, 188],
                [183, 187, 630]])

    Cost: O(number of labels) time and memory, on the CPU.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    # `which` < 1, but its product with n − 1 may round up to n − 1, which would leave the label as it was.
    step = 1 + (draw.which * (num_classes - 1)).long().clamp(max=num_classes - 2)
    # Multiplying by the flip keeps `rate = 0` exact; `chance` never reaches 1, so `rate = 1` is exact too.
    noisy = (draw.clean + step * (draw.chance < rate)) % num_classes
    return draw.finish(noisy, rate=rate, law={"generator": "symmetric"})
