"""The biased coin: label probability ½ + δ, and a predictor that answers the less likely label.

Its 0-1 regret is t = 2δ; the least surrogate regret with which that happens is T(2δ). Nothing is sampled, so what is seen is
the loss itself.
"""

from typing import Any

import numpy.typing as npt

from linearcore.analysis import rate
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments._plain import plain


def coin(phi: Surrogate, deltas: npt.ArrayLike | None = None) -> dict[str, Any]:
    """Both regrets over δ (the paper's range with 31 points unless given), local slopes and the straight fit."""
    found = rate(phi) if deltas is None else rate(phi, deltas=deltas)
    return {
        "delta": plain(found.deltas),
        "target_regret": plain(found.target),
        "surrogate_regret": plain(found.surrogate),
        "local_slope": plain(found.slopes),
        "fit": plain(found.fit),
    }
