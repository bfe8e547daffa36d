"""The result type of all label-noise laws."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


# Compare results by `hash`; comparing the tensors field by field would raise.
@dataclass(frozen=True, eq=False)
class NoisyLabels:
    """Noisy labels with their noise rate, transition counts, hash and the law that made them.

    Attributes:
        labels: noisy labels, int64, with the shape and device of the clean labels.
        rate: the requested rate as the law defines it, usually the probability that a label is wrong. For
            `class_conditional` the expected fraction of wrong labels, for human labels the actual fraction.
        transitions: counts of this sample: entry (i, j) is the number of labels that were i and are now j. int64, shape
            (num_classes, num_classes), on the CPU. Divide the rows by their sums to estimate the transition matrix.
        hash: hexadecimal SHA-256 of `labels` as little-endian int64 in row order. Two results have equal hashes if and only
            if their labels are equal.
        law: the law that made these labels: `generator` is its name, the other entries are its options. JSON values.
    """

    labels: Tensor
    rate: float
    transitions: Tensor
    hash: str
    law: Mapping[str, object] = field(default_factory=dict)

    @property
    def realised_rate(self) -> float:
        """Fraction of wrong labels in this sample; 0 if there are no labels."""
        total = int(self.transitions.sum())
        return 1 - int(self.transitions.trace()) / total if total else 0.0


def describe_draw(clean: Tensor, labels: Tensor, *, rate: float, num_classes: int, law: Mapping[str, object]) -> NoisyLabels:
    """Counts the transitions and computes the hash.

    Args:
        clean: true labels, int64, any shape.
        labels: noisy labels, in the same shape.
        rate: the requested rate.
        num_classes: n; all labels are in 0..n−1.
        law: name and options of the law.
    """
    pairs = (clean.cpu() * num_classes + labels.cpu()).flatten()
    transitions = torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
    content = labels.cpu().contiguous().numpy().astype("<i8").tobytes()
    return NoisyLabels(labels, rate, transitions, hashlib.sha256(content).hexdigest(), law)
