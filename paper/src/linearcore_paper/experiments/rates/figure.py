"""Figure of `rates`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, GREEN, PURPLE, RED, Line, draw_regrets, draw_slopes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "lc-logistic-1": (BLUE, "-"),
    "lc-logistic-2": (GREEN, "--"),
    "lc-exponential-1": (PURPLE, ":"),
    "logistic": (RED, "-"),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the regrets on log axes and the local slope of the same curves."""
    figure, (above, below) = panels(2, 3.1)
    curves = data["curves"]
    regrets = [
        Line(curve["surrogate_regret"], curve["target_regret"], curve["label"], *_STYLES[curve["key"]]) for curve in curves
    ]
    draw_regrets(above, regrets, "0-1 regret against surrogate regret", wide=4.0)
    slopes = [
        Line(
            curve["delta"],
            curve["local_slope"],
            f"{curve['label']}\n(linear fit {curve['fit']:.3f})",
            *_STYLES[curve["key"]],
        )
        for curve in curves
    ]
    draw_slopes(below, slopes, "Local slope of the same curves: 1 is reached only as δ → 0", gap=0.15)
    return figure
