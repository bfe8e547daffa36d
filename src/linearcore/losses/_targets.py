"""Targets of a multi-class loss, as torch.nn.CrossEntropyLoss takes them, brought to rows."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint, holds, in_range, shape
from linearcore._torch import is_on_host


@dataclass(frozen=True)
class Rows:
    """A batch as rows.

    Attributes:
        scores: (N, C).
        index: (N,) class indices, 0 where not counted, or None.
        counted: (N,) booleans, or None when all rows count.
        wrong: (N,) booleans: the label is out of range, and the loss NaN. None when all are known to be right.
        probability: (N, C), or None.
        shape: the shape of the unreduced loss.
    """

    scores: Tensor
    index: Tensor | None
    counted: Tensor | None
    wrong: Tensor | None
    probability: Tensor | None
    shape: torch.Size

    def per_row(self, name: str, tensor: Tensor | None) -> Tensor | None:
        """A per-sample tensor, shaped as the unreduced loss, as one number a row."""
        if tensor is None:
            return None
        shape(name, tensor, tuple(self.shape), "give one number for every target")
        return tensor.reshape(-1)


def to_rows(scores: Tensor, target: Tensor, ignore_index: int) -> Rows:
    """Moves the classes last and everything else into rows.

    Scores (C), (N, C) or (N, C, d1, …, dk); targets without the C, or with it when they are probabilities. Scores with
    d1, …, dk are copied once, since their classes are not contiguous.
    """
    if scores.dim() == 0:
        advice = "classes are dimension 1, or dimension 0 of a single sample"
        raise ValueError(complaint("scores", "have shape (C), (N, C) or (N, C, d1, …, dk)", "a scalar", advice))
    if not isinstance(target, Tensor):
        raise TypeError(complaint("target", "be a torch tensor", type(target).__name__, "wrap it in torch.as_tensor"))
    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    rows = class_rows(scores)
    if target.shape == scores.shape:
        if not target.is_floating_point():
            advice = f"class indices would have shape {tuple(outer)}"
            raise TypeError(complaint("target", "be floating point when it has the shape of `scores`", target.dtype, advice))
        if ignore_index >= 0:
            advice = "give the samples to leave out a `sample_weight` of 0"
            raise ValueError(complaint("ignore_index", "be left alone with probability targets", ignore_index, advice))
        return Rows(rows, None, None, None, class_rows(target), outer)
    advice = "class indices have the shape of `scores` without the classes, probabilities all of it"
    shape("target", target, tuple(outer), advice)
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        advice = "convert it with `.long()`, or pass probabilities in the shape of `scores`"
        raise TypeError(complaint("target", "be integer class indices", target.dtype, advice))
    index = target.reshape(-1).long()
    if _all_count(index, rows.shape[1], ignore_index):
        return Rows(rows, index, None, None, None, outer)
    counted = index != ignore_index
    index, wrong = in_range("target", index.masked_fill(~counted, 0), rows.shape[1], "equal to `ignore_index`")
    return Rows(rows, index, counted, wrong, None, outer)


def _all_count(index: Tensor, num_classes: int, ignore_index: int) -> bool:
    """Whether all labels are known to be in range and none is ignored. False on a device, where finding out would wait."""
    if index.numel() == 0 or not is_on_host(index):
        return False
    low, high = (int(bound) for bound in torch.aminmax(index))
    return low >= 0 and high < num_classes and not low <= ignore_index <= high


def validate_rows(rows: Rows) -> None:
    """Looks at the numbers themselves, which waits for the device."""
    num_classes = rows.scores.shape[1]
    holds("scores", ~rows.scores.isnan(), "not be NaN", "look for the first NaN in the network")
    if rows.wrong is not None:
        advice = "look for wrong labels, or set `ignore_index`"
        holds("target", ~rows.wrong, f"be in [0, {num_classes}) or equal to `ignore_index`", advice)
    if rows.probability is not None:
        total = rows.probability.sum(-1)
        holds("target", rows.probability >= 0, "hold probabilities, which are not negative", "check the target")
        holds("target", (total - 1).abs() <= 1e-2, "hold probabilities that add up to 1", "divide each row by its sum")


def class_rows(tensor: Tensor) -> Tensor:
    """(N, C): a tensor in the shape of scores, its classes last and everything else in rows."""
    if tensor.dim() == 2:
        return tensor
    classes = min(1, tensor.dim() - 1)
    return tensor.movedim(classes, -1).reshape(-1, tensor.shape[classes])
