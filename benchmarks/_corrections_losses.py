"""Items of `corrections.py` about scalar surrogates, the Fenchel–Young loss and restricted scores."""

import itertools
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize, minimize_scalar

from linearcore import Centered, Exponential, Hinge, LinearCore, Logistic, SquaredHinge, Surrogate
from linearcore.analysis import (
    conditional_risk,
    fenchel_young_loss,
    fenchel_young_regret_ratio,
    minimizability_gap,
    regret_ratio,
    transform,
    zero_one_gap,
)
from linearcore.surrogates import BASES

Table = dict[str, Any]

SETTINGS: Table = {
    "curvature": {"reach": [5.0, 10.0, 15.0], "step": 0.1, "coin": 0.7},
    "fenchel_young": {"classes": [2, 3, 10, 100], "rows": 200, "scale": 2.0, "probabilities": [0.402, 0.398, 0.2]},
    "origin": {"t": 1e-3},
    "restricted": {"bounds": [0.25, 0.5, 1.0, 2.0], "t": 0.1, "features": [1, 1, 1, 10, 10], "labels": [1, 1, 1, -1, -1]},
}


def item_r() -> Table:
    """Computes sup φ'' over |u| ≤ 5, 10, 15, and the start from which a gradient step on a coin increases the risk."""
    settings, result = SETTINGS["curvature"], {}
    grid = np.linspace(-settings["reach"][-1], settings["reach"][-1], 6001)
    coin = settings["coin"]
    for base, sides in itertools.product(BASES, (1, 2)):
        phi = LinearCore(base, sides=sides)
        steepest = [float(phi.curvature(grid[np.abs(grid) <= reach]).max()) for reach in settings["reach"]]
        # The risk of the coin is coin · φ(w) + (1 − coin) · φ(−w).
        after = grid - settings["step"] * (coin * phi.derivative(grid) - (1 - coin) * phi.derivative(-grid))
        before_risk, after_risk = (coin * phi.value(w) + (1 - coin) * phi.value(-w) for w in (grid, after))
        starts = np.abs(grid[after_risk > before_risk + 1e-9])
        result[f"{base}_{sides}_sided"] = {
            "greatest_curvature": steepest,
            "declared": phi.smoothness if np.isfinite(phi.smoothness) else "inf",
            "is_c1": phi.is_c1,
            "risk_increases_from": float(starts.min()) if len(starts) else None,
        }
    return {"reach": settings["reach"], "step": settings["step"], "rows": result}


def projection(scores: np.ndarray) -> np.ndarray:
    """Projects one vector onto the simplex: (s − c)₊ with c from the sorted scores."""
    ordered = np.sort(scores)[::-1]
    thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(scores) + 1)
    return np.maximum(scores - thresholds[ordered > thresholds][-1], 0.0)


def closed_form(scores: np.ndarray, label: int) -> float:
    """CE(s − π, y) + 1 − π_y with π the projection of s onto the simplex."""
    pi = projection(scores)
    capped = scores - pi
    return float(np.logaddexp.reduce(capped) - capped[label] + 1 - pi[label])


def by_definition(scores: np.ndarray, label: int) -> float:
    """max_q ⟨s, q⟩ + entropy(q) + 1 − max q − s_y over the simplex, by SciPy with max q as a further variable."""
    n = len(scores)

    def negated(x: np.ndarray) -> tuple[float, np.ndarray]:
        q = np.maximum(x[:-1], 1e-300)
        return -float(scores @ q - q @ np.log(q) + 1 - x[-1]), np.append(-(scores - np.log(q) - 1), 1.0)

    constraints = ({"type": "eq", "fun": lambda x: x[:-1].sum() - 1}, {"type": "ineq", "fun": lambda x: x[-1] - x[:-1]})
    start, bounds, options = np.full(n + 1, 1 / n), [(1e-12, 1)] * (n + 1), {"ftol": 1e-15, "maxiter": 1000}
    run = minimize(negated, start, jac=True, method="SLSQP", constraints=constraints, bounds=bounds, options=options)
    return -float(run.fun) - float(scores[label])


def item_t(seed: int) -> Table:
    """Compares the closed form with the library's solver and with the definition; regrets, decoding, constants."""
    settings, rng, rows = SETTINGS["fenchel_young"], np.random.default_rng(seed), []
    for n in settings["classes"]:
        scores = settings["scale"] * rng.standard_normal((settings["rows"], n))
        labels, p = rng.integers(n, size=len(scores)), rng.dirichlet(np.ones(n), size=len(scores))
        ours = np.array([closed_form(s, y) for s, y in zip(scores, labels, strict=True)])
        solved = fenchel_young_loss(torch.from_numpy(scores), torch.from_numpy(labels), reduction="none").numpy()
        mixtures = np.array([projection(s) for s in scores])
        capped = scores - mixtures
        log_q = capped - np.logaddexp.reduce(capped, axis=1, keepdims=True)
        regrets = (p * (np.log(p) - log_q)).sum(1) + (mixtures * (p.max(1, keepdims=True) - p)).sum(1)
        risks = fenchel_young_loss(torch.from_numpy(scores), torch.from_numpy(p), reduction="none").numpy()
        least = -(p * np.log(p)).sum(1) + 1 - p.max(1)
        row: Table = {
            "classes": n,
            "greatest_difference_to_solver": float(np.abs(ours - solved).max()),
            "greatest_difference_of_regrets": float(np.abs(risks - least - regrets).max()),
            "share_with_the_same_argmax": float((mixtures.argmax(1) == scores.argmax(1)).mean()),
        }
        if n <= 10:
            few = range(20)
            differences = [abs(by_definition(scores[i], labels[i]) - ours[i]) for i in few]
            row["greatest_difference_to_definition"] = float(max(differences))
        rows.append(row)
    return {"rows": rows, "constants": equal_normalisation(settings["probabilities"])}


def equal_normalisation(p: list[float]) -> Table:
    """The least surrogate regret / 0-1 regret of predicting the second class: Fenchel–Young, and `centered` twice.

    As a mean over the competitors `centered` has the size of one loss; as a sum it has Fenchel–Young's gradient at s = 0.
    """
    n = len(p)
    zero = torch.zeros(1, n, dtype=torch.float64, requires_grad=True)
    (young,) = torch.autograd.grad(fenchel_young_loss(zero, torch.tensor([0])), zero)
    step, gradients = 1e-6, {}
    for name, form in (("sum", Centered(normalize=False)), ("mean", Centered())):
        label = np.eye(n)[0]
        risks = [conditional_risk(LinearCore(), form, sign * step * label, label) for sign in (1, -1)]
        gradients[name] = float((risks[0] - risks[1]) / (2 * step))
    ratios = {name: regret_ratio(LinearCore(), form, p, 1).ratio for name, form in (
        ("sum", Centered(normalize=False)), ("mean", Centered()))}  # fmt: skip
    return {
        "probabilities": p,
        "fenchel_young": {"ratio": fenchel_young_regret_ratio(p, 1).ratio, "guaranteed": 1 / n,
                          "label_gradient_at_zero": float(young[0, 0])},
        "centered_mean": {"ratio": ratios["mean"], "guaranteed": 1 / (n - 1), "label_gradient_at_zero": gradients["mean"]},
        "centered_sum": {"ratio": ratios["sum"], "guaranteed": 1.0, "label_gradient_at_zero": gradients["sum"]},
    }  # fmt: skip


def item_u() -> Table:
    """Slope and curvature at 0 of every surrogate, T(t)/t, and T(t)/t² against φ'(0)²/(2φ''(0)) where φ''(0) > 0."""
    t = SETTINGS["origin"]["t"]
    surrogates: dict[str, Surrogate] = {
        "logistic_loss": Logistic(),
        "exponential_loss": Exponential(),
        "squared_hinge": SquaredHinge(),
        "hinge": Hinge(),
        **{f"{base}_{sides}_sided": LinearCore(base, sides=sides) for base in BASES for sides in (1, 2)},
    }
    rows = {}
    for name, phi in surrogates.items():
        slope, curvature, value = float(phi.derivative(0.0)), float(phi.curvature(0.0)), float(transform(phi, t))
        row: Table = {"slope": slope, "curvature": curvature, "T_over_t": value / t}
        if curvature:
            row |= {"T_over_t_squared": value / t**2, "predicted": slope**2 / (2 * curvature)}
        rows[name] = row
    return {"t": t, "rows": rows}


def item_v() -> Table:
    """T(t)/t with scores bounded by Λ; a linear model whose surrogate-optimal weight has the larger 0-1 error."""
    settings, phi = SETTINGS["restricted"], LinearCore()
    t, ratios = settings["t"], {}

    def risk(u: float) -> float:
        return float((1 - t) / 2 * phi.value(-u) + (1 + t) / 2 * phi.value(u))

    for bound in settings["bounds"]:
        inside = minimize_scalar(risk, bounds=(-bound, bound), method="bounded", options={"xatol": 1e-12}).fun
        ratios[f"{bound:g}"] = (float(phi.value(0.0)) - min(float(inside), risk(bound))) / t
    x, y = (np.array(settings[name], dtype=float) for name in ("features", "labels"))
    surrogate = minimizability_gap(phi, "pairwise", x[:, None], settings["labels"], intercept=False)
    zero_one = zero_one_gap(x[:, None], settings["labels"], intercept=False)
    weight = float(minimize_scalar(lambda w: float(phi.value(y * w * x).mean()), bounds=(-20, 20), method="bounded").x)
    return {
        "t": t,
        "T_over_t_with_scores_up_to": ratios,
        "misspecified": {
            "surrogate_optimal_weight": weight,
            "surrogate_risk": float(phi.value(y * weight * x).mean()),
            "least_surrogate_risk": surrogate.best_in_class,
            "error": float((y * weight * x <= 0).mean()),
            "least_error": zero_one.best_in_class,
            "surrogate_gap": surrogate.gap,
            "zero_one_gap": zero_one.gap,
        },
    }


def smaller_points(seed: int) -> Table:
    """The factor ½ over unordered pairs in appendices H and I, and the slopes of the hinge around −1 and 1."""
    rng, n, phi = np.random.default_rng(seed), 4, LinearCore()
    scores, p = rng.standard_normal(n), rng.dirichlet(np.ones(n))
    terms = p[:, None] * phi.value(scores[:, None] - scores[None, :])
    exact = float(terms.sum() - np.trace(terms))
    unordered = float(sum(terms[a, b] + terms[b, a] for a, b in itertools.combinations(range(n), 2)))
    around = {f"{u:g}": [float(Hinge().derivative(u + shift)) for shift in (-1e-6, 1e-6)] for u in (-1.0, 1.0)}
    return {"risk": exact, "printed_with_one_half": unordered / 2, "hinge_slopes_below_and_above": around}
