"""Figure of `thresholds`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import RAMP, RED, Line, draw_regrets, draw_slopes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Draws regrets and local slopes of the one-sided surrogates. A darker line is a wider core."""
    figure, (above, below) = panels(2, 3.1)
    curves = [curve for curve in data["curves"] if curve["sides"] == 1]
    colours = dict(zip(sorted(curve["tau"] for curve in curves), RAMP, strict=True))
    logistic = data["logistic"]
    regrets = [
        Line(curve["surrogate_regret"], curve["target_regret"], f"τ = {curve['tau']:g}", colours[curve["tau"]])
        for curve in curves
    ]
    red = Line(logistic["surrogate_regret"], logistic["target_regret"], "logistic loss", RED)
    draw_regrets(above, [*regrets, red], "0-1 regret against surrogate regret, one-sided logistic LC")
    slopes = [
        Line(curve["delta"], curve["local_slope"], f"τ = {curve['tau']:g} (fit {curve['fit']:.3f})", colours[curve["tau"]])
        for curve in curves
    ]
    red = Line(logistic["delta"], logistic["local_slope"], f"logistic loss (fit {logistic['fit']:.3f})", RED)
    draw_slopes(below, [*slopes, red], "Local slope: all tend to 1, with wide cores at larger δ")
    return figure
