"""Computes all numbers of the page "Reading the paper with care" with the surrogates and forms of the library.

Sections have the letters of the page. Nothing is downloaded: conditional risks are minimised in float64 with exact
derivatives, small output spaces are enumerated, the optimisation in (m) has 10 or 40 weights, and (p) trains linear taggers
with 40 tags. The experiments `noise` ((h) and (i)), `tagging` (n) and `gradient-histogram` (o) have their own records.
"""

import argparse
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from scipy.optimize import brentq, minimize

import _corrections_losses as losses
import _corrections_metrics as metrics
import _corrections_sequences as sequences
import _corrections_training as training
from _harness import parsed
from linearcore import Hinge, LinearCore, Logistic, SmoothedHinge, Surrogate
from linearcore.forms import Centered, Form, Labels, LogOdds, Pairwise, reference_rows
from linearcore.runtime import write_record
from linearcore.surrogates import BASES, QuarticBase

Table = dict[str, Any]

SETTINGS: Table = {
    "tau_unless_named": 1.0,
    "probabilities": {"three": [0.4, 0.4, 0.2], "four": [0.3, 0.3, 0.2, 0.2]},  # ± delta on the first two
    "deltas": [0.1, 0.05, 0.02, 0.01, 0.005, 0.002],
    "seed": 0,
    "rates": {"delta_from": 1e-4, "delta_to": 1e-1, "points": 31},
    "optimization": {
        "step": 0.1,
        "lambda": 0.05,
        "samples": [10, 40],
        "gd_steps": 10000,
        "sgd_steps": 20000,
        "sgd_runs": 20,
    },
    **{key: value for part in (losses, metrics, sequences) for key, value in part.SETTINGS.items()},
    "training": training.SETTINGS,
}


# ---- (a) the ratio of surrogate regret to 0-1 regret -----------------------------------------------------------------


def risk_of(form: Form, phi: Surrogate, p: list[float]) -> Callable[[torch.Tensor], torch.Tensor]:
    """s ↦ Σ_y p_y ℓ(s, y). Not `multiclass_loss`, which does not support a two-sided φ for `centered`."""
    n, weights = len(p), torch.tensor(p, dtype=torch.float64)
    every_label = Labels(torch.arange(n))
    return lambda s: weights @ reference_rows(form, phi, s.expand(n, n), every_label)


def least_risk(form: Form, phi: Surrogate, p: list[float], tied: bool) -> tuple[float, float, np.ndarray]:
    """Minimises the conditional risk, over all scores or those with s_1 = s_2; returns risk, gradient norm and scores.

    The last score is fixed at zero, because all forms are invariant to a shift. Every risk is convex, so a zero gradient
    proves the minimum. If it has s_1 > s_2, the minimum under s_2 ≥ s_1 is at the tie, also by convexity.
    """
    basis = np.eye(len(p))[:, :-1]
    if tied:
        basis = np.column_stack([basis[:, 0] + basis[:, 1], basis[:, 2:]])
    risk, free = risk_of(form, phi, p), torch.from_numpy(basis)

    def at(function: Callable[..., torch.Tensor]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: function(torch.from_numpy(x)).numpy()

    value, gradient, hessian = (at(f(lambda x: risk(free @ x))) for f in (lambda g: g, torch.func.grad, torch.func.hessian))
    start = np.full(free.shape[1], 0.1)
    x = minimize(value, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-9, "maxiter": 300}).x
    for _ in range(5):  # Newton steps: the trust region stops at a gradient of about √ε
        x = x - np.linalg.lstsq(hessian(x), gradient(x), rcond=None)[0]
    return float(value(x)), float(np.linalg.norm(gradient(x))), basis @ x


def regret_ratios(form: Form, phi: Surrogate, classes: str = "three") -> Table:
    """Computes the smallest surrogate regret of predicting class 2, divided by its 0-1 regret 2δ, for every δ."""
    ratios, norms = [], []
    for delta in SETTINGS["deltas"]:
        first, second, *rest = SETTINGS["probabilities"][classes]
        p = [first + delta, second - delta, *rest]
        best, norm_best, right = least_risk(form, phi, p, tied=False)
        worse, norm_worse, wrong = least_risk(form, phi, p, tied=True)
        if right.argmax() != 0 or wrong.argmax() > 1:
            raise RuntimeError(f"the minima do not predict class 1 and classes 1 and 2 at delta = {delta}")
        ratios.append((worse - best) / (2 * delta))
        norms += [norm_best, norm_worse]
    return {"ratios": ratios, "greatest_gradient_norm": max(norms)}


def item_a() -> Table:
    """Computes the ratio tables; with a linear bound of constant 1/τ every ratio would be at least τ."""
    result: Table = {"deltas": SETTINGS["deltas"]}
    for base, sides in itertools.product(("logistic", "exponential"), (1, 2)):
        phi, name = LinearCore(base, sides=sides), f"{base}_{sides}_sided"
        result[f"pairwise_{name}"] = regret_ratios(Pairwise(normalize=False), phi)
        result[f"logodds_{name}"] = regret_ratios(LogOdds(), phi)
        if sides == 1:
            result[f"centered_{name}"] = regret_ratios(Centered(normalize=False), phi)
    for tau in (0.5, 2.0):
        result[f"centered_logistic_1_sided_tau_{tau:g}"] = regret_ratios(Centered(normalize=False), LinearCore(tau=tau))
    for sides in (1, 2):
        ratios = regret_ratios(Centered(normalize=False), LinearCore(sides=sides), "four")
        result[f"centered_four_classes_logistic_{sides}_sided"] = ratios
    result["hamming"] = metrics.hamming_ratios(SETTINGS["deltas"])
    # Derived on the page: the ratio is (125/6)·δ to first order while the margin of the top two is in the core.
    smallest = SETTINGS["deltas"][-1]
    result["pairwise_ratio_over_delta_at_smallest_delta"] = result["pairwise_logistic_1_sided"]["ratios"][-1] / smallest
    result["pairwise_ratio_over_delta_predicted"] = 125 / 6
    return result


# ---- (d), (e) slopes --------------------------------------------------------------------------------------------------


def item_d() -> Table:
    """Computes sup |φ'| over |u| ≤ 5, 10, 15 for every base, and the declared Lipschitz constant."""
    result: Table = {"reach": [5.0, 10.0, 15.0]}
    for base, sides in itertools.product(BASES, (1, 2)):
        phi = LinearCore(base, sides=sides)
        steepest = [float(np.abs(phi.derivative(np.linspace(-r, r, 20001))).max()) for r in result["reach"]]
        declared = phi.lipschitz if math.isfinite(phi.lipschitz) else "inf"
        result[f"{base}_{sides}_sided"] = {"steepest": steepest, "declared": declared}
    return result


def item_e() -> Table:
    """Computes the minimum of the quartic surrogate: numerical root of φ', and τ + (3a)^{1/3}."""
    rows = []
    for a in (0.5, 1.0, 2.0):
        phi = LinearCore(QuarticBase(a=a))
        turn = brentq(lambda u, phi=phi: float(phi.derivative(u)), 1.0, 10.0, xtol=1e-14)
        later = {f"{u:g}": float(phi.value(u)) for u in (3.0, 4.0, 6.0)}
        rows.append({"a": a, "turns_at": turn, "predicted": 1 + (3 * a) ** (1 / 3), "loss_at": later})
    return {"rows": rows}


# ---- (f), (j), (k), (l) the binary transformation T --------------------------------------------------------------------


def transform(phi: Surrogate, t: float) -> tuple[float, float]:
    """T(t) of Theorem 3.2 and T'(t) = (φ(−u) − φ(u))/2 at its minimiser u (envelope theorem)."""

    def slope(u: float) -> float:
        return float((1 + t) / 2 * phi.derivative(u) - (1 - t) / 2 * phi.derivative(-u))

    high = 1.0
    while slope(high) < 0:
        high *= 2
    u = brentq(slope, 0.0, high, xtol=1e-15)
    right, wrong = float(phi.value(u)), float(phi.value(-u))
    return float(phi.value(0.0)) - (1 - t) / 2 * wrong - (1 + t) / 2 * right, (wrong - right) / 2


def local_slope(phi: Surrogate, delta: float) -> float:
    """d log(0-1 regret) / d log(surrogate regret) on the biased coin, where the 0-1 regret is t = 2δ: T / (t T')."""
    value, derivative = transform(phi, 2 * delta)
    return value / (2 * delta * derivative)


def fitted_slope(phi: Surrogate) -> float:
    """Least-squares slope of log 2δ against log T(2δ), δ evenly spaced in log over the paper's range."""
    rates = SETTINGS["rates"]
    t = 2 * np.geomspace(rates["delta_from"], rates["delta_to"], rates["points"])
    return float(np.polyfit(np.log([transform(phi, x)[0] for x in t]), np.log(t), 1)[0])


def item_f() -> Table:
    """T(t) against τ t and t/τ; one-sided φ_τ(u), τ = ½, against τ φ_1(u/τ) (rescaled) and φ_1(u + 1 − τ) (shifted)."""
    rows = []
    for tau, sides, t in itertools.product((0.25, 0.5), (1, 2), (0.01, 0.1, 0.5)):
        value, _ = transform(LinearCore(tau=tau, sides=sides), t)
        rows.append({"tau": tau, "sides": sides, "t": t, "T": value, "tau_t": tau * t, "t_over_tau": t / tau})
    u = np.linspace(-3, 3, 601)
    narrow = LinearCore(tau=0.5).value(u)
    gap = narrow - 0.5 * LinearCore().value(u / 0.5)
    return {
        "rows": rows,
        # An additive constant does not matter, so it is subtracted at u = 0.
        "greatest_distance_from_rescaling": float(np.abs(gap - gap[300]).max()),
        "greatest_distance_from_shift": float(np.abs(narrow - LinearCore().value(u + 0.5)).max()),
    }


def item_j() -> Table:
    """T(t)/t of the Huber-smoothed hinge against 1 − γ, and its distance from the linear core it equals for γ < 1."""
    rows, u = [], np.linspace(-5, 5, 2001)
    for width in (0.25, 0.5, 0.75, 1.0):
        phi = SmoothedHinge(width)
        row: Table = {"width": width, "one_minus_width": 1 - width}
        row["T_over_t"] = {f"{t:g}": transform(phi, t)[0] / t for t in (0.5, 0.1, 0.01, 0.001)}
        row["local_slope_at_delta_1e-4"] = local_slope(phi, 1e-4)
        if width < 1:
            core = LinearCore("truncated_quadratic", tau=1 - width, sharpness=1 / width)
            row["distance_from_linear_core"] = float(np.abs(phi.value(u) - core.value(u)).max())
        rows.append(row)
    return {"rows": rows}


def item_k() -> Table:
    """Computes slopes for a vanishing core: at the smallest τ of the paper, and local ones at τ = 1e-9."""
    result: Table = {}
    for base, sides in itertools.product(BASES, (1, 2)):
        small, smaller = LinearCore(base, tau=1e-5, sides=sides), LinearCore(base, tau=1e-9, sides=sides)
        result[f"{base}_{sides}_sided"] = {
            "is_c2": small.is_c2,
            "fitted_at_tau_1e-5": fitted_slope(small),
            "local_at_tau_1e-9_delta_1e-4": local_slope(smaller, 1e-4),
        }
    return result


def item_l() -> Table:
    """Fitted and local slopes over τ, and the second-order coefficient κ of T(t) = τ t + κ t² + …"""
    result: Table = {"tau": [0.1, 0.5, 1.0, 2.0, 5.0], "logistic_loss_fitted": fitted_slope(Logistic())}
    for sides in (1, 2):
        family = [LinearCore(tau=tau, sides=sides) for tau in result["tau"]]
        t, narrow = 1e-3, family[0]
        result[f"{sides}_sided"] = {
            "fitted": [fitted_slope(phi) for phi in family],
            "local_at_delta_1e-4": [local_slope(phi, 1e-4) for phi in family],
            "local_at_delta_1e-1": [local_slope(phi, 1e-1) for phi in family],
            "kappa": (transform(narrow, t)[0] - narrow.tau * t) / t**2,
            "kappa_predicted": 2.0 / sides,  # 1/a and 1/(2a) with a = Φ''(0)/Φ'(0) = ½
            "delta_where_slope_is_two_thirds": brentq(lambda d, phi=narrow: local_slope(phi, d) - 2 / 3, 1e-4, 0.4),
            "delta_predicted": 0.5 * narrow.tau * sides / 2,
        }
    return result


# ---- (m) stalling of the hinge ------------------------------------------------------------------------------------------


def objective(phi: Surrogate, w: np.ndarray, lam: float) -> np.ndarray:
    """(1/n) Σ φ(w_i) + (λ/2)‖w‖² per run (runs, n): orthonormal features, one weight per sample, labels included."""
    return phi.value(w).mean(-1) + lam / 2 * (w * w).sum(-1)


def minimum(phi: Surrogate, n: int, lam: float) -> float:
    """Computes the minimum. All weights are equal; w solves −φ'(w) = nλw, or is at the kink of the hinge."""
    at_kink = not phi.is_c1 and n * lam < 1
    w = 1.0 if at_kink else brentq(lambda w: float(phi.derivative(w)) + n * lam * w, 0.0, 50.0, xtol=1e-15)
    return float(objective(phi, np.full(n, w), lam))


def descend(phi: Surrogate, n: int, one_sample: bool) -> Table:
    """Computes the mean excess objective at a fixed step size, over runs and a window of a tenth of the steps."""
    settings = SETTINGS["optimization"]
    eta, lam = settings["step"], settings["lambda"]
    runs, steps = (settings["sgd_runs"], settings["sgd_steps"]) if one_sample else (1, settings["gd_steps"])
    rng, every, floor = np.random.default_rng(SETTINGS["seed"]), np.arange(runs), minimum(phi, n, lam)
    w, excess = np.zeros((runs, n)), []
    for _ in range(steps):
        excess.append(float(objective(phi, w, lam).mean()) - floor)
        if one_sample:
            i = rng.integers(n, size=runs)
            slope = phi.derivative(w[every, i])
            w *= 1 - eta * lam
            w[every, i] -= eta * slope
        else:
            w = w - eta * (phi.derivative(w) / n + lam * w)
    tenth = steps // 10
    return {
        "start": excess[0],
        "halfway": float(np.mean(excess[4 * tenth : 5 * tenth])),
        "end": float(np.mean(excess[-tenth:])),
    }


def item_m() -> Table:
    """Computes the excess objective of hinge and linear core with gradient descent and with one-sample SGD."""
    rows = []
    for n, one_sample in itertools.product(SETTINGS["optimization"]["samples"], (False, True)):
        row: Table = {"samples": n, "method": "one-sample SGD" if one_sample else "gradient descent"}
        row |= {"hinge": descend(Hinge(), n, one_sample), "linear_core": descend(LinearCore(), n, one_sample)}
        rows.append(row)
    return {"rows": rows, "one_over_lambda": 1 / SETTINGS["optimization"]["lambda"]}


# ---- the record --------------------------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """Rounds floats to eight significant digits, so that result files are easy to compare."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def every_item() -> Table:
    """Computes all items by letter."""
    seed = SETTINGS["seed"]
    b, c = sequences.items_b_and_c(seed)
    first = {"a": item_a(), "b": b, "c": c, "d": item_d(), "e": item_e(), "f": item_f(), "g": sequences.item_g(seed)}
    then = {"j": item_j(), "k": item_k(), "l": item_l(), "m": item_m(), "p": training.item_p(seed)}
    later = {"q": sequences.item_q(seed), "r": losses.item_r(), "s": sequences.item_s(), "t": losses.item_t(seed)}
    last = {"u": losses.item_u(), "v": losses.item_v(), "w": metrics.item_w(SETTINGS["deltas"])}
    return rounded(first | then | later | last | {"smaller_points": losses.smaller_points(seed)})


def main() -> None:
    """Writes the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Run it in the repository's root: python benchmarks/corrections.py   (a few minutes on one core)",
    )
    default = Path("docs/results/corrections.json")
    parser.add_argument(
        "--out", type=Path, default=default, help="JSON file to write, in a folder that exists (%(default)s)"
    )
    out = parsed(parser).out
    torch.set_num_threads(1)
    settings = SETTINGS | {"scipy": scipy.__version__}
    write_record(
        out, command="python benchmarks/corrections.py", settings=settings, results=every_item(), seed=SETTINGS["seed"]
    )
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
