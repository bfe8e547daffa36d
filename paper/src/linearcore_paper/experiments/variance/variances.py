"""The measurements of `variance`: against K, at its worst, against the number of tags, and with a control variate."""

import math
from typing import Any

import numpy as np
import torch

from linearcore.proposals.sequences import SimilarSequences, UniformSequences
from linearcore.structured import RunningSlope, pair_estimate
from linearcore.surrogates import Hinge, LinearCore, Surrogate
from linearcore_paper.experiments._plain import plain
from linearcore_paper.experiments.variance.sampled_gradients import around_truth, controlled, over_pairs, stray
from linearcore_paper.experiments.variance.uniform_tags import UniformTags
from linearcore_paper.runner import Settings

SURROGATES: dict[str, tuple[str, Surrogate]] = {
    "lc-logistic-1": ("LC logistic, one-sided", LinearCore()),
    "lc-logistic-2": ("LC logistic, two-sided", LinearCore(sides=2)),
    "lc-exponential-1": ("LC exponential, one-sided", LinearCore("exponential")),
    "hinge": ("hinge", Hinge()),
}
STEEP: dict[str, tuple[str, Surrogate]] = {
    "lc-logistic-1": ("LC logistic, one-sided", LinearCore()),
    "lc-logistic-2": ("LC logistic, two-sided", LinearCore(sides=2)),
    "lc-exponential-2": ("LC exponential, two-sided", LinearCore("exponential", sides=2)),
}
SAMPLES = (1, 4, 16, 64, 256)
#: The truth is this far above the mean score, and scores have this standard deviation: on both sides of the core.
MARGIN, SPREAD, TAGS = 1.0, 1.5, 100
WORST_MARGINS = (-10.0, -8.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 1.0)
#: Where the unbounded slope is told of.
STEEP_MARGIN = -4.0
#: How pairs are drawn and weighted: y' from which law, for which objective.
PAIRS = {
    "sum": (SimilarSequences(), "raw"),
    "mean": (SimilarSequences(), "normalised"),
    "mean-uniform": (UniformSequences(), "normalised"),
}
CONTROL_MARGINS, CONTROL_SPREAD = (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0), 1.0


def against_samples(phi: Surrogate, settings: Settings) -> dict[str, Any]:
    """Variance against K, around a fixed truth."""
    problem = UniformTags.draw(TAGS, MARGIN, SPREAD, settings.seed)
    stream = torch.Generator().manual_seed(settings.seed + 1)
    mean, single = problem.exact(phi)
    runs = 4_000 if settings.is_paper else 500
    found = [stray(problem, around_truth(phi, k, stream), runs, mean) for k in SAMPLES]
    variances = [each.variance for each in found]
    return {
        "lipschitz": phi.lipschitz,
        "samples": list(SAMPLES),
        "variance": plain(variances, 5),
        "error": plain([each.error for each in found], 3),
        "exact_of_one": plain(single, 6),
        "slope": plain(log_slope(SAMPLES, variances), 5),
    }


def antipodal(settings: Settings) -> list[dict[str, Any]]:
    """Two outputs with features ±1 on the line, the truth being +1: K·Var = φ'(m)² where m is the wrong one's margin."""
    runs, k = (100_000 if settings.is_paper else 20_000), 16
    stream = torch.Generator().manual_seed(settings.seed + 2)
    rows = []
    for key, (label, phi) in STEEP.items():
        measured, exact = [], []
        for margin in WORST_MARGINS:
            # h(±) = ±w, so that m = 2w.
            w = torch.full((runs,), margin / 2, dtype=torch.float64, requires_grad=True)
            signs = 2.0 * torch.randint(2, (k, runs), generator=stream) - 1
            losses = pair_estimate(phi, w.expand(k, -1), signs * w, torch.zeros_like(signs))
            (found,) = torch.autograd.grad(losses.sum(), w)
            slope = float(phi.derivative(margin))
            # Half of the draws are the truth itself, which adds nothing; the others add φ'·2.
            measured.append(k * float((found - slope).square().mean()))
            exact.append(slope**2)
        rows.append(
            {
                "key": key,
                "label": label,
                # JSON has no infinity.
                "lipschitz": phi.lipschitz if math.isfinite(phi.lipschitz) else None,
                "margin": list(WORST_MARGINS),
                "measured": plain(measured, 5),
                "exact": plain(exact, 6),
            }
        )
    return rows


def against_tags(num_tags: int, settings: Settings) -> dict[str, Any]:
    """K·Var for a tag set: around the truth, averaged over several scores, and over pairs."""
    problems, runs, k = 16, (64 if settings.is_paper else 8), 64
    stream = torch.Generator().manual_seed(settings.seed + 3)
    drawn = [UniformTags.draw(num_tags, MARGIN, SPREAD, settings.seed + 100 * index) for index in range(problems)]
    row: dict[str, Any] = {"tags": num_tags, "truth": {}, "pairs": {}}
    for key in ("lc-logistic-1", "lc-logistic-2"):
        phi = SURROGATES[key][1]
        means = [problem.exact(phi) for problem in drawn]
        found = [
            k * stray(problem, around_truth(phi, k, stream), runs, mean).variance
            for problem, (mean, _) in zip(drawn, means, strict=True)
        ]
        row["truth"][key] = {
            "variance": plain(np.mean(found), 5),
            "exact": plain(np.mean([single for _, single in means]), 6),
            "spread": plain(np.std([single for _, single in means]), 3),
        }
    k, runs = 256, 800 if settings.is_paper else 160
    for name, (law, objective) in PAIRS.items():
        strays = stray(drawn[0], over_pairs(LinearCore(), k, law, objective, stream), runs)
        row["pairs"][name] = {
            "variance": plain(k * strays.variance, 5),
            "error": plain(k * strays.error, 3),
            "relative": plain(k * strays.variance / strays.mean_square, 5),
        }
    return row


def with_control(settings: Settings) -> list[dict[str, Any]]:
    """Variance with a control variate over that without, against the truth's margin: α = 1, and α that follows."""
    runs, k, phi = (2_000 if settings.is_paper else 250), 16, LinearCore()
    stream = torch.Generator().manual_seed(settings.seed + 5)
    rows = []
    for margin in CONTROL_MARGINS:
        problem = UniformTags.draw(TAGS, margin, CONTROL_SPREAD, settings.seed)
        mean, single = problem.exact(phi)
        fixed = stray(problem, controlled(phi, k, 1.0, stream), runs, mean)
        alpha = RunningSlope(0.1)
        losses = controlled(phi, k, alpha, stream)
        # Until α has forgotten where it began.
        for _ in range(100):
            problem.gradients(1, losses)
        following = stray(problem, losses, runs, mean)
        rows.append(
            {
                "margin": margin,
                "exact_one": plain(problem.exact(phi, lift=1.0)[1] / single, 5),
                "one": plain(k * fixed.variance / single, 5),
                "running": plain(k * following.variance / single, 5),
                "alpha": plain(float(alpha.value), 4),
            }
        )
    return rows


def log_slope(x: Any, y: Any) -> float:
    """The slope of a straight fit on log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
