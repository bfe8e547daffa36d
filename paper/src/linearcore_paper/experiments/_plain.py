"""Arrays as JSON values that can be compared by eye."""

from typing import Any

import numpy as np
import numpy.typing as npt


def plain(values: npt.ArrayLike, digits: int = 9) -> Any:
    """Numbers to `digits` significant digits, nested as the array was; one number stays one number."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return float(f"{float(array):.{digits}g}")
    return [plain(item, digits) for item in array]


def span(values: npt.ArrayLike, form: str) -> str:
    """The range of some numbers, as "0.839 to 0.993", or one number if they print alike."""
    low, high = (format(float(end), form) for end in (np.min(values), np.max(values)))
    return low if low == high else f"{low} to {high}"
