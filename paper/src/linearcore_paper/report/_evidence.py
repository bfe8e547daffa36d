"""Evidence for corrections, computed when the report is written."""

from collections.abc import Callable

import torch
from torch import Tensor

from linearcore.analysis import rate, transform
from linearcore.structures import Sequences
from linearcore.surrogates import LinearCore, SmoothedHinge
from linearcore.surrogates.bases import BASES, QuarticBase
from linearcore_paper.report._evidence_table import Evidence, fixed
from linearcore_paper.report._loss_evidence import curvatures, fenchel_young, restricted_scores, slopes_at_zero
from linearcore_paper.report._results import number
from linearcore_paper.report._sequence_evidence import mixed_differences, negative_weights, sampled_hinge


def steps_of_algorithm_1() -> Evidence:
    """(b): cosine between the gradient and the expected step, as printed and as corrected."""
    columns = ("largest margin", "printed step", "corrected step")
    return Evidence(
        "Cosine to the gradient, over all 27 sequences of length 3 with 3 tags, random chain scores; two-sided logistic.",
        columns,
        tuple(
            (number(chain.largest_margin, 3), fixed(chain.cosine(chain.printed)), fixed(chain.cosine(chain.corrected)))
            for chain in map(_Chain, _SCALES)
        ),
    )


def sampler_of_algorithm_1() -> Evidence:
    """(c): the error of the gradient if the true sequence is never sampled."""
    columns = (
        "largest margin",
        "P(true), by distance",
        "P(true), by similarity",
        "relative gradient error",
        "cosine",
    )
    rows = []
    for chain in map(_Chain, _SCALES):
        error = float((chain.gradient - chain.step_without_true).norm() / chain.gradient.norm())
        probabilities = (
            fixed(float(weight[chain.true_index] / weight.sum())) for weight in (chain.distance, 1 - chain.distance)
        )
        rows.append(
            (
                number(chain.largest_margin, 3),
                *probabilities,
                fixed(error),
                fixed(chain.cosine(chain.step_without_true)),
            )
        )
    return Evidence(
        "The same 27 sequences, with the sign of (b) corrected.",
        columns,
        tuple(rows),
    )


def steepest_slopes() -> Evidence:
    """(d): the steepest slope on a grid, and the declared Lipschitz constant."""
    grid = torch.linspace(-10, 10, 4001, dtype=torch.float64)
    rows = []
    for name in BASES:
        cells = [name.replace("_", " ")]
        for sides in (1, 2):
            surrogate = LinearCore(name, sides=sides)
            cells += [number(float(surrogate.derivative(grid).abs().max())), number(surrogate.lipschitz)]
        rows.append(tuple(cells))
    columns = ("base", "one-sided, |u| ≤ 10", "declared", "two-sided, |u| ≤ 10", "declared")
    return Evidence("Steepest slope on a grid, and the declared Lipschitz constant; τ = 1.", columns, tuple(rows))


def quartic_turns() -> Evidence:
    """(e): the minimum of the quartic loss, and its growth beyond it."""
    rows = []
    for a in (0.5, 1.0, 2.0):
        surrogate = LinearCore(QuarticBase(a))
        minimum = 1 + (3 * a) ** (1 / 3)
        # Rounded, because the value at the minimum is zero up to rounding.
        values = (number(round(float(surrogate.value(u)), 12) + 0.0, 3) for u in (minimum, 3.0, 4.0, 6.0))
        rows.append((number(a), number(minimum), *values))
    columns = ("a", "minimum at 1 + (3a)^⅓", "loss at the minimum", "loss at 3", "at 4", "at 6")
    return Evidence("The loss decreases to zero and then increases; τ = 1, smallest K.", columns, tuple(rows))


def transform_against_bounds() -> Evidence:
    """(f): T compared with the two candidate bounds."""
    rows = []
    for tau in (0.25, 0.5):
        for t in (0.01, 0.1, 0.5):
            values = (number(float(transform(LinearCore(tau=tau, sides=sides), t))) for sides in (1, 2))
            rows.append((number(tau), number(t), number(tau * t), *values, number(t / tau)))
    columns = ("τ", "t", "τ·t", "T, one-sided", "T, two-sided", "t/τ")
    return Evidence("Logistic base. T stays above τ·t and below the stated t/τ.", columns, tuple(rows))


def variance_of_single_draws() -> Evidence:
    """(g): exact variance of one sampled pair, for the average and, importance-weighted, for the sum."""
    rows = []
    for tags in (2, 3, 4):
        space = Sequences(tags, 3)
        features = space.features("chain")
        features = features / features.norm(dim=-1).max()
        weights = torch.randn(features.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        scores = features @ (weights / weights.norm())
        left, right = (index.reshape(-1) for index in torch.meshgrid(*[torch.arange(space.size)] * 2, indexing="ij"))
        left, right = left[left != right], right[left != right]
        slope = LinearCore(sides=2).derivative(scores[left] - scores[right])
        similarity = 1 - space.cost("hamming")[left, 0]
        terms = (similarity * slope).unsqueeze(-1) * (features[left] - features[right])
        variance = float((terms - terms.mean(0)).square().sum(-1).mean())
        rows.append((str(tags), str(space.size), number(variance, 3), number(variance * len(left) ** 2, 3)))
    columns = ("tags", "sequences of length 3", "average over pairs", "sum over pairs")
    return Evidence("Variance of one sampled pair; R = 1, so the bound is 4.", columns, tuple(rows))


def smoothed_hinges() -> Evidence:
    """(j): T(t)/t and the local slope of smoothed hinges."""
    rows = []
    for width in (0.25, 0.5, 0.75, 1.0):
        surrogate = SmoothedHinge(width)
        ratios = (number(float(transform(surrogate, t)) / t) for t in (0.5, 0.01, 0.001))
        slope = float(rate(surrogate, deltas=[1e-4]).slopes[0])
        rows.append((number(width), number(1 - width), *ratios, fixed(slope, 4)))
    columns = ("γ", "1 − γ", "T(t)/t at t = 0.5", "0.01", "0.001", "local slope, δ = 1e-4")
    return Evidence(
        "T(t)/t stays at or above 1 − γ; the slope is 1 for a linear rate, ½ without a core.", columns, tuple(rows)
    )


#: The evidence that does not need an experiment, by letter.
LIVE: dict[str, Callable[[], Evidence]] = {
    "b": steps_of_algorithm_1,
    "c": sampler_of_algorithm_1,
    "d": steepest_slopes,
    "e": quartic_turns,
    "f": transform_against_bounds,
    "g": variance_of_single_draws,
    "j": smoothed_hinges,
    "q": sampled_hinge,
    "r": curvatures,
    "s": negative_weights,
    "t": fenchel_young,
    "u": slopes_at_zero,
    "v": restricted_scores,
    "w": mixed_differences,
}

#: From all margins inside the core to margins far outside.
_SCALES = (0.1, 1.0, 10.0)


class _Chain:
    """The expected step of Algorithm 1, printed and corrected, by enumeration of all sequences."""

    def __init__(self, scale: float) -> None:
        space = Sequences(3, 3)
        self.features = space.features("chain")
        weights = torch.randn(self.features.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        scores = scale * self.features @ (weights / weights.norm())
        self.true_index = space.size // 2
        self.distance = space.cost("hamming")[:, self.true_index]
        self.margins = scores.unsqueeze(1) - scores.unsqueeze(0)
        self.largest_margin = float(self.margins.abs().max())
        similarity = (1 - self.distance).unsqueeze(1)
        slope = LinearCore(sides=2).derivative
        # Row y', column y''; the corrected step is φ'(h(y') − h(y'')) (∇h(y') − ∇h(y'')), the printed one has both swapped.
        self.corrected = self._step(similarity * slope(self.margins))
        self.printed = -self._step(similarity * slope(-self.margins))
        is_sampled = torch.ones(space.size, 1, dtype=torch.float64)
        is_sampled[self.true_index] = 0
        self.step_without_true = self._step(is_sampled * similarity * slope(self.margins))
        self.gradient = self._gradient(scale * weights / weights.norm(), similarity)

    def _step(self, weight: Tensor) -> Tensor:
        """Σ weight(y', y'') (∇h(y') − ∇h(y''))."""
        return (weight.sum(1) - weight.sum(0)) @ self.features

    def _gradient(self, weights: Tensor, similarity: Tensor) -> Tensor:
        """Computes the gradient with autograd, as an independent check of the corrected step."""
        weights = weights.clone().requires_grad_()
        scores = self.features @ weights
        loss = (similarity * LinearCore(sides=2).value(scores.unsqueeze(1) - scores.unsqueeze(0))).sum()
        return torch.autograd.grad(loss, weights)[0]

    def cosine(self, step: Tensor) -> float:
        """Returns the cosine between `step` and the gradient."""
        return float(torch.nn.functional.cosine_similarity(step, self.gradient, dim=0))
