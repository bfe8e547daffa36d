"""The baselines as a torch module."""

from typing import Any

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, one_of
from linearcore.losses import baselines  # Imports this file; names are looked up at run time.
from linearcore.losses._arguments import takes_input, tensor_or_none
from linearcore.losses.baselines._baseline import Baseline


class BaselineLoss(nn.Module):
    """Module for a baseline; a drop-in replacement for `nn.CrossEntropyLoss`.

    Args:
        baseline: a key of `BASELINES`, or a `Baseline`.
        weight: (C) class weights.
        options: options of the baseline, and `ignore_index`, `label_smoothing`, `reduction` and `validate`.

    Raises:
        ValueError, TypeError: if the name or an option is invalid; checked at construction.

    Example:
        >>> criterion = BaselineLoss("generalized_cross_entropy", q=0.5)
        >>> criterion(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(1.)
    """

    weight: Tensor | None

    def __init__(self, baseline: str | Baseline, weight: Tensor | None = None, **options: Any) -> None:
        super().__init__()
        if not isinstance(baseline, Baseline):
            one_of("baseline", baseline, baselines.BASELINES, "choose one of these, or pass a Baseline")
            baseline = baselines.BASELINES[baseline]
        if "sample_weight" in options:
            advice = "pass it in each call"
            raise TypeError(complaint("sample_weight", "be passed with the scores", "a constructor option", advice))
        baseline(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), **options)  # Checks the options.
        self.baseline = baseline
        self.options = options
        self.register_buffer("weight", tensor_or_none("weight", weight))

    @takes_input
    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `sample_weight` has the shape of the unreduced loss."""
        return self.baseline(scores, target, weight=self.weight, sample_weight=sample_weight, **self.options)

    def extra_repr(self) -> str:
        values = {**self.baseline.options, **self.options}
        return ", ".join([repr(self.baseline.name), *(f"{option}={value!r}" for option, value in values.items())])
