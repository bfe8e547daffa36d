"""The paper's statements about regrets, checked on random problems with a complete hypothesis set."""

from typing import Any

import numpy as np
import torch

from linearcore.analysis import transform
from linearcore.structures import Sequences
from linearcore.surrogates import BASES, LinearCore
from linearcore_paper.experiments._numbers import round_values

#: Values of t, dense near 0.
_T = (0.0, *np.geomspace(1e-4, 1.0, 41))


def transform_error() -> float:
    """Theorem 3.2: the largest difference between T(t) and the least regret of a wrong sign, both minimised on a grid.

    The regret of score u is the risk at u minus the least risk. A prediction with 0-1 regret t has u ≤ 0.
    """
    grid = torch.linspace(-12, 12, 240_001, dtype=torch.float64)
    worst = 0.0
    for phi in (LinearCore(base, sides=sides) for base in ("logistic", "exponential") for sides in (1, 2)):
        right, left = phi.value(grid), phi.value(-grid)
        for t in (0.01, 0.1, 0.3, 0.6, 0.9):
            risk = (1 - t) / 2 * left + (1 + t) / 2 * right
            wrong = float(risk[grid <= 0].min() - risk.min())
            worst = max(worst, abs(wrong - float(transform(phi, t))))
    return worst


def least_ratio(sides: int) -> tuple[float, float]:
    """Lemmas 3.3 and 3.5: the least T(t)/t over all bases, and the largest |T(0)|."""
    values = np.stack([transform(LinearCore(base, sides=sides), _T) for base in BASES])
    return float((values[:, 1:] / np.asarray(_T[1:])).min()), float(np.abs(values[:, 0]).max())


def binary_problems(sides: int, problems: int, seed: int) -> dict[str, Any]:
    """Theorem 3.4 and corollary 3.6: both regrets of random scores in random problems with one to eight inputs.

    Half of the problems have label probabilities near ½, where the bound is hardest to satisfy.
    """
    stream = np.random.default_rng(seed)
    points = 8
    masses = stream.dirichlet(np.full(points, 0.5), size=problems)
    t = stream.uniform(size=(problems, points)) * np.where(np.arange(problems) % 2, 0.02, 1.0)[:, None]
    scores = stream.normal(size=(problems, points)) * stream.choice([0.1, 1.0, 5.0], size=(problems, 1))
    names = list(BASES)
    base = stream.integers(len(names), size=problems)
    target, surrogate = np.empty(problems), np.empty(problems)
    for index, name in enumerate(names):
        phi, rows = LinearCore(name, sides=sides), base == index
        # Positive scores predict the likelier label of their input.
        right, left = phi.value(scores[rows]), phi.value(-scores[rows])
        risk = (1 - t[rows]) / 2 * left + (1 + t[rows]) / 2 * right
        least = float(phi.value(0.0)) - transform(phi, t[rows])
        target[rows] = (masses[rows] * t[rows] * (scores[rows] <= 0)).sum(-1)
        surrogate[rows] = (masses[rows] * (risk - least)).sum(-1)
    wrong = target > 1e-9
    examples = np.flatnonzero(wrong)[:150]
    return {
        "problems": problems,
        "violations": int((surrogate < target * (1 - 1e-9)).sum()),
        "least_ratio": round_values((surrogate[wrong] / target[wrong]).min(), 6),
        "target": round_values(target[examples], 4),
        "surrogate": round_values(surrogate[examples], 4),
    }


def zero_one_difference(seed: int) -> float:
    """Lemma H.1: the least 0-1 error and the regrets by enumeration of all predictions, for 2 to 9 classes."""
    stream = np.random.default_rng(seed)
    worst = 0.0
    for classes in range(2, 10):
        for p in stream.dirichlet(np.ones(classes), size=50):
            errors = np.array([sum(p[label] for label in range(classes) if label != answer) for answer in range(classes)])
            worst = max(worst, abs(errors.min() - (1 - p.max())), *abs(errors - errors.min() - (p.max() - p)))
    return float(worst)


def restricted_difference(seed: int) -> float:
    """Lemma H.2: the infimum over [−1, 1] on a grid against (a + b) Φ(0)/Φ'(0) + 2 min(a, b)."""
    stream = np.random.default_rng(seed)
    grid = torch.linspace(-1, 1, 2001, dtype=torch.float64)
    worst = 0.0
    for base in BASES:
        offset = BASES[base].at_zero / BASES[base].slope_at_zero
        for sides in (1, 2):
            phi = LinearCore(base, sides=sides)
            right, left = phi.value(grid), phi.value(-grid)
            for a, b in stream.uniform(0, 3, size=(20, 2)):
                printed = (a + b) * offset + 2 * min(a, b)
                worst = max(worst, abs(float((a * left + b * right).min()) - printed))
    return worst


def structured_difference(seed: int) -> float:
    """Lemma I.1: the least expected cost and the regrets by random scores, for sequences with Hamming cost."""
    stream = np.random.default_rng(seed)
    space = Sequences(3, 2)
    cost = space.cost("hamming").numpy()
    worst = 0.0
    for p in stream.dirichlet(np.full(space.size, 0.5), size=50):
        answers = stream.normal(size=(200, space.size)).argmax(-1)
        expected = np.array([cost[answer] @ p for answer in answers])
        least = min(cost[answer] @ p for answer in range(space.size))
        # Every output is the argmax of some scores, so the best answer is among the random ones.
        worst = max(worst, abs(expected.min() - least), float(-(expected - least).min()))
    return float(worst)
