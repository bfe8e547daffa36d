"""How well a ranking finds wrong labels, where it is known which are wrong."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._arrays import Numbers
from linearcore._checks import complaint
from linearcore.cleaning._suspects import one_number_a_row

#: True for a wrong label: a tensor or an array of bools.
Flags = Tensor | npt.NDArray[np.bool_]


def flagging_auc(suspicion: Numbers, is_wrong: Flags) -> float:
    """The probability that a wrong label is more suspicious than a right one; ties count half.

        AUC = (Σ_{i wrong} rank_i − w (w + 1)/2) / (w r),    w wrong labels, r right ones, equal suspicions share a rank

    1 is a perfect ranking and ½ what chance gives, whatever the share of wrong labels is. It says little about the top of
    the list: for that see `flagging_precision`.

    Args:
        suspicion: (N,), larger is more suspicious; ±inf is allowed.
        is_wrong: (N,) bool, for example `noisy.labels != clean`.

    Raises:
        TypeError: if `is_wrong` are no bools.
        ValueError: if shapes differ, a suspicion is NaN, or the labels are all wrong or all right.

    Example:
        >>> flagging_auc(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([True, False, True, False]))
        0.875

    Cost: O(N log N).
    """
    values, wrong = _checked(suspicion, is_wrong)
    many_wrong, many_right = int(wrong.sum()), int((~wrong).sum())
    if not many_wrong or not many_right:
        got = f"{many_wrong} wrong and {many_right} right"
        raise ValueError(complaint("is_wrong", "hold wrong and right labels", got, "no ranking can be judged on these"))
    _, group, size = values.unique(return_inverse=True, return_counts=True)
    # Ranks from 1; the members of a group share the mean of theirs.
    rank = size.cumsum(0).double() - (size.double() - 1) / 2
    total = float(rank[group][wrong].sum())
    return (total - many_wrong * (many_wrong + 1) / 2) / (many_wrong * many_right)


def flagging_precision(suspicion: Numbers, is_wrong: Flags) -> float:
    """The share of wrong labels among the w most suspicious rows, w the true number of wrong labels.

    As many are flagged as are wrong, so that this is at once the share of wrong labels that are found. Where the last of
    them are as suspicious as rows beyond, the mean over all ways to choose between equals is taken.

    Args:
        suspicion: (N,), larger is more suspicious; ±inf is allowed.
        is_wrong: (N,) bool.

    Raises:
        TypeError: if `is_wrong` are no bools.
        ValueError: if shapes differ, a suspicion is NaN, or no label is wrong.

    Example:
        >>> flagging_precision(torch.tensor([3.0, 1.0, 2.0, 2.0]), torch.tensor([True, False, True, False]))
        0.75

    Cost: O(N log N).
    """
    values, wrong = _checked(suspicion, is_wrong)
    many = int(wrong.sum())
    if not many:
        raise ValueError(complaint("is_wrong", "hold a wrong label", "none", "there is nothing to find"))
    least = values.sort(descending=True).values[many - 1]
    above, level = values > least, values == least
    from_level = (many - int(above.sum())) * float(wrong[level].double().mean())
    return (int(wrong[above].sum()) + from_level) / many


def _checked(suspicion: Numbers, is_wrong: Flags) -> tuple[Tensor, Tensor]:
    wrong = torch.as_tensor(is_wrong).cpu()
    if wrong.dtype != torch.bool:
        raise TypeError(complaint("is_wrong", "be bools", wrong.dtype, "pass `noisy.labels != clean` for example"))
    values = one_number_a_row("suspicion", suspicion).cpu()
    if wrong.shape != values.shape:
        must = f"have the shape of `suspicion`, {tuple(values.shape)}"
        raise ValueError(complaint("is_wrong", must, tuple(wrong.shape), "pass one bool for every row"))
    return values, wrong
