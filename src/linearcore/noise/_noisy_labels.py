"""What every law of label noise returns."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


# Two draws are compared by `hash`; comparing tensors field by field would raise.
@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Labels of which some are wrong, with what is needed to say which draw it was.

    Attributes:
        labels: the labels after the noise, int64, shape and device of the clean ones.
        rate: the requested rate, as the law defines it: usually the probability that a label is wrong. For
            `class_conditional` the expected share of wrong labels, for human labels the counted share.
        transitions: what happened, not the law: entry (i, j) counts the labels that were i and are now j. int64,
            shape (num_classes, num_classes), on the CPU. Divide the rows by their sums to estimate the law.
        hash: the draw's name: SHA-256, in hexadecimal, of `labels` as little-endian int64 in row order. Two machines
            have the same labels exactly when these agree.
        law: which law this is a draw from: `generator` has its name, and the other entries every option that makes one
            variant of it another law. Plain numbers, strings and lists, so that a record can hold it as JSON.
    """

    labels: Tensor
    rate: float
    transitions: Tensor
    hash: str
    law: Mapping[str, object] = field(default_factory=dict)

    @property
    def realised_rate(self) -> float:
        """The share of labels that are wrong in this draw; 0 when there are no labels."""
        total = int(self.transitions.sum())
        return 1 - int(self.transitions.trace()) / total if total else 0.0


def describe_draw(clean: Tensor, labels: Tensor, *, rate: float, num_classes: int, law: Mapping[str, object]) -> NoisyLabels:
    """Counts the transitions and names the draw.

    Args:
        clean: true labels, int64, any shape.
        labels: the same with noise.
        rate: the requested rate.
        num_classes: n; both kinds of labels are in 0..n−1.
        law: generator and variant.
    """
    pairs = (clean.cpu() * num_classes + labels.cpu()).flatten()
    transitions = torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
    content = labels.cpu().contiguous().numpy().astype("<i8").tobytes()
    return NoisyLabels(labels, rate, transitions, hashlib.sha256(content).hexdigest(), law)
