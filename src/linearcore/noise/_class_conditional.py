"""Class-conditional noise, given by a transition matrix."""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from linearcore._arrays import Labels, Numbers, check_num_classes
from linearcore._checks import complaint, holds
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels
from linearcore.noise._stream import wrong_labels


def class_conditional(labels: Labels, transitions: Numbers | Sequence[Sequence[float]], *, seed: int) -> NoisyLabels:
    """Samples each label from the row of its class in a transition matrix.

    This is the general noise model that does not depend on the input. `symmetric` and `pair_flip` are special cases, and
    give the same labels for the same seed. With clean label y, independently for each label,

        P(ỹ = v) = T[y, v].

    A typical T is the confusion matrix of human annotators: `NoisyLabels.transitions` of a human label set, with each row
    divided by its sum. Unlike human errors, the noise then does not depend on the image.

    For T = (1 − r)·I + r·Q, with the same Q and seed, labels that are wrong at one r are wrong at every higher r.

    Args:
        labels: clean labels in 0..n−1, any shape.
        transitions: T, shape (n, n), non-negative; each row sums to 1 within 1e-6.
        seed: random seed, a non-negative integer.

    Returns:
        The noisy labels. `rate` is the expected fraction of wrong labels, the mean of 1 − T[y, y] (0 without labels).
        `law["matrix"]` is the SHA-256 of T as little-endian float64 in row order.

    Raises:
        TypeError: if `labels` are not integers.
        ValueError: if an argument is out of range.

    Example:
        >>> confusions = [[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]
        >>> noisy = class_conditional([0, 1, 2] * 1000, confusions, seed=0)
        >>> round(noisy.rate, 6), noisy.hash[:12]
        (0.2, '6d208e32a64b')
        >>> noisy.transitions
        tensor([[ 898,  102,    0],
                [   0, 1000,    0],
                [ 173,  287,  540]])

    Cost: O(number of labels · n) time and memory, on the CPU.
    """
    matrix = _row_stochastic(transitions)
    draw = LabelDraw.start(labels, num_classes=len(matrix), seed=seed)
    flip_rates = (1 - matrix.diagonal())[draw.clean]
    flips = (draw.chance < flip_rates).nonzero().squeeze(1)
    noisy = draw.clean.clone()
    noisy[flips] = wrong_labels(draw.clean[flips], matrix[draw.clean[flips]], draw.which[flips])
    content = matrix.numpy().astype("<f8").tobytes()
    law = {"generator": "class_conditional", "matrix": hashlib.sha256(content).hexdigest()}
    return draw.finish(noisy, rate=float(flip_rates.mean()) if len(flip_rates) else 0.0, law=law)


def _row_stochastic(transitions: Numbers | Sequence[Sequence[float]]) -> Tensor:
    matrix = torch.as_tensor(transitions, dtype=torch.float64).detach().cpu().contiguous()
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        shape, advice = tuple(matrix.shape), "pass one row and one column per class"
        raise ValueError(complaint("transitions", "be a square matrix", f"shape {shape}", advice))
    check_num_classes(len(matrix))
    holds("transitions", (matrix >= 0) & matrix.isfinite(), "be probabilities", "divide counts by the sums of their rows")
    is_normalized = (matrix.sum(1) - 1).abs() <= 1e-6
    holds("transitions", is_normalized, "have rows that sum to 1", "divide each row by its sum")
    # A class without other entries gets a diagonal of exactly 1; otherwise rounding would flip some of its labels.
    others = matrix * (1 - torch.eye(len(matrix), dtype=matrix.dtype))
    diagonal = torch.where(others.sum(1) == 0, 1.0, matrix.diagonal())
    return others + diagonal.diag()
