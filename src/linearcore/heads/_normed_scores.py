"""Batch normalisation of the scores without learned scale and shift."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._checks import complaint


class NormedScores(nn.Module):
    """Last layer of a classifier: normalises the scores of each class over the batch to mean 0 and variance 1.

        z_c = (s_c − mean s_c) / √(variance of s_c + 10⁻⁵)                          over the batch

    This is batch normalisation without learned scale and shift. On data sets with 10 or more classes it raised balanced
    accuracy on average. It lowers accuracy if the classes have unequal sizes, and is not recommended with two classes.
    With a wide core,
    `LinearCoreLoss(surrogate=LinearCore(tau=5.0), form="pairwise")`, it was best on CIFAR-10 (classes of equal size, a
    ResNet) with 40 % or more wrong labels; with small networks this was on average below cross-entropy. Margins of
    normalised scores rarely exceed 4, so with tau=5 they are in the linear core, where the loss equals the unhinged loss
    plus a constant. Also use the layer with losses that have no minimum, such as `unhinged`: raw scores would diverge.

    The unhinged loss of normalised scores depends only on Cov(s_c, 1[y = c]) for each class c. If labels are replaced at
    random by samples from a fixed distribution, all these covariances are multiplied by the same factor, so the best
    network does not change. `docs/proofs.md` has the proof and the disadvantage for overlapping
    classes, `docs/wrong-labels.md` has measurements.

    Evaluation uses the running mean and variance, as in batch norm. They lag behind if the network changes fast. Decay the
    learning rate to zero at the end of training, or pass the training data through the layer once more, in training mode
    under `torch.no_grad()`. The previous layer needs no bias, because the normalisation removes it. All scores must be
    finite, including rows that a loss ignores: a NaN or −inf stays in the running mean.

    Args:
        num_classes: number of classes, at least 2.

    Raises:
        TypeError: if scores are not floating point.
        ValueError: if `num_classes` is too small, if scores are not (N, num_classes), or if a training batch has one
            row, which has no variance.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 2, bias=False), NormedScores(2))
        >>> scores = network(1000 * torch.eye(3))
        >>> bool((scores.mean(0).abs() < 1e-6).all()), bool((scores.var(0, correction=0) - 1).abs().max() < 1e-3)
        (True, True)

    Reference: the code of Patrini, Rozza, Menon, Nock and Qu, CVPR 2017, applies batch norm after the last layer for
    unbounded losses. Its learned scale is omitted here, because scores could grow again.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        _check_classes(num_classes)
        self.norm = nn.BatchNorm1d(num_classes, affine=False)

    def forward(self, scores: Tensor) -> Tensor:
        """Returns z (N, num_classes) in the dtype of the running mean: usually float32, also under autocast."""
        if scores.dim() != 2 or scores.shape[1] != self.norm.num_features:
            expected = f"have shape (N, {self.norm.num_features})"
            raise ValueError(complaint("scores", expected, tuple(scores.shape), "pass the class scores"))
        if not scores.is_floating_point():
            raise TypeError(complaint("scores", "be floating point", scores.dtype, "pass the class scores"))
        if self.training and len(scores) == 1:
            raise ValueError(
                complaint("scores", "have two rows or more in training", 1, "pass drop_last=True to the DataLoader")
            )
        assert self.norm.running_mean is not None
        normalised: Tensor = self.norm(scores.to(self.norm.running_mean.dtype))
        return normalised


class NormedStack(nn.Module):
    """`NormedScores` for K networks that are trained in parallel, with separate means and variances.

    A training batch with one row, which has no variance, is normalised with the running statistics.

    Args:
        networks: number of networks K.
        num_classes: number of classes C.
    """

    def __init__(self, networks: int, num_classes: int) -> None:
        super().__init__()
        _check_classes(num_classes)
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(networks, num_classes))
        self.register_buffer("variance", torch.ones(networks, num_classes))

    def forward(self, scores: Tensor) -> Tensor:
        """Returns z for scores, (K, B, C) each; uses batch statistics in training."""
        # Each class of each network is a separate feature.
        features = scores.transpose(0, 1)
        uses_batch = self.training and len(features) > 1
        normalised = F.batch_norm(features.flatten(1), self.mean.view(-1), self.variance.view(-1), training=uses_batch)
        return normalised.view(features.shape).transpose(0, 1)

    def evaluate(self, network: int, scores: Tensor) -> Tensor:
        """Returns z (B, C) for the scores (B, C) of one network, with its running statistics."""
        return F.batch_norm(scores, self.mean[network], self.variance[network], training=False)


def _check_classes(num_classes: int) -> None:
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "for example 10"))
