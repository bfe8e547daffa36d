"""The rivals as a module: a thin face of the functions."""

from typing import Any

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, one_of
from linearcore.losses.rivals._registry import RIVALS

_SETTINGS = ("ignore_index", "label_smoothing", "reduction", "validate")


class RivalLoss(nn.Module):
    """One of `RIVALS` as a module: replaces `nn.CrossEntropyLoss()` by changing one line.

    Args:
        name: a key of `RIVALS`.
        weight: (C) class weights.
        options: the loss's own options, and `ignore_index`, `label_smoothing`, `reduction` and `validate`.

    Raises:
        ValueError, TypeError: at once if a name or an option is not right, and not in the first step of training.

    Example:
        >>> criterion = RivalLoss("generalized_cross_entropy", q=0.5)
        >>> criterion(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(1.)
    """

    weight: Tensor | None

    def __init__(self, name: str, weight: Tensor | None = None, **options: Any) -> None:
        super().__init__()
        one_of("name", name, RIVALS)
        self.rival = RIVALS[name]
        allowed = (*self.rival.options, *_SETTINGS)
        for option in options:
            if option not in allowed:
                advice = f"{self.rival.title} takes {', '.join(allowed)}"
                raise TypeError(complaint(option, f"be an option of {name!r}", "one that is not", advice))
        if not (weight is None or isinstance(weight, Tensor)):
            raise TypeError(complaint("weight", "be a torch tensor", type(weight).__name__, "wrap it in torch.as_tensor"))
        self.rival(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), **options)  # The function has all the checks.
        self.options = options
        self.register_buffer("weight", weight)

    def forward(self, scores: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of `scores` for `target`; `sample_weight` has the shape of the unreduced loss."""
        return self.rival(scores, target, weight=self.weight, sample_weight=sample_weight, **self.options)

    def extra_repr(self) -> str:
        own = {**self.rival.options, **self.options}
        return ", ".join([repr(self.rival.name), *(f"{option}={value!r}" for option, value in own.items())])
