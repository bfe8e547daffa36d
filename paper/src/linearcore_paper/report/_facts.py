"""Properties of losses for the loss explorer, read from the library when the report is written.

The explorer shows every base of the library that has a script in assets/bases, which computes its Φ, and every form whose
margin is affine in the lead (the score of the true class minus that of its competitors, which are equal).
"""

import math
from importlib.resources import files
from typing import Any

import torch

from linearcore.analysis import Problem, certify, regret_ratio
from linearcore.forms import FORMS, Form
from linearcore.surrogates import LinearCore
from linearcore.surrogates.bases import BASES, Base

ASSETS = "linearcore_paper.report.assets"
SIDES = (1, 2)
#: Numbers of classes in the explorer.
CLASSES = (2, 3, 10, 100)

# Reasons for the proofs of `certify` that hold for every τ; the reason in a certificate names the constant at one τ.
_TWO = "T(t) ≥ τ·t follows by inserting the end of the core into the infimum."
_MORE = "Moving the predicted class down to −τ and the best class up by the same amount saves at least τ times the regret."
# `certify` would search for this counterexample for seconds.
_TIE, _SMALL = (0.402, 0.398, 0.2), 0.1
_NEAR_A_TIE = "Near a tie, p = (0.4 + δ, 0.4 − δ, 0.2), surrogate regret / 0-1 regret decreases like δ; see correction (a)."


def linear_bound(surrogate: LinearCore, form: Form, more_than_two: bool) -> dict[str, str]:
    """Returns whether 0-1 regret ≤ surrogate regret / τ for the form's sum over competitors, and the reason.

    The verdict is "proven", "refuted", "refused" (not supported) or "unknown". It depends only on base and sides, not on τ
    or sharpness. Theorems are read from `certify`.
    """
    try:
        form.check(surrogate)
    except ValueError as error:
        return {"verdict": "refused", "reason": f"The library does not support this pair: {str(error).partition('; ')[2]}."}
    if more_than_two and not form.has_linear_bound:
        if regret_ratio(surrogate, form.normalized(False), _TIE, prediction=1).ratio < _SMALL:
            return {"verdict": "refuted", "reason": _NEAR_A_TIE}
        return {
            "verdict": "unknown",
            "reason": "No theorem applies, and a tie of three classes gives no counterexample.",
        }
    finding = certify(surrogate, form.normalized(False), 3 if more_than_two else 2).linear_bound
    if finding.verdict != "proven":
        return {"verdict": finding.verdict, "reason": finding.reason}
    return {"verdict": finding.verdict, "reason": _MORE if more_than_two else _TWO}


def asset(name: str) -> str:
    """Reads a file of the assets folder."""
    return files(ASSETS).joinpath(name).read_text("utf-8")


def explorer_facts() -> dict[str, Any]:
    """Returns all facts for the explorer's script as JSON values; an infinite constant is None."""
    bases = [name for name in BASES if files(ASSETS).joinpath(f"bases/{name}.js").is_file()]
    margins = {name: {str(classes): _margin(form, classes) for classes in CLASSES} for name, form in FORMS.items()}
    margins = {name: each for name, each in margins.items() if all(each.values())}
    return {
        "bases": {name: _base_facts(BASES[name]) for name in bases},
        "forms": {
            form: {name: {str(sides): _form_facts(name, sides, FORMS[form]) for sides in SIDES} for name in bases}
            for form in margins
        },
        "margins": margins,
    }


def _margin(form: Form, classes: int) -> dict[str, float] | None:
    """Returns gain and shift of the margin gain · d + shift of a class that leads all others by d; None if not affine."""
    labels = torch.arange(classes)
    system = form.margins(labels[:1], labels.unsqueeze(0), torch.eye(classes, dtype=torch.float64))
    if system is None:
        return None
    leads = torch.tensor([0.0, 1.0, -3.0, 5.0], dtype=torch.float64)
    margins = system.margins(leads.unsqueeze(-1) * (labels == 0))
    shift, gain = margins[0, 0], margins[1, 0] - margins[0, 0]
    is_affine = torch.allclose(margins, (shift + gain * leads).unsqueeze(-1), rtol=0, atol=1e-12)
    return {"gain": float(gain), "shift": float(shift)} if is_affine else None


def _base_facts(base: Base) -> dict[str, Any]:
    return {
        "parameters": dict(vars(base)),
        "slope_at_zero": base.slope_at_zero,
        "knots_right_of_core": [0.0, *base.left.knots],
        "knots_left_of_core": [0.0, *base.right.knots],
        "sides": {str(sides): _surrogate_facts(LinearCore(base, sides=sides)) for sides in SIDES},
    }


def _surrogate_facts(surrogate: LinearCore) -> dict[str, Any]:
    """Returns the facts at τ = 1 and sharpness 1. τ changes none of them, and sharpness β multiplies only `smoothness`."""
    return {
        "is_c1": surrogate.is_c1,
        "is_c2": surrogate.is_c2,
        "is_monotone": surrogate.is_monotone,
        "lipschitz": _finite(surrogate.lipschitz),
        "smoothness": _finite(surrogate.smoothness),
    }


def _form_facts(base: str, sides: int, form: Form) -> dict[str, Any]:
    """Returns the facts of a form with a surrogate."""
    surrogate = LinearCore(base, sides=sides)
    return {
        "is_convex": Problem(form, 3).is_convex(surrogate),
        "two": linear_bound(surrogate, form, False),
        "more": linear_bound(surrogate, form, True),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
