"""Evidence for corrections about scalar surrogates, the Fenchel–Young loss and restricted scores."""

import torch
import torch.nn.functional as F

from linearcore.analysis import fenchel_young_loss, transform
from linearcore.surrogates import CLASSICAL, LinearCore, Surrogate
from linearcore.surrogates.bases import BASES
from linearcore_paper.report._evidence_table import Evidence, fixed
from linearcore_paper.report._results import number


def curvatures() -> Evidence:
    """(r): the greatest second derivative on two intervals, and the declared constant."""
    rows = []
    for name in BASES:
        cells = [name.replace("_", " ")]
        for sides in (1, 2):
            surrogate = LinearCore(name, sides=sides)
            for reach in (5, 10):
                grid = torch.linspace(-reach, reach, 2001, dtype=torch.float64)
                # The greatest value may be at a knot.
                grid = torch.cat([grid, torch.tensor(surrogate.knots, dtype=torch.float64)])
                cells.append(number(float(surrogate.curvature(grid).max())))
            cells.append(number(surrogate.smoothness))
        rows.append(tuple(cells))
    columns = [f"{side}, {column}" for side in ("one-sided", "two-sided") for column in ("|u| ≤ 5", "|u| ≤ 10", "declared")]
    return Evidence(
        "Greatest second derivative on a grid, and the declared supremum; τ = 1.", ("base", *columns), tuple(rows)
    )


def fenchel_young() -> Evidence:
    """(t): the closed form of the Fenchel–Young loss, evaluated here, and the library's solver."""
    rows = []
    stream = torch.Generator().manual_seed(0)
    for classes in (2, 3, 10, 100):
        scores = 2 * torch.randn(200, classes, dtype=torch.float64, generator=stream)
        labels = torch.randint(classes, (200,), generator=stream)
        descending = scores.sort(-1, descending=True).values
        thresholds = (descending.cumsum(-1) - 1) / torch.arange(1, classes + 1)
        last = (descending > thresholds).sum(-1, keepdim=True) - 1
        mixture = (scores - thresholds.gather(-1, last)).relu()
        closed = F.cross_entropy(scores - mixture, labels, reduction="none") + 1 - mixture[range(200), labels]
        difference = (closed - fenchel_young_loss(scores, labels, reduction="none")).abs().max()
        agreement = (mixture.argmax(-1) == scores.argmax(-1)).double().mean()
        constants = (fixed(1 / classes), fixed(1 / (classes - 1)))
        rows.append((str(classes), f"{float(difference):.0e}".replace("-", "−"), f"{float(agreement):.0%}", *constants))
    columns = (
        "classes",
        "|closed form − solver|, at most",
        "argmax π = argmax s",
        "Fenchel–Young guarantees",
        "centered, mean, τ = 1",
    )
    return Evidence("200 random score vectors; surrogate regret ≥ constant × 0-1 regret.", columns, tuple(rows))


def slopes_at_zero() -> Evidence:
    """(u): slope and curvature at margin zero, and T(t)/t."""
    t = 1e-3
    names = {
        "logistic": "logistic loss",
        "exponential": "exponential loss",
        "squared-hinge": "squared hinge",
        "hinge": "hinge",
    }
    surrogates: dict[str, Surrogate] = {label: CLASSICAL[name] for name, label in names.items()}
    surrogates |= {f"linear core, {base.replace('_', ' ')}": LinearCore(base) for base in BASES}
    rows = [
        (
            label,
            fixed(float(phi.derivative(0.0)), 2),
            fixed(float(phi.curvature(0.0)), 2),
            fixed(float(transform(phi, t)) / t, 4),
        )
        for label, phi in surrogates.items()
    ]
    columns = ("surrogate", "φ′(0)", "φ″(0)", "T(t)/t at t = 0.001")
    return Evidence("One-sided linear cores with τ = 1. T(t)/t tends to 0 without a core.", columns, tuple(rows))


def restricted_scores() -> Evidence:
    """(v): T(t)/t if the scores are at most Λ; inside the core the best score is Λ itself."""
    t, surrogate, rows = 0.1, LinearCore(), []
    for bound in (0.25, 0.5, 1.0, 2.0):
        grid = torch.linspace(-bound, bound, 40_001, dtype=torch.float64)
        risk = (1 - t) / 2 * surrogate.value(-grid) + (1 + t) / 2 * surrogate.value(grid)
        ratio = (float(surrogate.value(0.0)) - float(risk.min())) / t
        rows.append((number(bound), fixed(ratio, 4), "yes" if ratio >= 1 - 1e-9 else "no"))
    columns = ("|h(x)| ≤", "T(t)/t at t = 0.1", "at least 1, as in Theorem 3.4")
    return Evidence("One-sided logistic base, τ = 1, two classes, bounded scores.", columns, tuple(rows))
