"""`rates`: how fast the 0-1 regret falls with the surrogate regret on a biased coin."""

from functools import partial
from typing import Any

from linearcore.surrogates import LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._coin import coin
from linearcore_paper.experiments._numbers import format_range
from linearcore_paper.experiments.rates.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

SURROGATES: dict[str, tuple[str, Surrogate]] = {
    "lc-logistic-1": ("LC logistic, one-sided", LinearCore()),
    "lc-logistic-2": ("LC logistic, two-sided", LinearCore(sides=2)),
    "lc-exponential-1": ("LC exponential, one-sided", LinearCore("exponential")),
    "logistic": ("logistic", Logistic()),
}
#: How far a local slope at δ = 1e-4 may be from its limit.
TOLERANCE = 0.01


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns one part for each surrogate."""
    return {key: partial(coin, phi) for key, (_, phi) in SURROGATES.items()}


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Computes local slopes at the smallest δ and the linear fits on log-log axes."""
    curves = [{"label": label, "key": key, **results[key]} for key, (label, _) in SURROGATES.items()]
    *cores, logistic = curves
    ends, fits = [curve["local_slope"][0] for curve in cores], [curve["fit"] for curve in cores]
    claims = [
        Claim(
            claim="On a biased coin the linear-core surrogate has a linear rate over δ from 1e-4 to 1e-1",
            paper="slope about 1",
            ours=f"local slope {format_range(ends, '.4f')} at δ = 1e-4; linear fit {format_range(fits, '.3f')}",
            verdict=verdict(all(abs(end - 1) <= TOLERANCE for end in ends), "l"),
            correction="l",
        ),
        Claim(
            claim="The logistic loss has a square-root rate",
            paper="slope about 0.5",
            ours=f"local slope {logistic['local_slope'][0]:.4f} at δ = 1e-4; linear fit {logistic['fit']:.3f}",
            verdict=verdict(abs(logistic["local_slope"][0] - 0.5) <= TOLERANCE),
        ),
    ]
    return Outcome(claims, {"curves": curves}, _alt(cores, logistic))


def _alt(cores: list[dict[str, Any]], logistic: dict[str, Any]) -> str:
    last = format_range([curve["local_slope"][-1] for curve in cores], ".2f")
    return (
        "Two panels. Top, 0-1 regret against surrogate regret on log axes: the linear-core curves run parallel to a "
        "line of slope 1 at the lower end, the logistic loss along a line of slope one half. Bottom, the local slope "
        f"against δ: the linear-core curves are at 1.00 for δ = 1e-4 and fall to {last} at δ = 0.1; the logistic loss "
        f"stays at {logistic['local_slope'][-1]:.2f}."
    )


EXPERIMENT = Experiment(
    name="rates",
    title="Rates of convergence",
    question="How fast does the excess error of a biased coin fall with the excess surrogate risk?",
    shows="0-1 regret against surrogate regret on a biased coin: slope 1 for linear-core, one half for logistic",
    paper="Figure 2, section 3.4",
    needs="nothing",
    cost={"smoke": "1 s", "paper": "1 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
