"""Class probabilities from scores that were trained with a loss."""

import torch
from torch import Tensor

from linearcore._checks import floating
from linearcore._typing import compute_dtype
from linearcore.forms import Form
from linearcore.losses._targets import class_rows
from linearcore.surrogates import Surrogate

#: Weight of the softmax (or sigmoid) of the scores. In the linear core the loss does not order classes by probability:
#: with two classes both have ½. This part keeps the class with the highest score the most probable one.
SOFTMAX_WEIGHT = 1e-3


def class_probabilities(form: Form, surrogate: Surrogate, scores: Tensor) -> Tensor:
    """Returns the probabilities at which the expected loss is minimal at `scores`, in the shape of `scores`.

    They sum to 1 over the classes, and 0.1 % of them is the softmax of the scores. Classes with score −inf have 0.

    Raises:
        ValueError: if scores of this form do not determine probabilities.
    """
    floating("scores", scores, "pass the raw output of the network")
    rows = class_rows(scores)
    rows = rows.to(compute_dtype(rows))
    mixed = torch.lerp(form.posterior(surrogate, rows), rows.softmax(-1), SOFTMAX_WEIGHT)
    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    return mixed.reshape(*outer, scores.shape[classes]).movedim(-1, classes)


def positive_probabilities(surrogate: Surrogate, scores: Tensor) -> Tensor:
    """Returns the probability of the positive label for each score, of which 0.1 % is the sigmoid of the score."""
    floating("scores", scores, "pass the raw output of the network")
    margins = scores.to(compute_dtype(scores))
    return torch.lerp(surrogate.posterior(margins), margins.sigmoid(), SOFTMAX_WEIGHT)
