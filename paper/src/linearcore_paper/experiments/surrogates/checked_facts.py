"""What a surrogate declares, and what numbers say about it.

Numbers do not look at what is declared: second differences for convexity; how far φ' and φ'' can change over a step h, which
shrinks with h if they are continuous and does not if they jump; T(t) for the bound, and its local slope for the rate.
"""

import math
from typing import Any

import numpy as np

from linearcore.analysis import rate, transform
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments._plain import plain

#: Curves are drawn here, and continuity is looked at over the whole of it.
REACH = 4.0
#: Small enough for every rate to show, large enough for T(2δ) to keep its digits.
SMALL_DELTAS = (1e-6, 1e-5, 1e-4)


def facts(phi: Surrogate, finest: float) -> dict[str, Any]:
    """Curve, declared and found facts of a surrogate; `finest` is the smallest step h that continuity is looked at with."""
    u, fine = np.linspace(-REACH, REACH, 161), np.linspace(-REACH, REACH, 8001)
    t = np.concatenate([np.geomspace(1e-9, 1e-2, 15), np.linspace(0.02, 1.0, 50)])
    value = np.asarray(phi.value(u))
    constant = None if phi.core is None else min(abs(end) for end in phi.core) * -float(phi.derivative(0.0))
    return {
        "margin": plain(u, 6),
        "value": plain(value, 6),
        "lowest_at": plain(fine[np.asarray(phi.value(fine)).argmin()], 6),
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
            "bound": plain((transform(phi, t) / t).min(), 6),
            "slope": plain(rate(phi, deltas=SMALL_DELTAS).slopes[0], 5),
        },
    }


def _class(phi: Surrogate, finest: float) -> str:
    """The smoothness that shows in numbers: whether φ' and φ'' jump somewhere. More than C2 cannot be seen."""
    if not _is_continuous(phi.derivative, finest):
        return "kink"
    return "C2" if _is_continuous(phi.curvature, finest) else "C1"


def _is_continuous(function: Any, finest: float) -> bool:
    """Whether the largest change over a step falls with the step, from 10·`finest` to `finest`."""
    coarse, fine = (float(np.abs(np.diff(function(np.arange(-REACH, REACH, h)))).max()) for h in (10 * finest, finest))
    return fine <= 0.5 * coarse or coarse == 0


def agrees(row: dict[str, Any]) -> bool:
    """Whether numbers confirm what is declared: T(t) ≥ constant·t, tight as t → 0; no constant where there is no core."""
    declared, found = row["declared"], row["found"]
    same_class = found["class"] == ("C2" if declared["class"] == "C∞" else declared["class"])
    if declared["bound"] is None:
        bound = found["bound"] < 1e-3
    else:
        # C2 bases come down to their constant slowly: T(t) = τ t + κ t^{4/3}.
        bound = 1 - 1e-6 <= found["bound"] / declared["bound"] <= 1 + 5e-3 and kind_of(found["slope"]) == "linear"
    return bool(declared["convex"] == found["convex"] and same_class and bound)


def kind_of(slope: float) -> str:
    """The bound that a local slope near t = 0 speaks for."""
    return "linear" if abs(slope - 1) < 0.01 else "square root" if abs(slope - 0.5) < 0.01 else f"slope {slope:.2f}"
