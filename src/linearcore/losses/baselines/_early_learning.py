"""Early-learning regularisation: a function with an explicit history, and a module that stores it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, floating, holds, shape
from linearcore.losses._arguments import takes_input, tensor_or_none
from linearcore.losses._targets import class_rows, to_rows
from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline, row_scores

_MOMENTUM = Range(0, 1, "for example 0.7")


def early_learning_loss(
    scores: Tensor,
    target: Tensor,
    history: Tensor,
    *,
    momentum: float = 0.7,
    strength: float = 3.0,
    floor: float = 1e-4,
    **shared: Any,
) -> tuple[Tensor, Tensor]:
    """Early-learning regularisation: cross-entropy plus a term that rewards agreement with earlier predictions.

    Networks fit correct labels before they memorise wrong ones. The running mean t of a sample's predictions preserves the
    early ones. This function has no state: it takes `history` and returns the updated history. `EarlyLearning` stores the
    history of a training set.

        t' = β t + (1 − β) p,        ℓ(s, y) = −log p_y + λ log(1 − ⟨p, t'⟩),        p = softmax(s); t' is a constant

    Args:
        history: t of these samples, in the shape of `scores`; zeros at the start.
        momentum: β in [0, 1]; 1 leaves the history unchanged. The defaults are the authors' for CIFAR-10.
        strength: λ, at least 0.
        floor: lower bound of 1 − ⟨p, t'⟩, in (0, 1), which keeps the logarithm finite. The authors clamp p instead.
        shared: weight, sample_weight, ignore_index, label_smoothing, reduction and validate, as in `multiclass_loss`.

    Returns:
        The loss, as from `multiclass_loss`, and t' in the shape and dtype of `history`, detached. The t of ignored samples
        is unchanged.

    Example:
        >>> scores, target = torch.zeros(3, 4), torch.tensor([0, 3, 1])
        >>> loss, history = early_learning_loss(scores, target, torch.zeros(3, 4), momentum=0.5, strength=2.0)
        >>> loss, history[0]
        (tensor(1.1192), tensor([0.1250, 0.1250, 0.1250, 0.1250]))

    Reference: Liu, Niles-Weed, Razavian and Fernandez-Granda, *Early-Learning Regularization Prevents Memorization of
    Noisy Labels*, NeurIPS 2020.
    """
    floating("scores", scores, "pass the raw output of the network")
    momentum = _MOMENTUM.check("momentum", momentum)
    floating("history", history, "start with zeros in the shape of `scores`")
    shape("history", history, tuple(scores.shape), "pass the running means of the predictions, zeros at the start")
    rows = to_rows(scores.detach(), target, shared.get("ignore_index", -100))
    probability = torch.log_softmax(row_scores(rows), -1).exp()
    old = class_rows(history.detach()).to(probability.dtype)
    new = momentum * old + (1 - momentum) * probability
    new = new if rows.is_counted is None else torch.where(rows.is_counted.unsqueeze(-1), new, old)

    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    updated = new.reshape(*outer, scores.shape[classes]).movedim(-1, classes).to(history.dtype)
    return _regularized(scores, target, history=new, strength=strength, floor=floor, **shared), updated


@baseline(
    "ELR",
    is_symmetric=False,
    is_convex=False,
    is_bounded=False,
    strength=Range(0, math.inf, "for example 3.0; 0 is cross-entropy"),
    floor=Range(0, 1, "for example 1e-4", excludes_low=True, excludes_high=True),
)
def _regularized(rows: LabelledRows, *, history: Tensor, strength: float, floor: float) -> Tensor:
    """−log p_y + λ log(1 − ⟨p, t'⟩), with t' (N, C) in `history`."""
    log_p = rows.log_probabilities
    agreement = (log_p.exp() * history).sum(-1, keepdim=True)
    return strength * (1 - agreement).clamp(min=floor).log() - rows.gather_labels(log_p)


class EarlyLearning(nn.Module):
    """Module for `early_learning_loss`. Stores the history of all training samples in a buffer, part of `state_dict`.

    A call in training mode updates the history of its samples; in evaluation mode the history is read only. Each sample
    should occur at most once per batch: of two updates one is lost.

    Args:
        num_samples, num_classes: size of the history, (num_samples, num_classes).
        momentum, strength, floor: as in `early_learning_loss`.
        shared: weight, ignore_index, label_smoothing, reduction and validate, as in `multiclass_loss`; `validate` also
            checks `index`.

    Attributes:
        history: (num_samples, num_classes) running means of the predictions, zeros for samples not yet seen.

    Example:
        >>> criterion = EarlyLearning(num_samples=100, num_classes=4)
        >>> scores, target, index = torch.zeros(3, 4), torch.tensor([0, 3, 1]), torch.tensor([7, 99, 0])
        >>> loss = criterion(scores, target, index)
        >>> criterion.history[7]
        tensor([0.0750, 0.0750, 0.0750, 0.0750])

    Cost: num_samples · num_classes floats on the module's device, and O(C) time per row.
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
        **shared: Any,
    ) -> None:
        super().__init__()
        for name, number in (("num_samples", num_samples), ("num_classes", num_classes)):
            if not (isinstance(number, int) and number >= 1):
                raise ValueError(complaint(name, "be a positive integer", repr(number), "it is a size of the history"))
        weight = tensor_or_none("weight", shared.pop("weight", None))
        self.momentum = momentum
        self.strength = strength
        self.floor = floor
        self.shared = shared
        self.register_buffer("history", torch.zeros(num_samples, num_classes))
        self.register_buffer("weight", weight)
        empty = torch.zeros(0, num_classes, device=None if weight is None else weight.device)
        self._loss(empty, empty[:, 0].long(), empty, None)  # Checks the options.

    @takes_input
    def forward(self, scores: Tensor, target: Tensor, index: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Returns the loss; `index` (N) holds the positions of the samples in the training set. `scores` is (N, C)."""
        floating("scores", scores, "pass the raw output of the network")
        if scores.dim() != 2:
            raise ValueError(complaint("scores", "have shape (N, C)", tuple(scores.shape), "use `early_learning_loss`"))
        shape("index", index, (scores.shape[0],), "pass the position of each sample in the training set")
        if index.is_floating_point() or index.dtype == torch.bool:
            raise TypeError(complaint("index", "be integers", index.dtype, "pass positions in the training set"))
        index = index.long()  # torch treats uint8 as a mask.
        if self.shared.get("validate", False):
            is_valid = (index >= 0) & (index < self.history.shape[0])
            must, advice = f"be in [0, {self.history.shape[0]})", "set `num_samples` to the size of the training set"
            holds("index", is_valid, must, advice, values=index)
        loss, updated = self._loss(scores, target, self.history[index], sample_weight)
        if self.training:
            self.history[index] = updated
        return loss

    def _loss(self, scores: Tensor, target: Tensor, history: Tensor, sample_weight: Tensor | None) -> tuple[Tensor, Tensor]:
        options = {"momentum": self.momentum if self.training else 1.0, "strength": self.strength, "floor": self.floor}
        return early_learning_loss(
            scores, target, history, **options, weight=self.weight, sample_weight=sample_weight, **self.shared
        )

    def extra_repr(self) -> str:
        return f"momentum={self.momentum}, strength={self.strength}, reduction={self.shared.get('reduction', 'mean')!r}"
