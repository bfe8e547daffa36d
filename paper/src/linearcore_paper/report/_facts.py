"""What the loss explorer knows: facts and rules, read from the library whenever the page is written."""

import math
from typing import Any

from linearcore.analysis import certify
from linearcore.losses import Centered, Form, LogOdds, Pairwise
from linearcore.surrogates import LinearCore
from linearcore.surrogates.bases import BASES, Base

FORMS: tuple[Form, ...] = (Pairwise(), Centered(), LogOdds())
SIDES = (1, 2)

#: How the page writes the names of bases, and what their Φ is.
BASE_LABELS = {
    "logistic": ("logistic", "Φ(z) = log(1 + eᶻ)"),
    "exponential": ("exponential", "Φ(z) = eᶻ, going on as a line past z = 16"),
    "quartic": ("quartic", "Φ(z) = z + z⁴/12 + K, the paper’s C2 example"),
    "truncated_quadratic": ("truncated quadratic", "Φ(z) = ½(1 + z)² for z > −1, else 0"),
    "gamma": ("gamma", "Φ″(z) = z² e^−|z|, integrated twice"),
}

_REFUSED = {
    "centered": "The library refuses this pair: the second tail is steeper than the core, and the bound would be lost.",
    "logodds": "The library refuses this pair: the loss of a rising surrogate is not convex in the scores.",
}

# Why what `certify` proves is true, in words that hold for every τ; its own reason names the constant at one τ.
_TWO = "T(t) ≥ τ·t, by putting the end of the core into the infimum."
_MORE = "Lowering the predicted class to −τ and raising the best one by as much saves τ times the regret at least."
# `certify` would have to search for this, for seconds, whenever a page is written.
_NEAR_A_TIE = (
    "Near a tie, p = (0.4 + δ, 0.4 − δ, 0.2), surrogate regret over 0-1 regret vanishes like δ; see correction (a)."
)


def linear_bound(surrogate: LinearCore, form: Form, more_than_two: bool) -> dict[str, str]:
    """Whether 0-1 regret ≤ surrogate regret / τ for the form's sum over competitors, and why.

    The verdict is "proven", "refuted" or "refused"; it depends on base and sides only, not on τ or sharpness. Theorems are
    read from `certify`.
    """
    try:
        form.check(surrogate)
    except ValueError:
        return {"verdict": "refused", "reason": _REFUSED[form.name]}
    if more_than_two and not isinstance(form, Centered):
        return {"verdict": "refuted", "reason": _NEAR_A_TIE}
    found = certify(surrogate, form.name, 3 if more_than_two else 2).linear_bound
    if found.verdict != "proven":
        return {"verdict": found.verdict, "reason": found.reason}
    return {"verdict": found.verdict, "reason": _MORE if more_than_two else _TWO}


def explorer_facts() -> dict[str, Any]:
    """All that the explorer's script needs, as JSON values; an infinite constant is None."""
    return {
        "bases": {name: _base_facts(base) for name, base in BASES.items() if name in BASE_LABELS},
        "forms": {
            form.name: {name: {str(sides): _form_facts(name, sides, form) for sides in SIDES} for name in BASE_LABELS}
            for form in FORMS
        },
    }


def _base_facts(base: Base) -> dict[str, Any]:
    label, formula = BASE_LABELS[base.name]
    return {
        "label": label,
        "formula": formula,
        "at_zero": base.at_zero,
        "slope_at_zero": base.slope_at_zero,
        "slope": getattr(base, "a", None),
        "linear_past": getattr(base, "linear_past", None),
        "knots_right_of_core": [0.0, *base.left.knots],
        "knots_left_of_core": [0.0, *base.right.knots],
        "sides": {str(sides): _surrogate_facts(LinearCore(base, sides=sides)) for sides in SIDES},
    }


def _surrogate_facts(surrogate: LinearCore) -> dict[str, Any]:
    """Facts at τ = 1 and sharpness 1. τ changes none of them, and sharpness β multiplies `smoothness` only."""
    return {
        "is_c1": surrogate.is_c1,
        "is_c2": surrogate.is_c2,
        "is_monotone": surrogate.is_monotone,
        "lipschitz": _finite(surrogate.lipschitz),
        "smoothness": _finite(surrogate.smoothness),
    }


def _form_facts(base: str, sides: int, form: Form) -> dict[str, Any]:
    """What form and surrogate give together."""
    surrogate = LinearCore(base, sides=sides)
    return {
        # A log-odds is concave in the scores, so that only a falling φ keeps the composition convex.
        "is_convex": surrogate.is_monotone or not isinstance(form, LogOdds),
        "two": linear_bound(surrogate, form, False),
        "more": linear_bound(surrogate, form, True),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
