"""Scores that cannot grow, and of which no class has more than another."""

from torch import Tensor, nn

from linearcore._checks import complaint
from linearcore.losses._robust import check_sphere
from linearcore.losses._sphere import on_unit_rows


class NormedScores(nn.Module):
    """The last layer of a classifier: scores normalised over the batch, each class for itself, to mean 0 and variance 1.

        u = s, or with `sphere` u = (s − s̄)/max(‖s − s̄‖, ε) sample by sample,   ε = 0.001
        z_c = (u_c − mean u_c)/√(variance of u_c + 10⁻⁵)                          over the batch

    For losses that have no least value, such as the unhinged one: with raw scores they diverge, or weight decay takes
    everything. And for wrong labels that have favourites. Under a loss that is straight in z, a linear core that is wide
    enough, only the covariance of a class's scores with its labels counts, and labels that are replaced by a draw from any
    fixed law, whatever the input, multiply it by one number. With `sphere` every sample counts alike. What is proven, and
    what it costs where classes are rare: `docs/robust-loss.md`.

    In evaluation the running mean and variance are taken, as batch norm does, so that a score does not depend on a batch.
    A bias of the layer before is taken away again (not by the sphere); with Adam leave it out there, which would make steps
    of the rounding that is its gradient.

    Args:
        num_classes: how many.
        sphere: whether each sample's scores are put on a sphere first.

    Raises:
        ValueError: if two classes are to have a sphere, on which they have no gradient; if scores are not (N, num_classes);
            or if a batch to train on has one row, which has no variance.

    Example:
        >>> import torch
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
        if sphere:
            check_sphere(num_classes)
        self.sphere = sphere
        self.norm = nn.BatchNorm1d(num_classes, affine=False)

    def forward(self, scores: Tensor) -> Tensor:
        """z (N, num_classes) in the precision of the running mean: float32 whatever the network computes in, as a rule."""
        if scores.dim() != 2 or scores.shape[1] != self.norm.num_features:
            expected = f"have shape (N, {self.norm.num_features})"
            raise ValueError(complaint("scores", expected, tuple(scores.shape), "it is the last layer of a classifier"))
        assert self.norm.running_mean is not None
        scores = scores.to(self.norm.running_mean.dtype)
        normed: Tensor = self.norm(on_unit_rows(scores) if self.sphere else scores)
        return normed

    def extra_repr(self) -> str:
        return f"sphere={self.sphere}"
