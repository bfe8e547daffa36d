"""Figure of `noise-conditions`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, INK, RED, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"core": BLUE, "logistic": RED}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws exponents against α, constants against the margin, and regrets against the number of labels."""
    figure, (above, middle, below) = panels(3, 3.0)
    for curve in data["exponents"]:
        above.plot(curve["alpha"], curve["exponent"], color=_COLOURS[curve["key"]], label=curve["label"])
    above.set(ylim=(0.4, 1.1))
    legend(above, "lower right")
    name_axes(above, "noise exponent α", "exponent of the bound", "A core has the better rate unless α = 1")
    for curve in data["constants"]:
        middle.plot(curve["margin"], curve["constant"], color=_COLOURS[curve["key"]], label=curve["label"])
    middle.set(xscale="log", yscale="log")
    legend(middle, "upper right")
    name_axes(
        middle, "least |2η − 1|", "constant, for φ'(0) = −1", "α = 1: both are linear, a core has the smaller constant"
    )
    for curve in data["labels"]:
        colour = _COLOURS[curve["key"]]
        below.plot(curve["labels"], curve["bound"], "--", color=colour, label=f"bound, {curve['label']}")
    below.plot(curve["labels"], curve["zero_one_regret"], color=INK, label="0-1 regret of both", linewidth=2.6)
    below.set(xscale="log", yscale="log")
    legend(below, "lower left")
    name_axes(below, "labels of each input", "0-1 regret", "Exact minimisers predict the same; only the bounds differ")
    return figure
