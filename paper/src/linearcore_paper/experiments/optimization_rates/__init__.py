"""`optimization-rates`: how fast gradient methods minimise each surrogate, and what this does for the 0-1 risk.

`descent` has problems whose minimum is known to rounding, one of which attains the rates of the theory; `end_to_end` follows
the 0-1 risk of linear scores over gradient steps and over samples.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from linearcore.surrogates import BASES, Hinge, LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.optimization_rates import descent
from linearcore_paper.experiments.optimization_rates.claims import judge_claims
from linearcore_paper.experiments.optimization_rates.end_to_end import LAWS, LOSSES, against_samples, against_steps
from linearcore_paper.experiments.optimization_rates.figure import draw
from linearcore_paper.runner import Experiment, Outcome, PartFunction, Settings

_CORES = {
    f"lc-{base}-{sides}": (
        f"LC {base.replace('_', ' ')}, {'one' if sides == 1 else 'two'}-sided",
        LinearCore(base, sides=sides),
    )
    for base in BASES
    for sides in (1, 2)
}
_ALL: dict[str, tuple[str, Surrogate]] = {"logistic": ("logistic loss", Logistic()), **_CORES}
#: The rates of the theory need a finite sup φ''.
SMOOTH = {key: pair for key, pair in _ALL.items() if math.isfinite(pair[1].smoothness)}
STEEP = {key: pair for key, pair in _ALL.items() if not math.isfinite(pair[1].smoothness)}
#: Surrogates whose rates are measured at smoke scale.
SMALL = ("logistic", "lc-logistic-1", "lc-gamma-2")
METHODS = ("gradient", "nesterov")
#: Fixed step sizes from which the surrogates with infinite sup φ'' fail.
STEP_SIZES = (1.0, 0.1, 0.01)


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns rates of every surrogate, failures of steep ones, and both end-to-end curves of every loss."""
    steps = 3000 if settings.is_paper else 300
    points, population_steps = (60, 3000) if settings.is_paper else (12, 250)
    sizes, runs = ((30, 100, 300, 1000, 3000), 50) if settings.is_paper else ((30, 100, 300), 6)
    found: dict[str, PartFunction] = {
        f"rate-{key}": partial(_rates, phi, steps) for key, (_, phi) in SMOOTH.items() if settings.is_paper or key in SMALL
    }
    found["rate-hinge"] = partial(_hinge_rates, steps)
    found |= {f"steep-{key}": partial(_failures, phi) for key, (_, phi) in STEEP.items()}
    for law in LAWS:
        for loss in LOSSES:
            found[f"steps-{law}-{loss}"] = partial(against_steps, loss, law, points, population_steps)
            found[f"samples-{law}-{loss}"] = partial(against_samples, loss, law, sizes, runs, points, settings.seed)
    return found


def _rates(phi: Surrogate, steps: int) -> dict[str, Any]:
    """Returns exponents on both problems, the largest share of the guarantee, and contraction factors with a regulariser."""
    found: dict[str, Any] = {"smoothness": round_values(phi.smoothness, 4)}
    for method in METHODS:
        path = descent.descend(phi, descent.ties(), method, steps).excess
        guarantee = descent.guarantee(phi, method, np.arange(1, steps + 1))
        regularised = descent.descend(phi, descent.ties(descent.LAMBDA), method, 300).distance
        condition = descent.LAMBDA / (phi.smoothness + descent.LAMBDA)
        found[method] = {
            "ties": _rounded(descent.exponent(path)),
            "separable": _rounded(descent.exponent(descent.descend(phi, descent.separable(), method, steps).excess)),
            "share_of_guarantee": round_values((path / guarantee).max(), 3),
            "curve": descent.thinned(path),
            "factor": round_values(descent.factor(regularised), 5),
            "factor_of_theory": round_values(1 - (condition if method == "gradient" else math.sqrt(condition)), 5),
        }
    return found


def _hinge_rates(steps: int) -> dict[str, Any]:
    path = descent.descend(Hinge(), descent.ties(), "subgradient", steps).excess
    regularised = descent.descend(Hinge(), descent.ties(descent.LAMBDA), "subgradient", steps).excess
    return {
        "ties": _rounded(descent.exponent(path)),
        "regularised": _rounded(descent.exponent(regularised)),
        "curve": descent.thinned(path),
    }


def _failures(phi: Surrogate) -> list[float | None]:
    return [descent.fails_from(phi, size) for size in STEP_SIZES]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(round_values(value, 4))


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Builds the tables of rates and of end-to-end results, and judges the claims."""
    rates = [
        {"key": key, "label": label, **results[f"rate-{key}"]}
        for key, (label, _) in SMOOTH.items()
        if f"rate-{key}" in results
    ]
    data = {
        "rates": rates,
        "hinge": results["rate-hinge"],
        "steep": [{"label": label, "fails_from": results[f"steep-{key}"]} for key, (label, _) in STEEP.items()],
        "step_sizes": list(STEP_SIZES),
        "laws": {law: label for law, (label, _) in LAWS.items()},
        "end_to_end": [
            {"law": law, "loss": loss, "label": label, "steps": results[f"steps-{law}-{loss}"]}
            | {"samples": results[f"samples-{law}-{loss}"]}
            for law in LAWS
            for loss, (label, _) in LOSSES.items()
        ],
    }
    return Outcome(judge_claims(data), data, _alt(data))


def _alt(data: dict[str, Any]) -> str:
    core = next(row for row in data["rates"] if row["key"] == "lc-logistic-1")
    return (
        "Five panels on log axes. First, excess surrogate risk against steps on inputs close to ties: the hinge falls with "
        f"slope {data['hinge']['ties']:.2f}, the linear core with slope {core['gradient']['ties']:.2f} and with momentum "
        f"{core['nesterov']['ties']:.2f}, the logistic loss much faster than all of them. Then 0-1 excess risk against "
        "gradient steps for two laws of label noise, with the bounds of three losses far above: the curves of all losses "
        "lie close together and cross. Last, 0-1 excess risk against samples for the same two laws: the curves of all "
        "losses are parallel."
    )


EXPERIMENT = Experiment(
    name="optimization-rates",
    title="Optimisation rates, end to end",
    question="How fast do gradient methods minimise each surrogate, and does the 0-1 risk fall faster with a linear core?",
    shows="measured rates of gradient methods per surrogate, and the 0-1 risk against gradient steps and samples",
    paper="Abstract, sections 1, 3.4 and 5.3",
    needs="nothing",
    cost={"smoke": "3 s", "paper": "2 min"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
