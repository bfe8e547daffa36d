"""Measurements of `variance`: against K, in the worst case, against the number of tags, and with a control variate."""

import math
from typing import Any

import numpy as np
import torch

from linearcore.proposals.sequences import SimilarSequences, UniformSequences
from linearcore.structured import RunningSlope, pair_estimate
from linearcore.surrogates import Hinge, LinearCore, Surrogate
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.variance.sampled_gradients import around_truth, controlled, measure_variance, over_pairs
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
#: Margin of the true sequence over the mean score and standard deviation of scores; margins fall on both sides of the core.
MARGIN, SPREAD, TAGS = 1.0, 1.5, 100
WORST_MARGINS = (-10.0, -8.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 1.0)
#: Margin at which the variance of the unbounded slope is reported.
STEEP_MARGIN = -4.0
#: Proposal of y' and objective of each estimate over pairs.
PAIRS = {
    "sum": (SimilarSequences(), "raw"),
    "mean": (SimilarSequences(), "normalised"),
    "mean-uniform": (UniformSequences(), "normalised"),
}
CONTROL_MARGINS, CONTROL_SPREAD = (-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0), 1.0


def against_samples(phi: Surrogate, settings: Settings) -> dict[str, Any]:
    """Measures the variance against K around a fixed true sequence."""
    problem = UniformTags.draw(TAGS, MARGIN, SPREAD, settings.seed)
    stream = torch.Generator().manual_seed(settings.seed + 1)
    mean, single = problem.exact(phi)
    runs = 4_000 if settings.is_paper else 500
    estimates = [measure_variance(problem, around_truth(phi, k, stream), runs, mean) for k in SAMPLES]
    variances = [each.variance for each in estimates]
    return {
        "lipschitz": phi.lipschitz,
        "samples": list(SAMPLES),
        "variance": round_values(variances, 5),
        "error": round_values([each.error for each in estimates], 3),
        "exact_of_one": round_values(single, 6),
        "slope": round_values(log_slope(SAMPLES, variances), 5),
    }


def antipodal(settings: Settings) -> list[dict[str, Any]]:
    """Measures two outputs with features ±1, of which +1 is true: K·Var = φ'(m)² with m the margin over the wrong output."""
    runs, k = (100_000 if settings.is_paper else 20_000), 16
    stream = torch.Generator().manual_seed(settings.seed + 2)
    rows = []
    for key, (label, phi) in STEEP.items():
        measured, exact = [], []
        for margin in WORST_MARGINS:
            # h(±) = ±w, so m = 2w.
            w = torch.full((runs,), margin / 2, dtype=torch.float64, requires_grad=True)
            signs = 2.0 * torch.randint(2, (k, runs), generator=stream) - 1
            losses = pair_estimate(phi, w.expand(k, -1), signs * w, torch.zeros_like(signs))
            (gradients,) = torch.autograd.grad(losses.sum(), w)
            slope = float(phi.derivative(margin))
            # Half of the samples are the true output and contribute 0; the others contribute φ'·2.
            measured.append(k * float((gradients - slope).square().mean()))
            exact.append(slope**2)
        rows.append(
            {
                "key": key,
                "label": label,
                # JSON has no infinity.
                "lipschitz": phi.lipschitz if math.isfinite(phi.lipschitz) else None,
                "margin": list(WORST_MARGINS),
                "measured": round_values(measured, 5),
                "exact": round_values(exact, 6),
            }
        )
    return rows


def against_tags(num_tags: int, settings: Settings) -> dict[str, Any]:
    """Measures K·Var for a tag set: around the true sequence (mean over several problems), and over pairs."""
    problems, runs, k = 16, (64 if settings.is_paper else 8), 64
    stream = torch.Generator().manual_seed(settings.seed + 3)
    problem_list = [UniformTags.draw(num_tags, MARGIN, SPREAD, settings.seed + 100 * index) for index in range(problems)]
    row: dict[str, Any] = {"tags": num_tags, "truth": {}, "pairs": {}}
    for key in ("lc-logistic-1", "lc-logistic-2"):
        phi = SURROGATES[key][1]
        means = [problem.exact(phi) for problem in problem_list]
        variances = [
            k * measure_variance(problem, around_truth(phi, k, stream), runs, mean).variance
            for problem, (mean, _) in zip(problem_list, means, strict=True)
        ]
        row["truth"][key] = {
            "variance": round_values(np.mean(variances), 5),
            "exact": round_values(np.mean([single for _, single in means]), 6),
            "spread": round_values(np.std([single for _, single in means]), 3),
        }
    k, runs = 256, 800 if settings.is_paper else 160
    for name, (proposal, objective) in PAIRS.items():
        estimate = measure_variance(problem_list[0], over_pairs(LinearCore(), k, proposal, objective, stream), runs)
        row["pairs"][name] = {
            "variance": round_values(k * estimate.variance, 5),
            "error": round_values(k * estimate.error, 3),
            "relative": round_values(k * estimate.variance / estimate.mean_square, 5),
        }
    return row


def with_control(settings: Settings) -> list[dict[str, Any]]:
    """Measures the variance with control divided by that without, against the true margin, for α = 1 and a running α."""
    runs, k, phi = (2_000 if settings.is_paper else 250), 16, LinearCore()
    stream = torch.Generator().manual_seed(settings.seed + 5)
    rows = []
    for margin in CONTROL_MARGINS:
        problem = UniformTags.draw(TAGS, margin, CONTROL_SPREAD, settings.seed)
        mean, single = problem.exact(phi)
        fixed = measure_variance(problem, controlled(phi, k, 1.0, stream), runs, mean)
        alpha = RunningSlope(0.1)
        losses = controlled(phi, k, alpha, stream)
        # Warm-up, so that α does not depend on its initial value.
        for _ in range(100):
            problem.gradients(1, losses)
        following = measure_variance(problem, losses, runs, mean)
        rows.append(
            {
                "margin": margin,
                "exact_one": round_values(problem.exact(phi, lift=1.0)[1] / single, 5),
                "one": round_values(k * fixed.variance / single, 5),
                "running": round_values(k * following.variance / single, 5),
                "alpha": round_values(float(alpha.value), 4),
            }
        )
    return rows


def log_slope(x: Any, y: Any) -> float:
    """Returns the slope of a linear fit on log axes."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
