"""`gradients`: the size of the gradient against the margin, for linear-core surrogates and the logistic loss."""

from functools import partial
from typing import Any

import numpy as np

from linearcore.surrogates import LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._plain import plain
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
    """One part for each surrogate, and the steepest slopes of the two-sided ones."""
    curves: dict[str, PartFunction] = {key: partial(_curve, phi) for key, (_, phi) in SURROGATES.items()}
    return curves | {"steepest": _steepest}


def _curve(phi: Surrogate) -> dict[str, Any]:
    u = np.linspace(-REACH, REACH, POINTS)
    size = np.abs(phi.derivative(u))
    inside = size[u <= 1]
    near = np.abs(phi.derivative(np.array([-1.0, 0.0, 1.0])))
    return {
        "margin": plain(u),
        "gradient": plain(size),
        "spread_up_to_one": plain(inside.max() - inside.min()),
        "at_minus_one_zero_one": plain(near),
        "curvature_at_zero": plain(np.asarray(phi.curvature(0.0))),
    }


def _steepest() -> dict[str, float]:
    """sup |φ'| over |u| ≤ 15 of the paper's two examples."""
    u = np.linspace(-STEEP_REACH, STEEP_REACH, 3001)
    examples = {f"{base}-{sides}": LinearCore(base, sides=sides) for base in ("logistic", "exponential") for sides in (1, 2)}
    return {key: plain(np.abs(phi.derivative(u)).max()) for key, phi in examples.items()}


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Constant in the core, varying for the logistic loss, bounded by 1 on one side only."""
    core, logistic, steepest = results["lc-logistic-1"], results["logistic"], results["steepest"]
    near = logistic["at_minus_one_zero_one"]
    claims = [
        Claim(
            claim="The gradient of the one-sided linear-core surrogate is the same for all margins up to 1",
            paper="constant",
            ours=f"size {core['at_minus_one_zero_one'][1]:g}, spread {core['spread_up_to_one']:.1g} over margins up to 1",
            verdict=verdict(core["spread_up_to_one"] == 0),
        ),
        Claim(
            claim="The logistic loss is curved at margin 0, and its gradient varies near the boundary",
            paper="varies",
            ours=f"{near[0]:.2f}, {near[1]:.2f}, {near[2]:.2f} at margins −1, 0, 1; curvature "
            f"{logistic['curvature_at_zero']:g} at 0",
            verdict=verdict(logistic["curvature_at_zero"] > 0 and near[0] > near[2]),
        ),
        Claim(
            claim="The derivative of a linear-core surrogate is never larger than 1 in size",
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
        f"logistic one rises to {results['lc-logistic-2']['gradient'][0]:.2f} at margin −6. The logistic loss falls all "
        f"along, from {results['logistic']['gradient'][0]:.2f} at −6 through 0.50 at 0."
    )


EXPERIMENT = Experiment(
    name="gradients",
    title="Gradients against the margin",
    question="How hard does each loss push a sample, given its margin?",
    shows="gradient size against margin: constant in the core, varying for the logistic loss; above 1 for two-sided ones",
    paper="Figure 4, section 4.3",
    needs="nothing",
    cost={"smoke": "1 s", "paper": "1 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
