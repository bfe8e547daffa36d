"""The paper's definitions, typed as printed and compared with the library. Each function returns the largest difference."""

import math
from collections.abc import Callable

import numpy as np
import torch

from linearcore.analysis import conditional_risk, minimizability_gap, named_form
from linearcore.forms import Pairwise
from linearcore.losses import multiclass_loss
from linearcore.structures import Sequences
from linearcore.surrogates import LinearCore

#: Φ and Φ'(0) of the paper's two examples.
_BASES: dict[str, tuple[Callable[[float], float], float]] = {
    "logistic": (lambda z: math.log1p(math.exp(z)), 0.5),
    "exponential": (math.exp, 1.0),
}
#: Margins, with both ends of every core.
_MARGINS = (*np.linspace(-6, 6, 241), *(sign * tau for sign in (-1, 1) for tau in (0.1, 0.5, 1.0, 2.0, 5.0)))


def generalised(base: str, tau: float, u: float) -> float:
    """Eq. (4); with τ = 1 it is Eq. (1)."""
    value, slope = _BASES[base]
    if u > tau:
        return value(tau - u) / slope
    if u < -tau:
        return value(-tau - u) / slope + 2 * tau
    return -u + tau + value(0.0) / slope


def one_sided(base: str, u: float) -> float:
    """Eq. (2)."""
    value, slope = _BASES[base]
    return value(1 - u) / slope if u > 1 else -u + 1 + value(0.0) / slope


def two_sided_difference() -> float:
    """Eq. (1), and its two examples in appendix D."""
    return _surrogate_difference(2, (1.0,), generalised)


def one_sided_difference() -> float:
    """Eq. (2)."""
    return _surrogate_difference(1, (1.0,), lambda base, tau, u: one_sided(base, u))


def family_difference() -> float:
    """Eq. (4), for the paper's five values of τ."""
    return _surrogate_difference(2, (0.1, 0.5, 1.0, 2.0, 5.0), generalised)


def rescaling_error() -> float:
    """Largest distance between φ_τ and the rescaled surrogate τ φ_1(u/τ) + constant on |u| ≤ 6, logistic base, τ = 0.5."""
    small, unit = LinearCore(tau=0.5, sides=2), LinearCore(sides=2)
    u = np.linspace(-6, 6, 241)
    shift = float(small.value(0.0)) - 0.5 * float(unit.value(0.0))
    return float(np.abs(np.asarray(small.value(u)) - 0.5 * np.asarray(unit.value(u / 0.5)) - shift).max())


def sum_difference(seed: int) -> float:
    """Eq. (3): the sum over competing classes, for random scores of two to six classes."""
    stream = np.random.default_rng(seed)
    worst = 0.0
    for classes in range(2, 7):
        scores = stream.normal(scale=2.0, size=(20, classes))
        labels = stream.integers(classes, size=20)
        losses = multiclass_loss(
            torch.from_numpy(scores),
            torch.from_numpy(labels),
            surrogate=LinearCore(sides=2),
            form=Pairwise(normalize=False),
            reduction="none",
        )
        for row, label, loss in zip(scores, labels, losses.tolist(), strict=True):
            terms = (generalised("logistic", 1.0, row[label] - row[other]) for other in range(classes) if other != label)
            worst = max(worst, abs(sum(terms) - loss))
    return worst


def closed_forms_difference() -> float:
    """Appendix D: the three-class losses as functions of two margins."""
    worst = 0.0
    for base in _BASES:
        for first in np.linspace(-3, 3, 13):
            for second in np.linspace(-3, 3, 13):
                printed = generalised(base, 1.0, first) + generalised(base, 1.0, second)
                scores = torch.tensor([[0.0, -first, -second]], dtype=torch.float64)
                form = Pairwise(normalize=False)
                loss = multiclass_loss(scores, torch.tensor([0]), surrogate=LinearCore(base, sides=2), form=form)
                worst = max(worst, abs(printed - float(loss)))
    return worst


def structured_difference(seed: int) -> float:
    """Section 5: the double sum over all outputs, for eight binary sequences with Hamming cost."""
    space, stream = Sequences(2, 3), np.random.default_rng(seed)
    similarity = 1 - space.cost("hamming").numpy()
    form = named_form("structured-sum").normalized(False)
    worst = 0.0
    for label in range(space.size):
        scores = stream.normal(scale=2.0, size=space.size)
        printed = sum(
            similarity[outer, label] * generalised("logistic", 1.0, scores[outer] - scores[inner])
            for outer in range(space.size)
            for inner in range(space.size)
            if inner != outer
        )
        one_hot = np.eye(space.size)[label]
        loss = conditional_risk(LinearCore(sides=2), form, scores, one_hot, outputs=space, cost="hamming")
        worst = max(worst, abs(printed - loss))
    return worst


def conditional_difference(seed: int) -> float:
    """Appendix F: the conditional error Σ_y p_y ℓ(h, x, y), for random scores of two to six classes."""
    stream = np.random.default_rng(seed)
    worst = 0.0
    for classes in range(2, 7):
        p, scores = stream.dirichlet(np.ones(classes)), stream.normal(scale=2.0, size=classes)
        printed = sum(
            p[label] * generalised("logistic", 1.0, scores[label] - scores[other])
            for label in range(classes)
            for other in range(classes)
            if other != label
        )
        risk = conditional_risk(LinearCore(sides=2), Pairwise(normalize=False), scores, p)
        worst = max(worst, abs(printed - risk))
    return worst


def gap_difference() -> tuple[float, float]:
    """Section 2: the minimizability gap of h(x) = w x on three inputs. Returns the gap and its difference to a grid."""
    inputs, labels = (1.0, 2.0, -1.0), (1, -1, 1)
    found = minimizability_gap(LinearCore(), "pairwise", [[x] for x in inputs], labels, intercept=False).gap
    weights = np.linspace(-2, 2, 40_001)
    risk = sum(LinearCore().value(label * x * weights) for x, label in zip(inputs, labels, strict=True)) / len(inputs)
    # A single input with one label can be fitted perfectly, and φ tends to 0.
    return found, abs(float(np.min(risk)) - found)


def _surrogate_difference(sides: int, taus: tuple[float, ...], printed: Callable[[str, float, float], float]) -> float:
    return max(
        abs(printed(base, tau, u) - float(LinearCore(base, tau=tau, sides=sides).value(float(u))))
        for base in _BASES
        for tau in taus
        for u in _MARGINS
    )
