"""`noise-conditions`: when a linear core improves the bound on the 0-1 regret, and when it cannot.

Tsybakov's condition with exponent α bounds the probability of a wrong prediction by a multiple of (0-1 regret)^α; α = 1 is
Massart's condition. The experiment computes the rate of the bound for each α, its constant under Massart's condition, and
both regrets of exact minimisers that see k labels of each input.
"""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from linearcore.analysis import NoiseCondition, rate, transform
from linearcore.surrogates import LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._numbers import format_range, round_values
from linearcore_paper.experiments.noise_conditions.figure import draw
from linearcore_paper.runner import Claim, Experiment, Outcome, PartFunction, Settings, verdict

SURROGATES: dict[str, tuple[str, Surrogate]] = {
    "core": ("linear core, τ = 1", LinearCore()),
    "logistic": ("logistic", Logistic()),
}
ALPHAS = tuple(step / 10 for step in range(11))
MARGINS = tuple(float(margin) for margin in np.geomspace(0.01, 1, 21))
#: Odd numbers of labels of each input, so that there are no ties.
LABELS = {"smoke": (5, 17, 65, 257), "paper": (5, 17, 65, 257, 1025, 4097)}
#: |2η − 1| is uniform on [0, 1], which is Tsybakov's condition with this exponent and constant.
ALPHA = 0.5
UNIFORM = NoiseCondition(ALPHA, ALPHA**-ALPHA)
BOUND = 4.0
#: How far a measured exponent may be from theory.
TOLERANCE = 0.02

Array = npt.NDArray[np.float64]


def parts(settings: Settings) -> dict[str, PartFunction]:
    """Returns three parts for each surrogate: exponents, constants, and regrets after k labels."""
    computed: dict[str, PartFunction] = {}
    for key, (_, phi) in SURROGATES.items():
        computed[f"exponents-{key}"] = partial(_exponents, phi)
        computed[f"constants-{key}"] = partial(_constants, phi)
        computed[f"labels-{key}"] = partial(_labels, phi, LABELS[settings.scale])
    return computed


def _exponents(phi: Surrogate) -> dict[str, Any]:
    """Computes the limit of the local slope of 0-1 regret against surrogate regret, for each α."""
    # The wrong predictions have |2η − 1| = (2δ)^(1 − α), which must be small.
    margins = np.geomspace(1e-4, 1e-2, 5)
    limits = [
        rate(phi, noise=NoiseCondition(alpha), deltas=margins ** (1 / (1 - min(alpha, 0.9))) / 2).limit for alpha in ALPHAS
    ]
    return {"alpha": list(ALPHAS), "exponent": round_values(limits, 6)}


def _constants(phi: Surrogate) -> dict[str, Any]:
    """Computes the smallest c with 0-1 regret ≤ c · surrogate regret under |2η − 1| ≥ margin, with the slope −1 at 0."""
    margins = np.array(MARGINS)
    scale = -float(phi.derivative(0.0))
    return {"margin": round_values(margins), "constant": round_values(scale * margins / transform(phi, margins))}


def _labels(phi: Surrogate, counts: tuple[int, ...]) -> dict[str, Any]:
    """Computes expected regrets of the score in [−4, 4] that minimises the loss of k labels, for each k."""
    regrets = np.array([_regrets(phi, count) for count in counts])
    bounds = [_largest_regret(phi, regret) for regret in regrets[:, 1]]
    return {
        "labels": list(counts),
        "zero_one_regret": round_values(regrets[:, 0], 6),
        "surrogate_regret": round_values(regrets[:, 1], 6),
        "bound": round_values(bounds, 6),
    }


def _regrets(phi: Surrogate, count: int) -> tuple[float, float]:
    from scipy.stats import binom

    # Fine near 0, where the minimisers for shares near ½ are.
    near = np.geomspace(1e-6, 0.01, 200)
    u = np.sort(np.concatenate([np.linspace(-BOUND, BOUND, 4001), near, -near]))
    right, wrong = np.asarray(phi.value(u)), np.asarray(phi.value(-u))
    share = np.arange(count + 1) / count
    chosen = np.array([np.argmin(s * right + (1 - s) * wrong) for s in share])
    # Midpoints of t = |2η − 1|; by symmetry the more probable label is +1.
    t = (np.arange(2000) + 0.5) / 2000
    eta = (1 + t) / 2
    chance = binom.pmf(np.arange(count + 1), count, eta[:, None])
    risk = eta[:, None] * right[chosen] + (1 - eta)[:, None] * wrong[chosen]
    least = float(phi.value(0.0)) - transform(phi, t, bound=BOUND)
    zero_one = float((t * (chance * (u[chosen] < 0)).sum(1)).mean())
    return zero_one, float(((chance * risk).sum(1) - least).mean())


def _largest_regret(phi: Surrogate, surrogate_regret: float) -> float:
    """Returns the largest 0-1 regret that the bound allows, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        is_allowed = float(transform(phi, middle, bound=BOUND, noise=UNIFORM)) <= surrogate_regret
        low, high = (middle, high) if is_allowed else (low, middle)
    return high


def conclude(results: dict[str, Any], settings: Settings) -> Outcome:
    """Compares exponents with theory, constants, and the regrets of exact minimisers."""
    names = ("exponents", "constants", "labels")
    data = {
        name: [{"key": key, "label": label, **results[f"{name}-{key}"]} for key, (label, _) in SURROGATES.items()]
        for name in names
    }
    claims = [_exponent_claim(*data["exponents"]), _constant_claim(*data["constants"]), _label_claim(*data["labels"])]
    return Outcome(claims, data, _alt(data))


def _exponent_claim(core: dict[str, Any], logistic: dict[str, Any]) -> Claim:
    theory = 1 / (2 - np.array(ALPHAS))
    error = max(np.abs(np.array(core["exponent"]) - 1).max(), np.abs(np.array(logistic["exponent"]) - theory).max())
    middle = ALPHAS.index(0.5)
    return Claim(
        claim="Ours: under Tsybakov noise a core keeps exponent 1, and logistic has 1/(2 − α)",
        paper="1 and ½, without a noise condition",
        ours=f"core {format_range(core['exponent'], '.3f')}; logistic {logistic['exponent'][0]:.3f}, "
        f"{logistic['exponent'][middle]:.3f} and {logistic['exponent'][-1]:.3f} at α = 0, 0.5 and 1",
        verdict=verdict(float(error) <= TOLERANCE),
    )


def _constant_claim(core: dict[str, Any], logistic: dict[str, Any]) -> Claim:
    pairs = [(core["constant"][index], logistic["constant"][index]) for index in (0, 10, -1)]
    values = "; ".join(f"{ours:.3g} against {theirs:.3g}" for ours, theirs in pairs)
    return Claim(
        claim="Ours: under Massart noise both bounds are linear, and a core improves the constant only",
        paper="not in the paper",
        ours=f"0-1 regret per surrogate regret at φ'(0) = −1, core against logistic: {values} at |2η − 1| ≥ 0.01, 0.1 and 1",
        verdict=verdict(all(ours < theirs for ours, theirs in pairs)),
    )


def _label_claim(core: dict[str, Any], logistic: dict[str, Any]) -> Claim:
    is_equal = core["zero_one_regret"] == logistic["zero_one_regret"]
    slopes = [_slope(curve, name) for name in ("surrogate_regret", "bound") for curve in (core, logistic)]
    last = core["labels"][-1]
    return Claim(
        claim="Ours: exact minimisers over all bounded scores predict the same; a core only has the tighter bound",
        paper="not in the paper",
        ours=f"0-1 regret {core['zero_one_regret'][-1]:.3g} of both with {last} labels of each input; bounds "
        f"{core['bound'][-1]:.2g} (core) and {logistic['bound'][-1]:.2g} (logistic). Exponents in the number of labels: "
        f"surrogate regrets {slopes[0]:.2f} and {slopes[1]:.2f}, bounds {slopes[2]:.2f} and {slopes[3]:.2f}, 0-1 regret "
        f"{_slope(core, 'zero_one_regret'):.2f}",
        verdict=verdict(is_equal),
    )


def _slope(curve: dict[str, Any], name: str) -> float:
    """Returns the exponent over the last two numbers of labels."""
    rise = np.log(curve[name][-1] / curve[name][-2])
    return float(rise / np.log(curve["labels"][-1] / curve["labels"][-2]))


def _alt(data: dict[str, Any]) -> str:
    core, logistic = data["labels"]
    return (
        "Three panels. Top, exponent of the 0-1 regret against α: level at 1 for the linear core, rising from 0.5 to 1 for "
        "logistic. Middle, constant under Massart noise against the margin, on log axes: close to 1 for the core, falling "
        f"from {data['constants'][1]['constant'][0]:.0f} to {data['constants'][1]['constant'][-1]:.2f} for logistic. "
        f"Bottom, regrets against labels of each input: the 0-1 regret of both losses is one curve that ends at "
        f"{core['zero_one_regret'][-1]:.2g}; the bounds end at {core['bound'][-1]:.2g} (core) and "
        f"{logistic['bound'][-1]:.2g} (logistic)."
    )


EXPERIMENT = Experiment(
    name="noise-conditions",
    title="Noise conditions",
    question="When does a linear core improve the bound on the 0-1 regret, and when can it not?",
    shows="rates under Tsybakov noise, constants under Massart noise, and regrets of exact minimisers",
    paper="section 3, with noise conditions that the paper does not have",
    needs="nothing",
    cost={"smoke": "3 s", "paper": "15 s"},
    parts=parts,
    conclude=conclude,
    draw=draw,
)
