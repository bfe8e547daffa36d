"""Class-conditional noise: a matrix says how often each class is taken for each other one."""

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
    """Draws each label from the row of its class in a transition matrix.

    The general law of noise that does not look at the input; `symmetric` and `pair_flip` are two of its matrices, and with
    the same seed give the same labels. With clean label y, independently for each label,

        P(ỹ = v) = T[y, v].

    The matrix of a real labeller is the usual choice: `NoisyLabels.transitions` of a human set, its rows divided by their
    sums, gives noise with people's confusions but without their dependence on the image.

    Draws of (1 − r)·I + r·Q with one Q and one seed are nested in r. They depend on `seed`, the matrix and the labels only.

    Args:
        labels: clean labels in 0..n−1, any shape.
        transitions: T, shape (n, n), non-negative, rows that sum to 1 to within 1e-6.
        seed: a non-negative integer that names the draw.

    Returns:
        The noisy labels; `rate` is the expected share of wrong ones, the mean of 1 − T[y, y] over these labels (0 if there
        are none), and `law["matrix"]` is the SHA-256 of T as little-endian float64 in row order.

    Raises:
        TypeError: if `labels` are no integers.
        ValueError: if an argument is out of its range.

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
    wrong = (1 - matrix.diagonal())[draw.clean]
    flips = (draw.chance < wrong).nonzero().squeeze(1)
    noisy = draw.clean.clone()
    noisy[flips] = wrong_labels(draw.clean[flips], matrix[draw.clean[flips]], draw.which[flips])
    content = matrix.numpy().astype("<f8").tobytes()
    law = {"generator": "class_conditional", "matrix": hashlib.sha256(content).hexdigest()}
    return draw.finish(noisy, rate=float(wrong.mean()) if len(wrong) else 0.0, law=law)


def _row_stochastic(transitions: Numbers | Sequence[Sequence[float]]) -> Tensor:
    matrix = torch.as_tensor(transitions, dtype=torch.float64).detach().cpu().contiguous()
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = tuple(matrix.shape)
        raise ValueError(complaint("transitions", "be a square matrix", f"shape {shape}", "one row and column a class"))
    check_num_classes(len(matrix))
    holds("transitions", (matrix >= 0) & matrix.isfinite(), "be probabilities", "divide counts by the sums of their rows")
    unit = (matrix.sum(1) - 1).abs() <= 1e-6
    holds("transitions", unit, "have rows that sum to 1", "divide each row by its sum")
    # Exactly 1 where the row says so: without this a class that never errs would err by the rounding of its row's sum.
    others = matrix * (1 - torch.eye(len(matrix), dtype=matrix.dtype))
    diagonal = torch.where(others.sum(1) == 0, 1.0, matrix.diagonal())
    return others + diagonal.diag()
