"""Converts scores and targets in the shapes of torch.nn.CrossEntropyLoss to rows (N, C)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import LABEL_ADVICE, complaint, holds, in_range, on_device_of, shape
from linearcore._torch import is_on_host


@dataclass(frozen=True)
class Rows:
    """A batch flattened to rows.

    Attributes:
        scores: (N, C).
        index: (N,) class indices, 0 in ignored rows; None for probability targets.
        is_counted: (N,) booleans, False in ignored rows; None if no row is ignored.
        is_out_of_range: (N,) booleans, True if the label is out of range (loss NaN); None if all are known to be valid.
        probability: (N, C) target probabilities; None for index targets.
        shape: the shape of the unreduced loss.
    """

    scores: Tensor
    index: Tensor | None
    is_counted: Tensor | None
    is_out_of_range: Tensor | None
    probability: Tensor | None
    shape: torch.Size

    def per_row(self, name: str, tensor: Tensor | None) -> Tensor | None:
        """Flattens a tensor in the shape of the unreduced loss to one value per row, (N,)."""
        if tensor is None:
            return None
        shape(name, tensor, tuple(self.shape), "pass one value per target")
        on_device_of(self.scores, name, tensor)
        return tensor.reshape(-1)


def to_rows(scores: Tensor, target: Tensor, ignore_index: int) -> Rows:
    """Returns scores and targets as rows.

    Scores have shape (C), (N, C) or (N, C, d1, …, dk). Index targets have this shape without C, probability targets the same
    shape. Scores with d1, …, dk are copied, because their classes are not contiguous.
    """
    if scores.dim() == 0:
        advice = "classes are dimension 1, or dimension 0 of a single sample"
        raise ValueError(complaint("scores", "have shape (C), (N, C) or (N, C, d1, …, dk)", "a scalar", advice))
    if not isinstance(target, Tensor):
        raise TypeError(complaint("target", "be a torch tensor", type(target).__name__, "wrap it in torch.as_tensor"))
    on_device_of(scores, "target", target)
    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    rows = class_rows(scores)
    if target.shape == scores.shape:
        if not target.is_floating_point():
            advice = f"use `.float()` for probabilities, or `.argmax({classes})` for the indices of one-hot vectors"
            raise TypeError(complaint("target", "be floating point when it has the shape of `scores`", target.dtype, advice))
        if ignore_index >= 0:
            advice = "use `sample_weight` 0 for samples to ignore"
            raise ValueError(complaint("ignore_index", "be negative with probability targets", ignore_index, advice))
        return Rows(rows, None, None, None, class_rows(target), outer)
    shape("target", target, tuple(outer), _shape_advice(scores, target))
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        advice = "convert it with `.long()`, or pass probabilities in the shape of `scores`"
        raise TypeError(complaint("target", "be integer class indices", target.dtype, advice))
    index = target.long()
    if _all_valid(index, rows.shape[1], ignore_index):
        return Rows(rows, index.reshape(-1), None, None, None, outer)
    is_counted = index != ignore_index
    index, is_out_of_range = in_range("target", index.masked_fill(~is_counted, 0), rows.shape[1], "equal to `ignore_index`")
    is_out_of_range = None if is_out_of_range is None else is_out_of_range.reshape(-1)
    return Rows(rows, index.reshape(-1), is_counted.reshape(-1), is_out_of_range, None, outer)


def _shape_advice(scores: Tensor, target: Tensor) -> str:
    """Returns what to do about a target of the wrong shape."""
    classes = min(1, scores.dim() - 1)
    if scores.dim() > 2 and target.shape == scores.shape[:-1]:
        return "the classes are dimension 1 of `scores`; pass `scores.movedim(-1, 1)`"
    if target.dim() == scores.dim() and target.shape[classes] == 1:
        return f"pass `target.squeeze({classes})`"
    return "class indices have the shape of `scores` without the class dimension, probabilities its full shape"


def _all_valid(index: Tensor, num_classes: int, ignore_index: int) -> bool:
    """Whether all labels are in range and none is ignored. Always False on a GPU, to avoid a synchronisation."""
    if index.numel() == 0 or not is_on_host(index):
        return False
    low, high = (int(bound) for bound in torch.aminmax(index))
    return low >= 0 and high < num_classes and not low <= ignore_index <= high


def validate_target(target: Tensor, rows: Rows) -> None:
    """Checks the values of `target`, which has the rows `rows`; synchronises with the GPU."""
    if rows.is_out_of_range is not None:
        must = f"be in [0, {rows.scores.shape[1]}) or equal to `ignore_index`"
        holds("target", ~rows.is_out_of_range.reshape(rows.shape), must, LABEL_ADVICE, values=target)
    if rows.probability is not None:
        holds("target", target >= 0, "hold probabilities, which are not negative", "pass values in [0, 1]", values=target)
        total = rows.probability.sum(-1).reshape(rows.shape)
        must, advice = "hold probabilities that sum to 1 over the classes", "divide each row by its sum"
        holds("target", (total - 1).abs() <= 1e-2, must, advice, values=total, of="row sums")


def class_rows(tensor: Tensor) -> Tensor:
    """Reshapes a tensor in the shape of scores to (N, C), with the classes last."""
    if tensor.dim() == 2:
        return tensor
    classes = min(1, tensor.dim() - 1)
    return tensor.movedim(classes, -1).reshape(-1, tensor.shape[classes])
