"""Figure of `gradients`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, GREEN, ORANGE, PURPLE, RED, Line, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "lc-logistic-1": (BLUE, "-"),
    "lc-logistic-2": (GREEN, "--"),
    "lc-truncated-1": (ORANGE, "-."),
    "lc-gamma-1": (PURPLE, ":"),
    "logistic": (RED, "-"),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the gradient size against the margin, with the core shaded."""
    figure, (axes,) = panels(1, 3.6)
    axes.set(xlim=(-6, 6), ylim=(-0.05, 2.15))
    axes.axvspan(-1, 1, color="#eef3f7", zorder=0)
    axes.text(0, 2.08, "core", color=FAINT, fontsize=9, ha="center", va="top")
    lines = [Line(curve["margin"], curve["gradient"], curve["label"], *_STYLES[curve["key"]]) for curve in data["curves"]]
    for index, line in enumerate(lines):
        # The first line is wide so that it is visible under those with the same core.
        axes.plot(line.x, line.y, line.dashes, color=line.colour, label=line.label, linewidth=1.8 if index else 4.0)
    legend(axes, "upper right")
    name_axes(axes, "margin", "gradient size, |φ'|", "The gradient is constant in the core, but not for the logistic loss")
    return figure
