"""Affine-free batch normalisation of the scores."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._checks import complaint


class NormedScores(nn.Module):
    """The last layer of a classifier: the scores of each class are normalised over the batch to mean 0 and variance 1.

        z_c = (s_c − mean s_c) / √(variance of s_c + 10⁻⁵)                          over the batch

    Use it with 40 % or more wrong labels, together with a wide core:
    `LinearCoreLoss(surrogate=LinearCore(tau=5.0), form="pairwise")`. Margins of normed scores stay below about 4, so that
    this is the unhinged loss plus a constant. Also use it with losses that have no minimum, such as `unhinged`, whose raw
    scores would diverge. Only the covariance of the scores of a class with its labels then counts, and replacing labels by
    draws from any fixed law multiplies it by one number. `docs/proofs.md` has the proof and what it
    costs where classes overlap, `docs/wrong-labels.md` the measurements.

    In evaluation the running mean and variance are used, as in batch norm. They lag behind a network that still changes
    fast: decay the learning rate to zero, or pass the training data through the layer once more, in training mode and under
    `torch.no_grad()`. The layer before needs no bias, since the norm removes it. All scores must be finite, also those of
    rows that a loss ignores: a NaN or −inf stays in the running mean.

    Args:
        num_classes: at least 2.

    Raises:
        TypeError: if scores are not floating point.
        ValueError: if `num_classes` is too small, if scores are not (N, num_classes), or if a training batch has one row,
            which has no variance.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 2, bias=False), NormedScores(2))
        >>> scores = network(1000 * torch.eye(3))
        >>> bool((scores.mean(0).abs() < 1e-6).all()), bool((scores.var(0, correction=0) - 1).abs().max() < 1e-3)
        (True, True)

    Reference: the released code of Patrini, Rozza, Menon, Nock and Qu, CVPR 2017, puts batch norm behind the last layer for
    unbounded losses. Its learned scale, which would let scores grow again, is left out here.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        _check_classes(num_classes)
        self.norm = nn.BatchNorm1d(num_classes, affine=False)

    def forward(self, scores: Tensor) -> Tensor:
        """z (N, num_classes) in the precision of the running mean: float32 whatever the network computes in, as a rule."""
        if scores.dim() != 2 or scores.shape[1] != self.norm.num_features:
            expected = f"have shape (N, {self.norm.num_features})"
            raise ValueError(complaint("scores", expected, tuple(scores.shape), "it is the last layer of a classifier"))
        if not scores.is_floating_point():
            raise TypeError(complaint("scores", "be floating point", scores.dtype, "it is the last layer of a classifier"))
        if self.training and len(scores) == 1:
            raise ValueError(
                complaint("scores", "have two rows or more in training", 1, "pass drop_last=True to the DataLoader")
            )
        assert self.norm.running_mean is not None
        normed: Tensor = self.norm(scores.to(self.norm.running_mean.dtype))
        return normed


class NormedStack(nn.Module):
    """`NormedScores` of K networks that are trained side by side, each with means and variances of its own.

    A last batch of one row, which has no variance, is normalised with the running statistics.

    Args:
        networks: K.
        num_classes: C.
    """

    def __init__(self, networks: int, num_classes: int) -> None:
        super().__init__()
        _check_classes(num_classes)
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(networks, num_classes))
        self.register_buffer("variance", torch.ones(networks, num_classes))

    def forward(self, scores: Tensor) -> Tensor:
        """z (K, B, C) of scores (K, B, C); in training by the batch."""
        # Every class of every network is a feature of its own.
        features = scores.transpose(0, 1)
        is_learned = self.training and len(features) > 1
        normed = F.batch_norm(features.flatten(1), self.mean.view(-1), self.variance.view(-1), training=is_learned)
        return normed.view(features.shape).transpose(0, 1)

    def of(self, network: int, scores: Tensor) -> Tensor:
        """z (B, C) of scores (B, C) by one of the networks, with its running statistics."""
        return F.batch_norm(scores, self.mean[network], self.variance[network], training=False)


def _check_classes(num_classes: int) -> None:
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "count the classes"))
