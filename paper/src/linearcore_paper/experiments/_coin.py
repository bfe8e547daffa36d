"""Regrets on a biased coin: the label has probability ½ + δ, and the predictor outputs the less likely label.

The 0-1 regret of this prediction is t = 2δ, and its smallest surrogate regret is T(2δ). Both are exact: nothing is sampled.
"""

from typing import Any

import numpy.typing as npt

from linearcore.analysis import rate
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments._numbers import round_values


def coin(phi: Surrogate, deltas: npt.ArrayLike | None = None) -> dict[str, Any]:
    """Returns both regrets for each δ (default: the paper's range), the local slopes and the log-log linear fit."""
    curve = rate(phi) if deltas is None else rate(phi, deltas=deltas)
    return {
        "delta": round_values(curve.deltas),
        "target_regret": round_values(curve.target),
        "surrogate_regret": round_values(curve.surrogate),
        "local_slope": round_values(curve.slopes),
        "fit": round_values(curve.fit),
    }
