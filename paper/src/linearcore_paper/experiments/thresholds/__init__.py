"""`thresholds`: the linear rate for narrow and wide cores, with τ from 0.1 to 5."""

from functools import partial
from typing import Any

from linearcore.analysis import transform
from linearcore.surrogates import LinearCore, Logistic
from linearcore_paper.experiments._coin import coin
from linearcore_paper.experiments._numbers import format_range, round_values
from linearcore_paper.experiments.thresholds.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

TAUS = (0.1, 0.5, 1.0, 2.0, 5.0)
TOLERANCE = 0.01
#: Values of t at which T(t) is compared with τ·t and t/τ.
BOUND_AT = (0.001, 0.01, 0.1, 0.5, 1.0)


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each number of sides, one for the logistic loss and one for the bound."""
    sides: dict[str, PartFunction] = {f"sides-{sides}": partial(_family, sides) for sides in (1, 2)}
    return sides | {"logistic": partial(coin, Logistic()), "bound": _bound}


def _family(sides: int) -> list[dict[str, Any]]:
    return [{"tau": tau, "sides": sides, **coin(LinearCore(tau=tau, sides=sides))} for tau in TAUS]


def _bound() -> list[dict[str, Any]]:
    """Returns the smallest T(t)/t of each surrogate, to compare with τ and with 1/τ."""
    return [
        {
            "tau": tau,
            "sides": sides,
            "least_ratio": round_values((transform(LinearCore(tau=tau, sides=sides), BOUND_AT) / BOUND_AT).min()),
        }
        for sides in (1, 2)
        for tau in TAUS
    ]


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Computes local slopes at the smallest δ and linear fits, and checks which of the two bounds holds."""
    curves = results["sides-1"] + results["sides-2"]
    ends = [curve["local_slope"][0] for curve in curves]
    fits = {sides: ", ".join(f"{curve['fit']:.3f}" for curve in results[f"sides-{sides}"]) for sides in (1, 2)}
    logistic = results["logistic"]
    claims = [
        Claim(
            claim="Every linear-core surrogate with τ from 0.1 to 5 keeps a strictly linear rate",
            paper="slope 1",
            ours=f"local slope {format_range(ends, '.4f')} at δ = 1e-4; linear fits for τ = 0.1, 0.5, 1, 2, 5: "
            f"{fits[1]} one-sided, {fits[2]} two-sided",
            verdict=verdict(all(abs(end - 1) <= TOLERANCE for end in ends), "l"),
            correction="l",
        ),
        _bound_claim(results["bound"]),
        Claim(
            claim="The logistic loss has the square-root rate",
            paper="slope 1/2",
            ours=f"local slope {logistic['local_slope'][0]:.4f} at δ = 1e-4; linear fit {logistic['fit']:.3f}",
            verdict=verdict(abs(logistic["local_slope"][0] - 0.5) <= TOLERANCE),
        ),
    ]
    data = {"curves": curves, "logistic": logistic, "bound": results["bound"], "bound_at": list(BOUND_AT)}
    return Outcome(claims, data, _alt(results))


def _bound_claim(rows: list[dict[str, Any]]) -> Claim:
    paper_holds = all(row["least_ratio"] >= (1 - 1e-9) / row["tau"] for row in rows)
    ours_holds = all(row["least_ratio"] >= (1 - 1e-9) * row["tau"] for row in rows)
    narrow = rows[0]
    ours = f"T(t)/t falls to {narrow['least_ratio']:.3f} at τ = {narrow['tau']:g}, where 1/τ = {1 / narrow['tau']:g}"
    return Claim(
        claim="T(t) is at least t/τ",
        paper="T(t) ≥ t/τ",
        ours=f"{ours}; T(t) ≥ τ·t {'holds' if ours_holds else 'fails'} for all τ",
        verdict=verdict(paper_holds),
        correction=None if paper_holds else "f",
    )


def _alt(results: dict[str, Any]) -> str:
    last = ", ".join(f"{curve['local_slope'][-1]:.2f}" for curve in results["sides-1"])
    return (
        "Two panels. Top, 0-1 regret against surrogate regret on log axes for five one-sided surrogates with τ from 0.1 "
        "to 5 and the logistic loss: the five run parallel at their lower ends, the logistic loss is half as steep. "
        f"Bottom, their local slopes against δ: all five start at 1.00 for δ = 1e-4 and fall to {last} at δ = 0.1, least "
        "for the widest core; the logistic loss stays near 0.50."
    )


EXPERIMENT = Experiment(
    name="thresholds",
    title="Rates for different core widths",
    question="Does the rate stay linear for narrow and for wide cores?",
    shows="0-1 regret against surrogate regret for cores of half-width τ from 0.1 to 5; T(t) is at least τ·t, not t/τ",
    paper="Figure 9, appendix C",
    needs="nothing",
    cost={"smoke": "1 s", "paper": "1 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
