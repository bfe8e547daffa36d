"""Metrics for a ranking of labels by suspicion, if the wrong labels are known."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._arrays import Numbers
from linearcore._checks import complaint
from linearcore.cleaning._inputs import as_tensor
from linearcore.cleaning._suspects import one_number_per_row

#: Tensor, array or Series of bools, True for a wrong label.
Flags = Tensor | npt.NDArray[np.bool_]


def flagging_auc(suspicion: Numbers, is_wrong: Flags) -> float:
    """Returns the probability that a wrong label is more suspicious than a correct one; ties count half.

        AUC = (Σ_{i wrong} rank_i − w (w + 1)/2) / (w r),    w wrong and r correct labels; ties get their mean rank

    A perfect ranking has AUC 1 and a random one ½, for any fraction of wrong labels. Use `flagging_precision` to evaluate
    the top of the ranking.

    Args:
        suspicion: (N,), larger is more suspicious; ±inf is allowed.
        is_wrong: (N,) bool, for example `noisy.labels != clean`.

    Raises:
        TypeError: if `is_wrong` does not contain bools.
        ValueError: if shapes differ, a suspicion is NaN, or the labels are all wrong or all correct.

    Example:
        >>> flagging_auc(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([True, False, True, False]))
        0.875

    Cost: O(N log N).
    """
    values, wrong = _checked(suspicion, is_wrong)
    num_wrong, num_correct = int(wrong.sum()), int((~wrong).sum())
    if not num_wrong or not num_correct:
        got = f"{num_wrong} wrong and {num_correct} correct"
        raise ValueError(complaint("is_wrong", "contain both values", got, "pass wrong and correct labels"))
    _, group, size = values.unique(return_inverse=True, return_counts=True)
    # Ranks start at 1; the rows of a group get their mean rank.
    rank = size.cumsum(0).double() - (size.double() - 1) / 2
    total = float(rank[group][wrong].sum())
    return (total - num_wrong * (num_wrong + 1) / 2) / (num_wrong * num_correct)


def flagging_precision(suspicion: Numbers, is_wrong: Flags) -> float:
    """Returns the fraction of wrong labels among the w most suspicious rows, w being the true number of wrong labels.

    The number of flagged rows equals the number of wrong labels, so precision and recall are equal. If rows tie at the
    threshold, this is the mean over all choices among them.

    Args:
        suspicion: (N,), larger is more suspicious; ±inf is allowed.
        is_wrong: (N,) bool.

    Raises:
        TypeError: if `is_wrong` does not contain bools.
        ValueError: if shapes differ, a suspicion is NaN, or no label is wrong.

    Example:
        >>> flagging_precision(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([True, False, True, False]))
        0.75

    Cost: O(N log N).
    """
    values, wrong = _checked(suspicion, is_wrong)
    num_wrong = int(wrong.sum())
    if not num_wrong:
        raise ValueError(complaint("is_wrong", "contain a wrong label", "none", "pass at least one True"))
    threshold = values.sort(descending=True).values[num_wrong - 1]
    is_above, is_tied = values > threshold, values == threshold
    expected_from_ties = (num_wrong - int(is_above.sum())) * float(wrong[is_tied].double().mean())
    return (int(wrong[is_above].sum()) + expected_from_ties) / num_wrong


def _checked(suspicion: Numbers, is_wrong: Flags) -> tuple[Tensor, Tensor]:
    wrong = as_tensor("is_wrong", is_wrong).cpu()
    if wrong.dtype != torch.bool:
        raise TypeError(complaint("is_wrong", "be bools", wrong.dtype, "pass `noisy.labels != clean` for example"))
    values = one_number_per_row("suspicion", suspicion).cpu()
    if wrong.shape != values.shape:
        must = f"have the shape of `suspicion`, {tuple(values.shape)}"
        raise ValueError(complaint("is_wrong", must, tuple(wrong.shape), "pass one bool for every row"))
    return values, wrong
