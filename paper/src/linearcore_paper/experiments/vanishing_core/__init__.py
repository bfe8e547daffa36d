"""`vanishing-core`: how the linear rate is lost as the core's half-width τ goes to zero.

To leading order T(t) = τ t + κ t², so the local slope is (τ + κ t)/(τ + 2κ t). It equals ⅔ at κ t = τ, the crossover. With
a = Φ''(0)/Φ'(0) > 0, κ is 1/a one-sided and 1/(2a) two-sided, and t = 2δ, so the predicted crossover is

    δ* = a τ/2 one-sided,     a τ two-sided.

The measured crossover is the δ at which the local slopes, interpolated in log δ, equal ⅔. C2 bases have a = 0 and
T ~ t^{4/3}: they have no crossover, and their slope tends to ¾.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from linearcore.surrogates import BASES, LinearCore, Logistic
from linearcore_paper.experiments._coin import coin
from linearcore_paper.experiments._numbers import format_range, round_values
from linearcore_paper.experiments.vanishing_core.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

TAUS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
#: Far below every δ used, so that the core has no effect.
NO_CORE = 1e-9
#: At the smallest of these T(2δ) still has seven correct digits.
LIMIT_DELTAS = (1e-6, 1e-5, 1e-4)
TOLERANCE, CROSSOVER_TOLERANCE = 0.01, 0.2
#: Up to this τ the leading order is accurate for every base.
SMALL = 1e-2


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns curves of the logistic base, crossovers of the bases that have one, and limits of all bases."""
    curves: dict[str, PartFunction] = {f"sides-{sides}": partial(_family, sides) for sides in (1, 2)}
    crossovers: dict[str, PartFunction] = {
        f"crossover-{base}": partial(_crossovers, base) for base in BASES if _curvature_ratio(base) > 0
    }
    limits: dict[str, PartFunction] = {f"limit-{base}": partial(_limits, base) for base in BASES}
    return curves | {"logistic": partial(coin, Logistic())} | crossovers | limits


def _family(sides: int) -> list[dict[str, Any]]:
    return [{"tau": tau, "sides": sides, **coin(LinearCore(tau=tau, sides=sides))} for tau in TAUS]


def _curvature_ratio(base: str) -> float:
    """Returns a = Φ''(0⁻)/Φ'(0)."""
    return float(BASES[base].curvature(torch.zeros(1, dtype=torch.float64))) / BASES[base].slope_at_zero


def _crossovers(base: str) -> list[dict[str, Any]]:
    return [_crossover(LinearCore(base, tau=tau, sides=sides), _curvature_ratio(base)) for sides in (1, 2) for tau in TAUS]


def _crossover(phi: LinearCore, curvature_ratio: float) -> dict[str, Any]:
    """Returns the δ at which the local slope is ⅔, measured and predicted."""
    predicted = curvature_ratio * phi.tau * phi.sides / 2
    deltas = np.geomspace(predicted / 10, min(10 * predicted, 0.45), 61)
    slopes = np.asarray(coin(phi, deltas)["local_slope"])
    # Use the first crossing: some slopes increase again at large δ, near the end of the curve T(1) = φ(0).
    after = int(np.argmax(slopes < 2 / 3))
    if after == 0:
        raise ArithmeticError(f"the local slope of {phi} does not pass 2/3 near δ = {predicted:.3g}")
    bracket = slice(after - 1, after + 1)
    measured = float(np.exp(np.interp(-2 / 3, -slopes[bracket], np.log(deltas[bracket]))))
    return {"tau": phi.tau, "sides": phi.sides, "measured": round_values(measured), "predicted": round_values(predicted)}


def _limits(base: str) -> list[dict[str, Any]]:
    """Returns the linear fit at the paper's smallest τ, and local slopes for a negligible core."""
    rows = []
    for sides in (1, 2):
        smallest, no_core = LinearCore(base, tau=TAUS[-1], sides=sides), LinearCore(base, tau=NO_CORE, sides=sides)
        at_limit = coin(no_core, LIMIT_DELTAS)["local_slope"]
        row = {"base": base, "sides": sides, "is_c2": smallest.is_c2, "limit": at_limit[0]}
        rows.append(row | {"fit": coin(smallest)["fit"], "curve": coin(no_core)})
    return rows


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Checks both limits and the predicted crossover."""
    limits = [row for base in BASES for row in results[f"limit-{base}"]]
    crossovers = [
        {"base": base, **row} for base in BASES if _curvature_ratio(base) > 0 for row in results[f"crossover-{base}"]
    ]
    curves = results["sides-1"] + results["sides-2"]
    data = {
        "curves": curves,
        "logistic": results["logistic"],
        "limits": limits,
        "crossovers": crossovers,
        "tau_of_limits": NO_CORE,
    }
    return Outcome([_limit_claim(limits), _crossover_claim(crossovers)], data, _alt(limits))


def _limit_claim(limits: list[dict[str, Any]]) -> Claim:
    def describe(rows: list[dict[str, Any]]) -> str:
        fits, ends = ([row[key] for row in rows] for key in ("fit", "limit"))
        return f"fit {format_range(fits, '.3f')} at τ = 1e-5, limit {format_range(ends, '.3f')}"

    curved = [row for row in limits if not row["is_c2"]]
    flat = [row for row in limits if row["is_c2"]]
    holds = all(abs(row["limit"] - (0.75 if row["is_c2"] else 0.5)) <= TOLERANCE for row in limits)
    return Claim(
        claim="As τ → 0 the surrogate turns into an ordinary smooth loss with the square-root rate",
        paper="at τ = 1e-5 in line with slope 1/2",
        ours=f"logistic, exponential, truncated quadratic: {describe(curved)}; "
        f"the C2 bases quartic and gamma: {describe(flat)}, which is 3/4",
        verdict=verdict(holds, "k"),
        correction="k",
    )


def _crossover_claim(crossovers: list[dict[str, Any]]) -> Claim:
    def worst(rows: list[dict[str, Any]]) -> float:
        return max(abs(float(row["measured"]) / float(row["predicted"]) - 1) for row in rows)

    logistic = worst([row for row in crossovers if row["base"] == "logistic"])
    small = worst([row for row in crossovers if row["tau"] <= SMALL])
    return Claim(
        claim="The linear rate is lost gradually as the core narrows",
        paper="no number",
        ours="the local slope is 2/3 near δ = a·τ/2 one-sided and a·τ two-sided, a = Φ''(0)/Φ'(0): measured within "
        f"{100 * small:.1f} % for every base at τ ≤ {SMALL:g}, and within {100 * logistic:.0f} % for the logistic base up "
        "to τ = 0.1",
        verdict=verdict(max(logistic, small) <= CROSSOVER_TOLERANCE, "l"),
        correction="l",
    )


def _alt(limits: list[dict[str, Any]]) -> str:
    flat = format_range([row["limit"] for row in limits if row["is_c2"]], ".2f")
    return (
        "Four panels. First, 0-1 regret against surrogate regret on log axes for the two-sided logistic surrogate with τ "
        "from 0.1 to 1e-5 and the logistic loss: as τ falls the curves bend from slope 1 to slope one half and become "
        "parallel to the logistic loss. Second, local slopes of the one-sided surrogates against δ: each curve falls from 1 "
        "to one half, passing two thirds near δ = τ/4, so τ = 1e-5 has slope one half over the whole range, like the "
        "logistic loss. Third, the measured crossover divided by the predicted one against τ, for three bases and both "
        "sides: all tend to 1 as τ falls. Fourth, local slopes without a core: logistic, exponential and truncated "
        f"quadratic tend to 0.50, quartic and gamma to {flat}."
    )


EXPERIMENT = Experiment(
    name="vanishing-core",
    title="Rates for a vanishing core",
    question="What is the rate as the width of the core goes to zero?",
    shows="the linear rate is lost as τ → 0: slope one half, three quarters for C2 bases; the crossover δ is predicted",
    paper="Figure 10, appendix C",
    needs="nothing",
    cost={"smoke": "2 s", "paper": "2 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
