"""Symmetric noise: all wrong labels are equally likely."""

from linearcore._arrays import Labels
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels


def symmetric(labels: Labels, rate: float, *, num_classes: int, seed: int) -> NoisyLabels:
    """Replaces each label with probability `rate` by one of the n − 1 other classes, uniformly.

    This is the simplest noise model. Most theory on noise-robust losses assumes it. Human errors depend on the class and on
    the input. With clean label y, independently for each label,

        P(ỹ = y) = 1 − rate,    P(ỹ = v) = rate / (n − 1)    for v ≠ y.

    So `rate` is the expected fraction of wrong labels. Some papers resample over all n classes instead, so that only
    rate·(n − 1)/n of the labels are wrong. The actual fraction is `realised_rate` of the result. The true label is the most
    likely one if rate < 1 − 1/n.

    The result depends on `seed` and the number of labels, and not on torch's global seed, the device or the dtype of
    `labels`. With the same seed, a label that is wrong at one rate is wrong at every higher rate, with the same wrong label.
    So results at different rates can be compared.

    Args:
        labels: clean labels in 0..n−1, any shape: an integer tensor or array, or a sequence of ints.
        rate: probability of a wrong label, in [0, 1].
        num_classes: n ≥ 2.
        seed: random seed, a non-negative integer.

    Returns:
        The noisy labels with their transition counts and hash.

    Raises:
        TypeError: if `labels` are not integers.
        ValueError: if an argument is out of range.

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
    # `which` < 1, but its product with n − 1 may round up to n − 1, which would not change the label.
    offset = 1 + (draw.which * (num_classes - 1)).long().clamp(max=num_classes - 2)
    # `chance` is at least 0 and below 1, so rate=0 flips no label and rate=1 flips all.
    noisy = (draw.clean + offset * (draw.chance < rate)) % num_classes
    return draw.finish(noisy, rate=rate, law={"generator": "symmetric"})
