"""Early-learning regularisation: a function with an explicit history, and a module that stores it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, floating, holds, shape
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
    """Cross-entropy plus a term that asks for agreement with earlier predictions of the same sample.

    A network fits the right labels before it memorises the wrong ones. t, a running mean of its predictions for a sample,
    preserves the early ones. The function has no state: it takes `history` and returns the updated one; `EarlyLearning`
    stores it for a training set.

        t' = β t + (1 − β) p,        ℓ(s, y) = −log p_y + λ log(1 − ⟨p, t'⟩),        p = softmax(s); t' is a constant

    Args:
        history: t of these samples, in the shape of `scores`; zeros before the first call.
        momentum: β in [0, 1]; 1 leaves the history unchanged. The defaults are the authors' for CIFAR-10.
        strength: λ, at least 0.
        floor: in (0, 1): the least value of 1 − ⟨p, t'⟩, so that the logarithm stays finite where network and history are
            both certain. The authors clamp p instead.
        shared: weight, sample_weight, ignore_index, label_smoothing, reduction and validate, as in `multiclass_loss`.

    Returns:
        The loss, as `multiclass_loss` gives it, and t' in the shape and dtype of `history`, without a graph. Ignored samples
        keep their t.

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
    shape("history", history, tuple(scores.shape), "give the running mean of every prediction, zeros to begin with")
    rows = to_rows(scores.detach(), target, shared.get("ignore_index", -100))
    probability = torch.log_softmax(row_scores(rows), -1).exp()
    before = class_rows(history.detach()).to(probability.dtype)
    after = momentum * before + (1 - momentum) * probability
    after = after if rows.counted is None else torch.where(rows.counted.unsqueeze(-1), after, before)

    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    updated = after.reshape(*outer, scores.shape[classes]).movedim(-1, classes).to(history.dtype)
    return _penalized(scores, target, history=after, strength=strength, floor=floor, **shared), updated


@baseline(
    "ELR",
    is_symmetric=False,
    is_convex=False,
    is_bounded=False,
    strength=Range(0, math.inf, "for example 3.0; 0 is cross-entropy"),
    floor=Range(0, 1, "for example 1e-4", without_low=True, without_high=True),
)
def _penalized(rows: LabelledRows, *, history: Tensor, strength: float, floor: float) -> Tensor:
    """−log p_y + λ log(1 − ⟨p, t'⟩), with t' (N, C) in `history`."""
    log_p = rows.log_probabilities
    agreement = (log_p.exp() * history).sum(-1, keepdim=True)
    return strength * (1 - agreement).clamp(min=floor).log() - rows.own(log_p)


class EarlyLearning(nn.Module):
    """`early_learning_loss` with the history of every training sample in a buffer that `state_dict` saves.

    In training mode a call updates the history of its samples; in evaluation mode it only reads it. A sample should be in a
    batch at most once: of two updates one is lost.

    Args:
        num_samples, num_classes: size of the history, (num_samples, num_classes).
        momentum, strength, floor: as in `early_learning_loss`.
        shared: weight, ignore_index, label_smoothing, reduction and validate, as in `multiclass_loss`; `validate` checks
            `index`, too.

    Attributes:
        history: (num_samples, num_classes) running means of the predictions, zeros for samples not yet seen.

    Example:
        >>> criterion = EarlyLearning(num_samples=100, num_classes=4)
        >>> scores, target, index = torch.zeros(3, 4), torch.tensor([0, 3, 1]), torch.tensor([7, 99, 0])
        >>> loss = criterion(scores, target, index)
        >>> criterion.history[7]
        tensor([0.0750, 0.0750, 0.0750, 0.0750])

    Cost: num_samples · num_classes numbers of memory on the module's device, and O(C) time a row.
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
                raise ValueError(complaint(name, "be a whole number above 0", repr(number), "it is a size of the history"))
        weight = shared.pop("weight", None)
        if not (weight is None or isinstance(weight, Tensor)):
            raise TypeError(complaint("weight", "be a torch tensor", type(weight).__name__, "wrap it in torch.as_tensor"))
        self.momentum = momentum
        self.strength = strength
        self.floor = floor
        self.shared = shared
        self.register_buffer("history", torch.zeros(num_samples, num_classes))
        self.register_buffer("weight", weight)
        nothing = torch.zeros(0, num_classes, device=None if weight is None else weight.device)
        self._loss(nothing, nothing[:, 0].long(), nothing, None)  # Checks the options.

    def forward(self, scores: Tensor, target: Tensor, index: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The loss of `scores` (N, C) for `target`, of the samples at the positions `index` (N) in the training set."""
        floating("scores", scores, "pass the raw output of the network")
        if scores.dim() != 2:
            raise ValueError(complaint("scores", "have shape (N, C)", tuple(scores.shape), "use `early_learning_loss`"))
        shape("index", index, (scores.shape[0],), "give the position of every sample in the training set")
        if index.is_floating_point() or index.dtype == torch.bool:
            raise TypeError(complaint("index", "be integers", index.dtype, "give positions in the training set"))
        index = index.long()  # torch takes bytes for a mask.
        if self.shared.get("validate", False):
            inside = (index >= 0) & (index < self.history.shape[0])
            holds("index", inside, f"be in [0, {self.history.shape[0]})", "make `num_samples` the size of the training set")
        loss, updated = self._loss(scores, target, self.history[index], sample_weight)
        if self.training:
            self.history[index] = updated
        return loss

    def _loss(self, scores: Tensor, target: Tensor, history: Tensor, sample_weight: Tensor | None) -> tuple[Tensor, Tensor]:
        how = {"momentum": self.momentum if self.training else 1.0, "strength": self.strength, "floor": self.floor}
        return early_learning_loss(
            scores, target, history, **how, weight=self.weight, sample_weight=sample_weight, **self.shared
        )

    def extra_repr(self) -> str:
        return f"momentum={self.momentum}, strength={self.strength}, reduction={self.shared.get('reduction', 'mean')!r}"
