"""Scores that cannot grow, and of which no class has more than another."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._checks import complaint
from linearcore.losses import on_unit_rows


class NormedScores(nn.Module):
    """The last layer of a classifier: scores normalised over the batch, each class for itself, to mean 0 and variance 1.

        u = s, or with `sphere` u = (s − s̄)/max(‖s − s̄‖, ε) sample by sample,   ε = 0.001
        z_c = (u_c − mean u_c)/√(variance of u_c + 10⁻⁵)                          over the batch

    For losses that have no least value, such as the unhinged one: with raw scores they diverge, or weight decay takes
    everything. And for wrong labels of which some classes get more than others. Under a loss that is straight in z, a linear
    core that is wide enough, only the covariance of a class's scores with its labels counts, and labels that are replaced by
    a draw from any fixed law, whatever the input, multiply it by one number. With `sphere` no sample has longer scores than
    another. What is proven, and what it costs where classes overlap: `docs/proofs.md`.

    In evaluation the running mean and variance are taken, as batch norm does, so that a score does not depend on a batch.
    They lag behind a network that still changes fast: let the learning rate fall towards the end, or show the layer the
    training data once more, in training mode and under `torch.no_grad()`.
    Without the sphere a bias of the layer before is taken away again: leave it out there, since Adam would make steps of its
    gradient, which is rounding alone. All scores have to be finite, also those of rows that a loss leaves out: a NaN, or an
    −inf for a class that is not there, stays in the running mean for good.

    Args:
        num_classes: how many, at least 2.
        sphere: whether each sample's scores are put on a sphere first; three classes or more.

    Raises:
        TypeError: if scores are no floating-point numbers.
        ValueError: if `num_classes` is too small; if scores are not (N, num_classes); or if a batch to train on has one row,
            which has no variance.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 2), NormedScores(2))
        >>> scores = network(1000 * torch.eye(3))
        >>> bool((scores.mean(0).abs() < 1e-6).all()), bool((scores.var(0, correction=0) - 1).abs().max() < 1e-3)
        (True, True)

    Reference: the released code of Patrini, Rozza, Menon, Nock and Qu, *Making Deep Neural Networks Robust to Label Noise*,
    CVPR 2017, puts batch norm behind the last layer for unbounded losses. Its norm has a learned scale, which would let
    scores grow again; here there is none. The sphere is ours.
    """

    def __init__(self, num_classes: int, *, sphere: bool = False) -> None:
        super().__init__()
        _check_classes(num_classes, sphere)
        self.sphere = sphere
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
        put = on_unit_rows(scores) if self.sphere else scores
        normed: Tensor = self.norm(put.to(self.norm.running_mean.dtype))
        return normed

    def extra_repr(self) -> str:
        return f"sphere={self.sphere}"


class NormedStack(nn.Module):
    """`NormedScores` of K networks that are trained side by side, each with means and variances of its own.

    A last batch of one row, which has no variance, is normed by what is known so far.

    Args:
        networks: K.
        num_classes: C.
        sphere: as in `NormedScores`.
    """

    def __init__(self, networks: int, num_classes: int, *, sphere: bool) -> None:
        super().__init__()
        _check_classes(num_classes, sphere)
        self.sphere = sphere
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(networks, num_classes))
        self.register_buffer("variance", torch.ones(networks, num_classes))

    def forward(self, scores: Tensor) -> Tensor:
        """z (K, B, C) of scores (K, B, C); in training by the batch."""
        # Every class of every network is a feature of its own.
        features = self._put(scores).transpose(0, 1)
        is_learned = self.training and len(features) > 1
        normed = F.batch_norm(features.flatten(1), self.mean.view(-1), self.variance.view(-1), training=is_learned)
        return normed.view(features.shape).transpose(0, 1)

    def of(self, network: int, scores: Tensor) -> Tensor:
        """z (B, C) of scores (B, C) by one of the networks, by what it knows from training."""
        return F.batch_norm(self._put(scores), self.mean[network], self.variance[network], training=False)

    def _put(self, scores: Tensor) -> Tensor:
        return on_unit_rows(scores.flatten(0, -2)).view(scores.shape) if self.sphere else scores


def _check_classes(num_classes: int, sphere: bool) -> None:
    """Raises if there are too few: a sphere of two classes is two points, and its gradient zero."""
    least = 3 if sphere else 2
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < least:
        advice = "two classes have no gradient on a sphere; pass sphere=False" if num_classes == 2 else "count the classes"
        raise ValueError(complaint("num_classes", f"be an integer of at least {least}", repr(num_classes), advice))
