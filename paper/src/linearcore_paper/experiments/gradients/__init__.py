"""`gradients`: the size of the gradient against the margin, for linear-core surrogates and the logistic loss."""

from functools import partial
from typing import Any

import numpy as np

from linearcore.surrogates import LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.gradients.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

SURROGATES: dict[str, tuple[str, Surrogate]] = {
    "lc-logistic-1": ("LC logistic, one-sided", LinearCore()),
    "lc-logistic-2": ("LC logistic, two-sided", LinearCore(sides=2)),
    "lc-truncated-1": ("LC truncated quadratic", LinearCore("truncated_quadratic")),
    "lc-gamma-1": ("LC gamma (C2)", LinearCore("gamma")),
    "logistic": ("logistic", Logistic()),
}
REACH, STEEP_REACH, POINTS = 6.0, 15.0, 241


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each surrogate, and one for the steepest slopes of the paper's examples."""
    curves: dict[str, PartFunction] = {key: partial(_curve, phi) for key, (_, phi) in SURROGATES.items()}
    return curves | {"steepest": _steepest}


def _curve(phi: Surrogate) -> dict[str, Any]:
    u = np.linspace(-REACH, REACH, POINTS)
    size = np.abs(phi.derivative(u))
    in_core = size[u <= 1]
    at_points = np.abs(phi.derivative(np.array([-1.0, 0.0, 1.0])))
    return {
        "margin": round_values(u),
        "gradient": round_values(size),
        "spread_up_to_one": round_values(in_core.max() - in_core.min()),
        "at_minus_one_zero_one": round_values(at_points),
        "curvature_at_zero": round_values(np.asarray(phi.curvature(0.0))),
    }


def _steepest() -> dict[str, float]:
    """Returns sup |φ'| over |u| ≤ 15 of the paper's two examples."""
    u = np.linspace(-STEEP_REACH, STEEP_REACH, 3001)
    examples = {f"{base}-{sides}": LinearCore(base, sides=sides) for base in ("logistic", "exponential") for sides in (1, 2)}
    return {key: round_values(np.abs(phi.derivative(u)).max()) for key, phi in examples.items()}


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Checks where the gradient is constant and where it is bounded by 1."""
    core, logistic, steepest = results["lc-logistic-1"], results["logistic"], results["steepest"]
    at_points = logistic["at_minus_one_zero_one"]
    claims = [
        Claim(
            claim="The gradient of the one-sided linear-core surrogate is the same for all margins up to 1",
            paper="constant",
            ours=f"|φ'| = {core['at_minus_one_zero_one'][1]:g}, spread {core['spread_up_to_one']:.1g} over margins up to 1",
            verdict=verdict(core["spread_up_to_one"] == 0),
        ),
        Claim(
            claim="The logistic loss is curved at margin 0, and its gradient varies near the boundary",
            paper="varies",
            ours=f"{at_points[0]:.2f}, {at_points[1]:.2f}, {at_points[2]:.2f} at margins −1, 0, 1; curvature "
            f"{logistic['curvature_at_zero']:g} at 0",
            verdict=verdict(logistic["curvature_at_zero"] > 0 and at_points[0] > at_points[2]),
        ),
        Claim(
            claim="The derivative of a linear-core surrogate is never larger than 1 in absolute value",
            paper="at most 1",
            ours=f"one-sided {steepest['logistic-1']:g} (logistic) and {steepest['exponential-1']:g} (exponential); "
            f"two-sided {steepest['logistic-2']:.3g} and, at margin −{STEEP_REACH:g}, {steepest['exponential-2']:.2g}",
            verdict=verdict(max(steepest.values()) <= 1),
            correction="d",
        ),
    ]
    curves = [{"label": label, "key": key, **results[key]} for key, (label, _) in SURROGATES.items()]
    return Outcome(claims, {"curves": curves, "steepest": steepest}, _alt(results))


def _alt(results: dict[str, Any]) -> str:
    return (
        "Gradient size against margin. The one-sided linear-core surrogates are flat at 1 for all margins up to 1 and "
        "then fall to 0: the truncated quadratic at margin 2, the logistic and gamma tails more slowly. The two-sided "
        f"logistic one rises to {results['lc-logistic-2']['gradient'][0]:.2f} at margin −6. The logistic loss falls "
        f"throughout, from {results['logistic']['gradient'][0]:.2f} at −6 through 0.50 at 0."
    )


EXPERIMENT = Experiment(
    name="gradients",
    title="Gradients against the margin",
    question="How large is the gradient of each loss at a given margin?",
    shows="gradient size against margin: constant in the core, varying for the logistic loss; above 1 for two-sided ones",
    paper="Figure 4, section 4.3",
    needs="nothing",
    cost={"smoke": "1 s", "paper": "1 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
