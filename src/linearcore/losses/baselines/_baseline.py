"""`baseline`: decorator that gives a loss of labelled rows the signature of `multiclass_loss`."""

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
    """Scores and labels of a batch as rows: the input of a baseline.

    Attributes:
        scores: (N, C) float32 or float64; −inf for masked classes, 0 in ignored rows.
        target: (N,) class indices; or (N, C) class weights, for probability targets and label smoothing.
        is_counted: (N, C) booleans, False for classes left out of the weighted sum; None with class indices.
    """

    scores: Tensor
    target: Tensor
    is_counted: Tensor | None

    @property
    def log_probabilities(self) -> Tensor:
        """log softmax of the scores, (N, C)."""
        return torch.log_softmax(self.scores, -1)

    def gather_labels(self, values: Tensor) -> Tensor:
        """Returns the entries of `values` (N, C) at the labels: (N, 1) for class indices, otherwise all, (N, C)."""
        if self.is_counted is None:
            return values.gather(-1, self.target.unsqueeze(-1))
        # Entries that are left out may be infinite, and 0 · inf would be NaN in the loss or its gradient.
        return values.masked_fill(~self.is_counted, 0.0)


#: Function of `LabelledRows` that returns losses in the shape of `gather_labels`, or (N,) if it computes the weighted sum.
LabelLoss = Callable[..., Tensor]
_PARAMETERS = inspect.signature(batch_loss).parameters
#: Options that all baselines share with `multiclass_loss`.
_SHARED = ("weight", "sample_weight", "ignore_index", "label_smoothing", "reduction", "validate")


@dataclass(frozen=True)
class Range:
    """Range of valid finite values of an option: `low` to `high`, with each end included or excluded."""

    low: float
    high: float
    advice: str
    excludes_low: bool = False
    excludes_high: bool = False

    def __str__(self) -> str:
        # Infinite ends are always excluded.
        left = "(" if self.excludes_low or math.isinf(self.low) else "["
        right = ")" if self.excludes_high or math.isinf(self.high) else "]"
        return f"{left}{self.low:g}, {self.high:g}{right}"

    def check(self, name: str, number: object) -> float:
        """Returns `number` as a float; raises ValueError if it is not in the range."""
        value = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
        is_above = self.low < value if self.excludes_low else self.low <= value
        is_below = value < self.high if self.excludes_high else value <= self.high
        if is_above and is_below and math.isfinite(value):
            return value
        raise ValueError(complaint(name, f"be a number in {self}", repr(number), self.advice))


@dataclass(frozen=True, eq=False, repr=False)
class Baseline:
    """A loss from the literature with declared properties. Call it like `multiclass_loss`.

    Attributes:
        label_loss: function of `LabelledRows` and the options of this loss that returns the losses of the labels.
        title: name in tables.
        is_symmetric: Σ_y ℓ(s, y) is constant in the scores s, so uniform label noise does not change the minimiser.
        is_convex: convex in the scores.
        is_bounded: bounded from below and above, which limits the effect of one row.
        ranges: valid range of each numeric option.
        has_minimum: False if the loss is unbounded below: scores diverge unless they are normalised.
        name: name of the function.
        options: options of this loss with their defaults. The properties above hold for these defaults.
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
        parameters = list(inspect.signature(self.label_loss).parameters.values())[1:]
        prediction, shared = ([_PARAMETERS[name] for name in names] for names in (("scores", "target"), _SHARED))
        signature = inspect.Signature([*prediction, *parameters, *shared], return_annotation=Tensor)
        options = {option.name: option.default for option in parameters}
        # Function attributes, for help(), doctest and pickle.
        attributes = {name: getattr(self.label_loss, name) for name in ("__module__", "__name__", "__qualname__", "__doc__")}
        self.__dict__.update(attributes, __wrapped__=self.label_loss, __signature__=signature)
        self.__dict__.update(name=self.label_loss.__name__, options=options)

    def __call__(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        loss_options = {name: options.pop(name, default) for name, default in self.options.items()}
        for name, allowed in self.ranges.items():
            loss_options[name] = allowed.check(name, loss_options[name])
        for name in options:
            if name not in _SHARED:
                advice = f"{self.title} accepts {', '.join((*loss_options, *_SHARED))}"
                raise TypeError(complaint(name, f"be an option of {self.title}", "an unknown option", advice))

        def row_losses(rows: Rows, labels: Labels) -> Tensor:
            labelled = labelled_rows(rows, labels)
            losses = self.label_loss(labelled, **loss_options)
            if losses.dim() == 1:
                return losses
            if labelled.is_counted is None:
                return losses.squeeze(-1)
            return (labelled.target * losses).masked_fill(~labelled.is_counted, 0.0).sum(-1)

        return batch_loss(row_losses, scores, target, **options)

    def __repr__(self) -> str:
        return f"<baseline {self.name}{inspect.signature(self)}>"

    def __reduce__(self) -> str:
        return self.name  # Pickled and copied by name, like a function.


def baseline(
    title: str, *, is_symmetric: bool, is_convex: bool, is_bounded: bool, has_minimum: bool = True, **ranges: Range
) -> Callable[[LabelLoss], Baseline]:
    """Decorator that turns a loss of labelled rows into a `Baseline`.

    Args:
        title, is_symmetric, is_convex, is_bounded, has_minimum: as in `Baseline`.
        ranges: valid range of each numeric option of the function.

    Example:
        >>> @baseline("Brier", is_symmetric=False, is_convex=False, is_bounded=True)
        ... def brier_score(rows: LabelledRows) -> Tensor:
        ...     p = rows.log_probabilities.exp()
        ...     return 1 - 2 * rows.gather_labels(p) + p.square().sum(-1, keepdim=True)
        >>> brier_score(torch.zeros(3, 4), torch.tensor([0, 3, -100]), label_smoothing=0.1)
        tensor(0.7500)
    """
    return lambda loss: Baseline(loss, title, is_symmetric, is_convex, is_bounded, ranges, has_minimum)


def labelled_rows(rows: Rows, labels: Labels) -> LabelledRows:
    """Returns scores in float32 or float64 with their labels."""
    scores = row_scores(rows)
    if labels.is_hard:
        assert labels.index is not None
        return LabelledRows(scores, labels.index, None)
    weights = labels.target_weights(scores)
    return LabelledRows(scores, weights, labels.is_counted(weights, scores != -math.inf))


def row_scores(rows: Rows) -> Tensor:
    """Returns the scores (N, C), in float32 for half precisions. Ignored rows are 0, to keep NaN out of gradients."""
    scores = rows.scores.to(compute_dtype(rows.scores))
    return scores if rows.is_counted is None else scores.masked_fill(~rows.is_counted.unsqueeze(-1), 0.0)
