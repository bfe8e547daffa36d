"""The small tables that stand below corrections in the report."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """A small table: caption, column headings, and rows of formatted text."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def fixed(value: float, digits: int = 3) -> str:
    """Formats a number with a fixed number of digits and a true minus sign.

    Example:
        >>> fixed(-0.5, 2), fixed(-1e-9)
        ('−0.50', '0.000')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
