"""Scores that cannot grow."""

from torch import Tensor, nn


class NormedScores(nn.Module):
    """A network whose scores are normalised over the batch, each class for itself: mean 0 and variance 1.

    For losses that have no least value, such as the unhinged one: with raw scores they diverge, or weight decay takes
    everything. In evaluation the running mean and variance are taken, as batch norm does. A bias of the last layer is taken
    away again; with Adam leave it out, which would make steps of the rounding that is its gradient.

    Args:
        network: gives scores (N, num_classes).
        num_classes: how many.

    Example:
        >>> import torch
        >>> layer = torch.nn.Linear(3, 2)
        >>> scores = NormedScores(layer, 2)(1000 * torch.eye(3))
        >>> bool((scores.mean(0).abs() < 1e-6).all()), bool((scores.var(0, correction=0) - 1).abs().max() < 1e-3)
        (True, True)

    Reference: the released code of Patrini, Rozza, Menon, Nock and Qu, *Making Deep Neural Networks Robust to Label Noise*,
    CVPR 2017, puts batch norm behind the last layer for unbounded losses. Its norm has a learned scale, which would let
    scores grow again; here there is none.
    """

    def __init__(self, network: nn.Module, num_classes: int) -> None:
        super().__init__()
        self.network = network
        self.norm = nn.BatchNorm1d(num_classes, affine=False)

    def forward(self, images: Tensor) -> Tensor:
        """Scores (N, num_classes), float32 whatever the network computes in."""
        scores: Tensor = self.norm(self.network(images).float())
        return scores
