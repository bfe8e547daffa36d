"""Evidence for corrections about sampling, costs and metrics of whole sequences, by enumeration of small output spaces."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, product

import torch

from linearcore.structures import Sequences
from linearcore.surrogates import Hinge, LinearCore, Surrogate
from linearcore_paper.report._evidence_table import Evidence, fixed
from linearcore_paper.report._results import number


def sampled_hinge() -> Evidence:
    """(q): exact mean and variance of one sampled step of Algorithm 1, corrected, for the hinge and a linear core."""
    space = Sequences(3, 3)
    features = space.features("chain")
    features = features / features.norm(dim=-1).max()
    weights = torch.randn(features.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    similarity = 1 - space.cost("hamming")[:, 0]
    others = 1 - torch.eye(space.size, dtype=torch.float64)
    probability = similarity.unsqueeze(1) / similarity.sum() * others / (space.size - 1)
    surrogates: dict[str, Surrogate] = {"hinge": Hinge(), "linear core": LinearCore()}
    rows = []
    for label, phi in surrogates.items():
        parameters = (3 * weights).requires_grad_()
        scores = features @ parameters
        margins = scores.unsqueeze(1) - scores.unsqueeze(0)
        (gradient,) = torch.autograd.grad((probability * phi.value(margins)).sum(), parameters)
        steps = phi.derivative(margins.detach()).unsqueeze(-1) * (features.unsqueeze(1) - features.unsqueeze(0))
        mean = torch.einsum("ab,abd->d", probability, steps)
        variance = float((probability * (steps - mean).square().sum(-1)).sum())
        error = float((mean - gradient).norm() / gradient.norm())
        rows.append((label, f"{error:.0e}".replace("-", "−"), fixed(variance), number(4 * phi.lipschitz**2)))
    return Evidence(
        "All 702 pairs of sequences of length 3 with 3 tags, R = 1; with K pairs both variances are divided by K.",
        ("surrogate", "relative error of the mean step", "variance of one pair", "bound 4R²Lip²"),
        tuple(rows),
    )


def negative_weights() -> Evidence:
    """(s): the sum loss if the cost is the number of wrong tags, at lower and lower scores of one wrong sequence."""
    space, phi = Sequences(3, 3), LinearCore()
    fraction = space.cost("hamming")[:, 0]
    worst, rows = int(fraction.argmax()), []
    for score in (0.0, -10.0, -100.0, -1000.0):
        scores = torch.zeros(space.size, dtype=torch.float64)
        scores[worst] = score
        values = phi.value(scores.unsqueeze(1) - scores.unsqueeze(0)).fill_diagonal_(0.0).sum(1)
        losses = (number(float(((1 - cost) * values).sum()), 4) for cost in (3 * fraction, fraction))
        rows.append((number(score), *losses))
    negative = int((1 - 3 * fraction < 0).sum())
    return Evidence(
        f"27 sequences, all scores 0 except one. If the cost counts wrong tags, {negative} of the weights are negative.",
        ("score of one wrong sequence", "loss, number of wrong tags", "loss, fraction of wrong tags"),
        tuple(rows),
    )


Metric = Callable[[Sequence[int], Sequence[int]], float]


def mixed_differences() -> Evidence:
    """(w): the largest change of a metric that no sum over windows of n tags can have, for sequences of n + 1 tags."""
    metrics: dict[str, Metric] = {"aligned pairs of tags": _aligned, "F1 of tag 1": _f1, "BLEU, 1- and 2-grams": _bleu}
    rows = [
        (label, *(fixed(_largest_mixed_difference(metric, window + 1)) for window in (2, 3, 4)))
        for label, metric in metrics.items()
    ]
    columns = ("metric", "windows of 2 tags", "3 tags", "4 tags")
    return Evidence(
        "Two tags. g(a…b) − g(a′…b) − g(a…b′) + g(a′…b′) is 0 for every sum over windows without both ends.",
        columns,
        tuple(rows),
    )


def _largest_mixed_difference(metric: Metric, length: int) -> float:
    largest = 0.0
    for target, middle in product(product((0, 1), repeat=length), product((0, 1), repeat=length - 2)):
        if 1 in target:  # F1 is not defined without a tag 1.
            values = [metric((first, *middle, last), target) for first in (0, 1) for last in (0, 1)]
            largest = max(largest, abs(values[0] - values[1] - values[2] + values[3]))
    return largest


def _aligned(prediction: Sequence[int], target: Sequence[int]) -> float:
    pairs = list(zip(pairwise(prediction), pairwise(target), strict=True))
    return sum(ours == theirs for ours, theirs in pairs) / len(pairs)


def _f1(prediction: Sequence[int], target: Sequence[int]) -> float:
    return 2 * sum(a * b for a, b in zip(prediction, target, strict=True)) / (sum(prediction) + sum(target))


def _bleu(prediction: Sequence[int], target: Sequence[int]) -> float:
    """Geometric mean of the clipped precisions; equal lengths, so there is no brevity penalty."""
    tags = (Counter(prediction) & Counter(target)).total() / len(prediction)
    pairs = (Counter(pairwise(prediction)) & Counter(pairwise(target))).total() / (len(prediction) - 1)
    return float((tags * pairs) ** 0.5)
