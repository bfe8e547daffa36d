"""Early-learning regularisation as a module that remembers a training set."""

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, floating, holds, shape
from linearcore._typing import Reduction
from linearcore.losses.rivals._early_learning import early_learning_loss


class EarlyLearning(nn.Module):
    """`early_learning_loss` with the history of every training sample, as a buffer that `state_dict` saves.

    In training mode a call updates the history of the samples it sees; in evaluation mode it only reads it. A sample should
    be at most once in a batch: of two updates one is lost.

    Args:
        num_samples, num_classes: size of the history, (num_samples, num_classes).
        momentum, strength, floor: as in `early_learning_loss`.
        weight: (C) class weights.
        ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`; `validate` looks at `index` too.

    Attributes:
        history: (num_samples, num_classes) running means of the predictions, zeros for samples not yet seen.

    Example:
        >>> criterion = EarlyLearning(num_samples=100, num_classes=4)
        >>> scores, target, index = torch.zeros(3, 4), torch.tensor([0, 3, 1]), torch.tensor([7, 99, 0])
        >>> loss = criterion(scores, target, index)
        >>> criterion.history[7]
        tensor([0.0750, 0.0750, 0.0750, 0.0750])

    Cost: num_samples · num_classes numbers of memory on the module's device, and O(C) time a row.

    Reference: Liu et al. 2020, as `early_learning_loss`.
    """

    history: Tensor
    weight: Tensor | None

    def __init__(
        self,
        num_samples: int,
        num_classes: int,
        *,
        momentum: float = 0.7,
        strength: float = 3.0,
        floor: float = 1e-4,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: Reduction = "mean",
        validate: bool = False,
    ) -> None:
        super().__init__()
        for name, number in (("num_samples", num_samples), ("num_classes", num_classes)):
            if not (isinstance(number, int) and number >= 1):
                raise ValueError(complaint(name, "be a whole number above 0", repr(number), "it is a size of the history"))
        self.momentum = momentum
        self.strength = strength
        self.floor = floor
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.reduction: Reduction = reduction
        self.validate = validate
        self.register_buffer("history", torch.zeros(num_samples, num_classes))
        if not (weight is None or isinstance(weight, Tensor)):
            raise TypeError(complaint("weight", "be a torch tensor", type(weight).__name__, "wrap it in torch.as_tensor"))
        self.register_buffer("weight", weight)
        nothing = torch.zeros(0, num_classes, device=None if weight is None else weight.device)
        self._loss(nothing, nothing[:, 0].long(), nothing, None)  # The function has all the checks of the options.

    def forward(self, scores: Tensor, target: Tensor, index: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of `scores` (N, C) for `target`, of the samples with these places `index` (N) in the training set."""
        floating("scores", scores, "pass the raw output of the network")
        if scores.dim() != 2:
            raise ValueError(complaint("scores", "have shape (N, C)", tuple(scores.shape), "use `early_learning_loss`"))
        shape("index", index, (scores.shape[0],), "give the place of every sample in the training set")
        if index.is_floating_point() or index.dtype == torch.bool:
            raise TypeError(complaint("index", "be integers", index.dtype, "give places in the training set"))
        index = index.long()  # torch takes bytes for a mask.
        if self.validate:
            inside = (index >= 0) & (index < self.history.shape[0])
            holds("index", inside, f"be in [0, {self.history.shape[0]})", "make `num_samples` the size of the training set")
        loss, remembered = self._loss(scores, target, self.history[index], sample_weight)
        if self.training:
            self.history[index] = remembered
        return loss

    def _loss(self, scores: Tensor, target: Tensor, history: Tensor, sample_weight: Tensor | None) -> tuple[Tensor, Tensor]:
        return early_learning_loss(
            scores,
            target,
            history,
            momentum=self.momentum if self.training else 1.0,
            strength=self.strength,
            floor=self.floor,
            weight=self.weight,
            sample_weight=sample_weight,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            validate=self.validate,
        )

    def extra_repr(self) -> str:
        return f"momentum={self.momentum}, strength={self.strength}, reduction={self.reduction!r}"
