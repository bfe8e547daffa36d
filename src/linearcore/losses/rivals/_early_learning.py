"""Early-learning regularisation, with its memory in the open."""

import math

import torch
from torch import Tensor

from linearcore._checks import between, complaint, floating, shape
from linearcore._typing import Reduction
from linearcore.kernels import Labels
from linearcore.losses._batch import batch_loss
from linearcore.losses._targets import Rows, class_rows, to_rows
from linearcore.losses.rivals._over_labels import log_probability, over_labels


def early_learning_loss(
    scores: Tensor,
    target: Tensor,
    history: Tensor,
    *,
    momentum: float = 0.7,
    strength: float = 3.0,
    floor: float = 1e-4,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy that is held to what the network thought of each sample before: the loss, and the new history.

    A network learns the right labels before it memorises the wrong ones. t, a running mean of its predictions for the
    sample, remembers that time, and the second term asks for agreement with it. No state is kept here: `history` goes in,
    its successor comes out, and `EarlyLearning` keeps one for a whole training set.

        t' = β t + (1 − β) p,        ℓ(s, y) = −log p_y + λ log(1 − ⟨p, t'⟩),        p = softmax(s); t' is a constant

    Args:
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.
        history: t of these samples, in the shape of `scores`; zeros before the first time.
        momentum: β in [0, 1]; 1 leaves the history as it is. The defaults are the authors' for CIFAR-10.
        strength: λ, at least 0.
        floor: in (0, 1): 1 − ⟨p, t'⟩ is taken to be at least this. The authors clamp p instead, to the same end: the
            logarithm must not run to −∞ where network and history are both certain.

    Returns:
        The loss, as `multiclass_loss` gives it, and t', in the shape and dtype of `history` and without a graph. Samples
        that are ignored keep their t.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> scores, target = torch.zeros(3, 4), torch.tensor([0, 3, 1])
        >>> loss, history = early_learning_loss(scores, target, torch.zeros(3, 4), momentum=0.5, strength=2.0)
        >>> loss, history[0]
        (tensor(1.1192), tensor([0.1250, 0.1250, 0.1250, 0.1250]))

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Liu, Niles-Weed, Razavian and Fernandez-Granda, *Early-Learning Regularization Prevents Memorization of
    Noisy Labels*, NeurIPS 2020.
    """
    floating("scores", scores, "pass the raw output of the network")
    momentum = between("momentum", momentum, 0, 1, "for example 0.7")
    strength = between("strength", strength, 0, math.inf, "for example 3.0; 0 is cross-entropy")
    if not 0 < floor < 1:
        raise ValueError(complaint("floor", "be in (0, 1)", floor, "for example 1e-4"))
    floating("history", history, "start with zeros in the shape of `scores`")
    shape("history", history, tuple(scores.shape), "give the running mean of every prediction, zeros to begin with")
    remembered = _remembered(to_rows(scores.detach(), target, ignore_index), history, momentum)

    def row_losses(rows: Rows, labels: Labels) -> Tensor:
        log_p = log_probability(rows)
        agreement = (log_p.exp() * remembered).sum(-1, keepdim=True)
        penalty = strength * (1 - agreement).clamp(min=floor).log()
        return over_labels(lambda own: penalty - own, log_p, labels)

    loss = batch_loss(
        row_losses,
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )
    classes = min(1, scores.dim() - 1)
    outer = scores.shape[:classes] + scores.shape[classes + 1 :]
    return loss, remembered.reshape(*outer, scores.shape[classes]).movedim(-1, classes).to(history.dtype)


def _remembered(rows: Rows, history: Tensor, momentum: float) -> Tensor:
    """(N, C): β t + (1 − β) p, in float32 for half-precision scores; t where a row does not count."""
    probability = log_probability(rows).exp()
    before = class_rows(history.detach()).to(probability.dtype)
    after = momentum * before + (1 - momentum) * probability
    return after if rows.counted is None else torch.where(rows.counted.unsqueeze(-1), after, before)
