"""Declared properties of a surrogate and their numerical check.

The check does not use the declared values. Second differences test convexity. The largest change of φ' and φ'' over a step h
tests continuity: it shrinks with h unless there is a jump. T(t) gives the bound, and its local slope the rate.
"""

import math
from typing import Any

import numpy as np

from linearcore.analysis import rate, transform
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments._numbers import round_values

#: Curves are drawn and continuity is tested for margins in [−REACH, REACH].
REACH = 4.0
#: Small enough to show the limiting rate, large enough for T(2δ) to be accurate.
SMALL_DELTAS = (1e-6, 1e-5, 1e-4)


def facts(phi: Surrogate, finest: float) -> dict[str, Any]:
    """Returns the curve, declared and measured properties; `finest` is the smallest step h of the continuity test."""
    u, fine = np.linspace(-REACH, REACH, 161), np.linspace(-REACH, REACH, 8001)
    t = np.concatenate([np.geomspace(1e-9, 1e-2, 15), np.linspace(0.02, 1.0, 50)])
    value = np.asarray(phi.value(u))
    constant = None if phi.core is None else min(abs(end) for end in phi.core) * -float(phi.derivative(0.0))
    return {
        "margin": round_values(u, 6),
        "value": round_values(value, 6),
        "lowest_at": round_values(fine[np.asarray(phi.value(fine)).argmin()], 6),
        "declared": {
            "convex": phi.is_convex,
            "class": "C∞" if not phi.knots else "C2" if phi.is_c2 else "C1" if phi.is_c1 else "kink",
            "bound": constant,
            "lipschitz": phi.lipschitz if math.isfinite(phi.lipschitz) else None,
            "smoothness": phi.smoothness if math.isfinite(phi.smoothness) else None,
        },
        "found": {
            "convex": bool((np.diff(value, 2) >= -1e-12 * value.max()).all()),
            "class": _class(phi, finest),
            "bound": round_values((transform(phi, t) / t).min(), 6),
            "slope": round_values(rate(phi, deltas=SMALL_DELTAS).slopes[0], 5),
        },
    }


def _class(phi: Surrogate, finest: float) -> str:
    """Classifies the smoothness by jumps of φ' and φ''. Anything smoother than C2 is reported as C2."""
    if not _is_continuous(phi.derivative, finest):
        return "kink"
    return "C2" if _is_continuous(phi.curvature, finest) else "C1"


def _is_continuous(function: Any, finest: float) -> bool:
    """Tests whether the largest change over one step at least halves from step 10·`finest` to step `finest`."""
    coarse, fine = (float(np.abs(np.diff(function(np.arange(-REACH, REACH, h)))).max()) for h in (10 * finest, finest))
    return fine <= 0.5 * coarse or coarse == 0


def agrees(row: dict[str, Any]) -> bool:
    """Tests whether the measured properties match: T(t) ≥ constant·t, tight as t → 0; no constant without a core."""
    declared, found = row["declared"], row["found"]
    same_class = found["class"] == ("C2" if declared["class"] == "C∞" else declared["class"])
    if declared["bound"] is None:
        bound = found["bound"] < 1e-3
    else:
        # C2 bases approach their constant slowly: T(t) = τ t + κ t^{4/3}.
        bound = 1 - 1e-6 <= found["bound"] / declared["bound"] <= 1 + 5e-3 and kind_of(found["slope"]) == "linear"
    return bool(declared["convex"] == found["convex"] and same_class and bound)


def kind_of(slope: float) -> str:
    """Names the type of bound that matches a local slope near t = 0."""
    return "linear" if abs(slope - 1) < 0.01 else "square root" if abs(slope - 0.5) < 0.01 else f"slope {slope:.2f}"
