"""Rounds numbers for JSON and formats ranges of numbers."""

from typing import Any

import numpy as np
import numpy.typing as npt


def round_values(values: npt.ArrayLike, digits: int = 9) -> Any:
    """Rounds to `digits` significant digits. Returns nested lists in the shape of the array, or a float for a scalar."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{float(array):.{digits}g}")
    return [round_values(item, digits) for item in array]


def format_range(values: npt.ArrayLike, form: str) -> str:
    """Formats a range as "0.839 to 0.993", or as one number if both ends print the same."""
    low, high = (format(float(end), form) for end in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"
