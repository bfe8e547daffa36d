"""What every noise generator returns."""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor


# Two draws are compared by `hash`; comparing tensors field by field would raise.
@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels of which some are wrong, with what is needed to say which draw it was.

    Attributes:
        labels: the labels after the noise, int64, shape and device of the clean ones.
        rate: the rate that was asked for: the probability that a label is wrong.
        transitions: what happened, not the law: entry (i, j) counts the labels that were i and are now j. int64,
            shape (num_classes, num_classes), on the CPU. Divide the rows by their sums to estimate the law.
        hash: the draw's name: SHA-256, in hexadecimal, of `labels` as little-endian int64 in row order. Two machines
            have the same labels exactly when these agree.
    """

    labels: Tensor
    rate: float
    transitions: Tensor
    hash: str

    @property
    def realised_rate(self) -> float:
        """The share of labels that are wrong in this draw; 0 when there are no labels."""
        total = int(self.transitions.sum())
        return 1 - int(self.transitions.trace()) / total if total else 0.0


def describe_draw(clean: Tensor, labels: Tensor, *, rate: float, num_classes: int) -> NoisyLabels:
    """Counts the transitions and names the draw.

    Args:
        clean: true labels, int64, any shape.
        labels: the same with noise.
        rate: the rate that was asked for.
        num_classes: n; both kinds of labels are in 0..n−1.
    """
    pairs = (clean.cpu() * num_classes + labels.cpu()).flatten()
    transitions = torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
    content = labels.cpu().contiguous().numpy().astype("<i8").tobytes()
    return NoisyLabels(labels, rate, transitions, hashlib.sha256(content).hexdigest())
