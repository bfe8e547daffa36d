"""`baseline`: turns the loss of labelled rows into a loss with `multiclass_loss`'s signature."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._typing import compute_dtype
from linearcore.forms import Labels
from linearcore.losses._batch import batch_loss
from linearcore.losses._targets import Rows


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """What a baseline computes its losses from.

    Attributes:
        scores: (N, C) float32 or float64; −inf for classes that are masked out, 0 in rows that are ignored.
        target: (N,) class indices; or (N, C) weights of the classes, for probability targets and label smoothing.
        counts: (N, C) booleans, False for classes that do not enter the weighted sum; None with class indices.
    """

    scores: Tensor
    target: Tensor
    counts: Tensor | None

    @property
    def log_probabilities(self) -> Tensor:
        """(N, C): log p with p the softmax of the scores."""
        return torch.log_softmax(self.scores, -1)

    def own(self, values: Tensor) -> Tensor:
        """The entries of `values` (N, C) that belong to a label: (N, 1) for class indices, otherwise (N, C), all of them."""
        if self.counts is None:
            return values.gather(-1, self.target.unsqueeze(-1))
        # An entry that does not count may be infinite, and 0 · inf would be NaN in the loss or in its gradient.
        return values.masked_fill(~self.counts, 0.0)


#: The losses (N, 1) or (N, C) of the labels of `LabelledRows.own`; or (N,), if a loss takes the weighted sum itself.
LabelLoss = Callable[..., Tensor]
_PARAMETERS = inspect.signature(batch_loss).parameters
#: The options that a baseline shares with `multiclass_loss`.
_SHARED = ("weight", "sample_weight", "ignore_index", "label_smoothing", "reduction", "validate")


@dataclass(frozen=True)
class Range:
    """The finite numbers that an option of a baseline may have: from `low` to `high`, with or without these two."""

    low: float
    high: float
    advice: str
    without_low: bool = False
    without_high: bool = False

    def __str__(self) -> str:
        # An infinite end is never in the range.
        left = "(" if self.without_low or math.isinf(self.low) else "["
        right = ")" if self.without_high or math.isinf(self.high) else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"

    def check(self, name: str, number: object) -> float:
        """Returns `number` as a float, or raises a ValueError unless it is in the range."""
        value = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
        above = self.low < value if self.without_low else self.low <= value
        below = value < self.high if self.without_high else value <= self.high
        if above and below and math.isfinite(value):
            return value
        raise ValueError(complaint(name, f"be a number in {self}", repr(number), self.advice))


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """A loss of the literature with its facts, which hold for the default options. Call it like `multiclass_loss`.

    Attributes:
        label_loss: `LabelledRows` and the loss's own options ↦ the losses of the labels.
        title: the name in tables.
        is_symmetric: Σ_y ℓ(s, y) is the same for all scores s, so that uniform label noise does not move the minimiser.
        is_convex: convex in the scores.
        is_bounded: bounded from below and above, so that the effect of one row is limited.
        ranges: for every numeric option the numbers that it may have.
        has_minimum: False if the loss is not bounded from below, so that scores diverge unless they are normalised.
        name: the name of the function.
        options: its own options with their defaults.
    """

    label_loss: LabelLoss
    title: str
    is_symmetric: bool
    is_convex: bool
    is_bounded: bool
    ranges: Mapping[str, Range] = field(default_factory=dict)
    has_minimum: bool = True
    name: str = field(init=False)
    options: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        own = list(inspect.signature(self.label_loss).parameters.values())[1:]
        prediction, shared = ([_PARAMETERS[name] for name in names] for names in (("scores", "target"), _SHARED))
        signature = inspect.Signature([*prediction, *own, *shared], return_annotation=Tensor)
        options = {option.name: option.default for option in own}
        # The attributes of a function, for help(), doctest and pickle.
        copied = {name: getattr(self.label_loss, name) for name in ("__module__", "__name__", "__qualname__", "__doc__")}
        self.__dict__.update(copied, __wrapped__=self.label_loss, __signature__=signature)
        self.__dict__.update(name=self.label_loss.__name__, options=options)

    def __call__(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        own = {name: options.pop(name, default) for name, default in self.options.items()}
        for name, allowed in self.ranges.items():
            own[name] = allowed.check(name, own[name])
        for name in options:
            if name not in _SHARED:
                advice = f"{self.title} takes {', '.join((*own, *_SHARED))}"
                raise TypeError(complaint(name, f"be an option of {self.title}", "one that is not", advice))

        def row_losses(rows: Rows, labels: Labels) -> Tensor:
            labelled = labelled_rows(rows, labels)
            losses = self.label_loss(labelled, **own)
            if losses.dim() == 1:
                return losses
            if labelled.counts is None:
                return losses.squeeze(-1)
            return (labelled.target * losses).masked_fill(~labelled.counts, 0.0).sum(-1)

        return batch_loss(row_losses, scores, target, **options)

    def __repr__(self) -> str:
        return f"<baseline {self.name}{inspect.signature(self)}>"

    def __reduce__(self) -> str:
        return self.name  # Pickled and copied by name, as a function is.


def baseline(
    title: str, *, is_symmetric: bool, is_convex: bool, is_bounded: bool, has_minimum: bool = True, **ranges: Range
) -> Callable[[LabelLoss], Baseline]:
    """Makes a `Baseline` of the loss of labelled rows; a decorator.

    Args:
        title, is_symmetric, is_convex, is_bounded, has_minimum: as in `Baseline`.
        ranges: for every numeric option of the function the numbers that it may have.

    Example:
        >>> @baseline("Brier", is_symmetric=False, is_convex=False, is_bounded=True)
        ... def brier_score(rows: LabelledRows) -> Tensor:
        ...     p = rows.log_probabilities.exp()
        ...     return 1 - 2 * rows.own(p) + p.square().sum(-1, keepdim=True)
        >>> brier_score(torch.zeros(3, 4), torch.tensor([0, 3, -100]), label_smoothing=0.1)
        tensor(0.7500)
    """
    return lambda loss: Baseline(loss, title, is_symmetric, is_convex, is_bounded, ranges, has_minimum)


def labelled_rows(rows: Rows, labels: Labels) -> LabelledRows:
    """The rows in float32 or float64 with their labels."""
    scores = row_scores(rows)
    if labels.is_hard:
        assert labels.index is not None
        return LabelledRows(scores, labels.index, None)
    share = labels.target_weights(scores)
    return LabelledRows(scores, share, labels.is_counted(share, scores != -math.inf))


def row_scores(rows: Rows) -> Tensor:
    """(N, C): the scores, in float32 for half precisions, with 0 in ignored rows, whose NaN would reach the gradient."""
    scores = rows.scores.to(compute_dtype(rows.scores))
    return scores if rows.counted is None else scores.masked_fill(~rows.counted.unsqueeze(-1), 0.0)
