"""Every kind of target that a multi-class loss takes, on four rows of five classes."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tests.snapshot.inputs import fixed, simplex, whole

ROWS, CLASSES = 4, 5
REDUCTIONS = ("mean", "sum", "none")


class Kind(NamedTuple):
    """A kind of target.

    Attributes:
        tensors: floating-point arguments by name: `scores` and whatever else can be differentiated by.
        rest: all other arguments, `target` among them unless it holds probabilities.
    """

    tensors: dict[str, Tensor]
    rest: dict[str, Any]


def kinds(dtype: torch.dtype) -> dict[str, Kind]:
    """The kinds by name. Options that a loss may lack, such as `class_margin`, can be told by `tensors`."""
    scores = fixed(1, ROWS, CLASSES, dtype=dtype)
    index = whole(2, CLASSES, ROWS)
    ignored = index.clone()
    ignored[1] = -100
    probabilities = simplex(3, ROWS, CLASSES, dtype=dtype)
    weight = fixed(4, CLASSES, dtype=dtype, low=0.25)
    sample_weight = fixed(5, ROWS, dtype=dtype, low=0.25)
    margin = fixed(6, CLASSES, dtype=dtype, low=0.0, high=1.0)
    masked, present = scores.clone(), probabilities.clone()
    masked[:, 2] = -math.inf
    present[:, 0] += present[:, 2]
    present[:, 2] = 0.0
    elsewhere = torch.where(index == 2, 0, index)
    wide = fixed(7, 2, CLASSES, 3, dtype=dtype)
    smooth = {"label_smoothing": 0.25}
    return {
        "index": Kind({"scores": scores}, {"target": index}),
        "index, one row": Kind({"scores": scores[0]}, {"target": index[0]}),
        "ignored": Kind({"scores": scores}, {"target": ignored}),
        "ignore_index=0": Kind({"scores": scores}, {"target": whole(8, 2, ROWS), "ignore_index": 0}),
        "probabilities": Kind({"scores": scores, "target": probabilities}, {}),
        "smoothing": Kind({"scores": scores}, {"target": ignored, **smooth}),
        "smoothed probabilities": Kind({"scores": scores, "target": probabilities}, dict(smooth)),
        "weight": Kind({"scores": scores, "weight": weight}, {"target": ignored}),
        "weight and probabilities": Kind({"scores": scores, "target": probabilities, "weight": weight}, {}),
        "weight and smoothing": Kind({"scores": scores, "weight": weight}, {"target": ignored, **smooth}),
        "sample_weight": Kind({"scores": scores, "sample_weight": sample_weight}, {"target": index}),
        "class_margin": Kind({"scores": scores, "class_margin": margin}, {"target": index}),
        "class_margin and probabilities": Kind({"scores": scores, "target": probabilities, "class_margin": margin}, {}),
        "masked": Kind({"scores": masked}, {"target": elsewhere}),
        "masked and probabilities": Kind({"scores": masked, "target": present}, {}),
        "scores (2, 5, 3)": Kind({"scores": wide}, {"target": whole(9, CLASSES, 2, 3)}),
        "probabilities (2, 5, 3)": Kind(
            {"scores": wide, "target": simplex(10, 2, 3, CLASSES, dtype=dtype).movedim(-1, 1).contiguous()}, {}
        ),
        "all options": Kind(
            {"scores": scores, "weight": weight, "sample_weight": sample_weight, "class_margin": margin},
            {"target": ignored, **smooth},
        ),
    }
