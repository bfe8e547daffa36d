"""From the loss of one label to the loss of rows, for losses that are sums of one term a label."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.kernels import Labels
from linearcore.losses._targets import Rows


def row_scores(rows: Rows) -> Tensor:
    """(N, C): the scores, in float32 for half precisions. Rows that do not count are all zero.

    A row that is ignored may hold anything, such as padding of −inf: its loss is thrown away later, but 0 · NaN would
    come back to the scores as its gradient.
    """
    scores = rows.scores.to(compute_dtype(rows.scores))
    return scores if rows.counted is None else scores.masked_fill(~rows.counted.unsqueeze(-1), 0.0)


def log_probability(rows: Rows) -> Tensor:
    """(N, C): log p, with p the softmax of the scores. A class that is not there has −inf."""
    return torch.log_softmax(row_scores(rows), -1)


def over_labels(loss: Callable[[Tensor], Tensor], values: Tensor, labels: Labels) -> Tensor:
    """(N,): the loss of each row's label, or for soft labels Σ_y share_y loss(value_y), its expectation.

    Args:
        loss: of one label; elementwise, but it may broadcast with (N, 1).
        values: (N, C), what the loss of a label looks at: log p_y, a score, a margin.
        labels: hard or soft.
    """
    if labels.is_hard:
        assert labels.index is not None
        return loss(values.gather(-1, labels.index.unsqueeze(-1))).squeeze(-1)
    share = labels.share(values)
    counts = labels.counts(share, values != -math.inf)
    # Cleared before the loss as well as after: what does not count may be infinite, and so may its slope.
    return (share * loss(values.masked_fill(~counts, 0.0))).masked_fill(~counts, 0.0).sum(-1)
