"""Scores that are not finite: which of them are errors, and what a loss without checks returns for them.

    −inf           masks a class out; an error if the target gives this class a weight
    +inf and NaN   errors for every class

`validate=True` raises. Otherwise the loss of such a row is inf or NaN, never a finite number.
"""

import math

import torch
from torch import Tensor

from linearcore._checks import holds, nan_where
from linearcore._torch import is_on_host, is_traced
from linearcore.forms import Labels
from linearcore.kernels import row_blocks
from linearcore.losses._targets import Rows


def mark_infinite_labels(losses: Tensor, rows: Rows, labels: Labels) -> Tensor:
    """Returns the losses (N,) with inf for rows whose label is masked out, and NaN for labels with score +inf.

    Without this some losses would be finite: φ(∞) may be 0, and `centered` and bounded losses do not diverge with the score
    of the label. A score of +inf or NaN of another class makes every loss inf or NaN by itself. Ignored rows do not change.
    """
    scores = rows.scores.detach()
    if labels.is_hard:
        assert rows.index is not None
        label_scores = scores.gather(-1, rows.index.unsqueeze(-1)).squeeze(-1)
        if rows.is_counted is not None:
            label_scores = label_scores.masked_fill(~rows.is_counted, 0.0)
        return mark_infinite(losses, label_scores)
    low, high = scores.aminmax(dim=-1)  # NaN if a score is NaN; the loss is then NaN by itself.
    if is_on_host(scores) and not bool((low.isinf() | high.isinf()).any()):
        return losses
    blocks = [slice(None)] if is_traced() or not len(scores) else row_blocks(scores, scores.shape[-1])
    marks = [_infinite_labels(scores[block], labels.rows(block)) for block in blocks]
    is_masked, is_infinite = (torch.cat(parts) for parts in zip(*marks, strict=True))
    if rows.is_counted is not None:
        is_masked, is_infinite = is_masked & rows.is_counted, is_infinite & rows.is_counted
    return nan_where(losses.masked_fill(is_masked, math.inf), is_infinite)


def _infinite_labels(scores: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """Returns booleans (N,): the row has a label with score −inf, and with score +inf."""
    is_label = labels.has_weight(scores)
    return (is_label & (scores == -math.inf)).any(-1), (is_label & (scores == math.inf)).any(-1)


def mark_infinite(losses: Tensor, label_scores: Tensor) -> Tensor:
    """Returns the losses (N,) with inf where the score (N,) of the label is −inf, and NaN where it is +inf."""
    label_scores = label_scores.detach()
    if is_on_host(label_scores) and not bool(label_scores.isinf().any()):
        return losses
    return nan_where(losses.masked_fill(label_scores == -math.inf, math.inf), label_scores == math.inf)


def check_finite(scores: Tensor, target: Tensor, rows: Rows, labels: Labels) -> None:
    """Raises for scores of +inf or NaN, and for labels that are masked out; synchronises with the GPU.

    Args:
        scores, target: as the user passed them; messages name their entries.
        rows, labels: the same as rows. All classes of ignored rows may be masked out.
    """
    advice = "lower the learning rate, or look for an overflow in the network"
    holds("scores", scores < math.inf, "not be NaN or +inf", advice, values=scores)  # NaN < inf is False.
    is_masked = (rows.scores == -math.inf) & labels.has_weight(rows.scores) & _counted_rows(rows)
    if labels.is_hard:
        must, advice = "be a class that is not masked out (score −inf)", "unmask the class, or set `ignore_index`"
        holds("target", ~is_masked.any(-1).reshape(rows.shape), must, advice, values=target)
    else:
        must, advice = (
            "not be −inf for a class with a target probability above 0",
            "unmask the class, or set its target to 0",
        )
        if labels.smoothing:
            must = "not be −inf with label smoothing, which gives every class a target probability above 0"
            advice = "set `label_smoothing` to 0, or the weight of the class"
        classes = min(1, scores.dim() - 1)
        is_valid = ~is_masked.reshape(*rows.shape, scores.shape[classes]).movedim(-1, classes)
        holds("scores", is_valid, must, advice, values=scores)


def _counted_rows(rows: Rows) -> Tensor:
    """Returns booleans (N, 1): the row is not ignored."""
    if rows.is_counted is None:
        return rows.scores.new_ones((), dtype=torch.bool)
    return rows.is_counted.unsqueeze(-1)
