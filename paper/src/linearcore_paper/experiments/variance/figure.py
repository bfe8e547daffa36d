"""Figure of `variance`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    RED,
    Line,
    draw_lines,
    legend,
    name_axes,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {
    "lc-logistic-1": (BLUE, "o-"),
    "lc-logistic-2": (GREEN, "s--"),
    "lc-exponential-1": (PURPLE, "^:"),
    "lc-exponential-2": (RED, "^-."),
    "hinge": (ORANGE, "v-."),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Against K, at its worst, against the number of tags, for the weighted sum, and with a control variate."""
    figure, axes = panels(5, 2.7)
    for panel, fill in zip(axes, (_samples, _worst, _tags, _sum, _control), strict=True):
        fill(panel, data)
    return figure


def _samples(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(0.4, 6))
    rows = [(row, row["label"].replace(", ", ",\n"), *_STYLES[row["key"]]) for row in data["samples"]]
    rows.append((data["local"][-1], "local candidates\nof the chain head", INK, "D-"))
    lines = [
        Line(row["samples"], [k * v for k, v in zip(row["samples"], row["variance"], strict=True)], label, colour, look)
        for row, label, colour, look in rows
    ]
    _bound(axes, 4, "4, the paper's bound", lines[0].x[0])
    _bound(axes, 1, "R² Lip² where Lip = 1", lines[0].x[0])
    draw_lines(axes, lines, gap=0.2)
    axes.set_xticks(lines[0].x, [str(k) for k in lines[0].x])
    axes.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    axes.minorticks_off()
    name_axes(axes, "K, draws averaged", "K × variance, R = 1", "K times the variance is flat: it falls as 1/K")


def _worst(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(yscale="log", ylim=(0.5, 1e4))
    _bound(axes, 4, "4, the paper's bound", data["worst"][0]["margin"][0])
    for row in data["worst"]:
        colour, look = _STYLES[row["key"]]
        axes.plot(row["margin"], row["exact"], look[1:], color=colour)
        axes.plot(row["margin"], row["measured"], look[0], color=colour, markersize=5, label=row["label"])
    legend(axes, "center left")
    name_axes(axes, "margin of the wrong output", "K × variance, R = 1", "Two antipodal outputs: R² Lip² is attained")


def _tags(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(0.4, 1e4))
    lines = [
        _line(data, "truth", "lc-logistic-1", "around the truth,\none-sided", BLUE, "-"),
        _line(data, "truth", "lc-logistic-2", "around the truth,\ntwo-sided", GREEN, "--"),
        _line(data, "pairs", "mean", "pairs, y' by\nsimilarity", PURPLE, "-."),
        _line(data, "pairs", "mean-uniform", "pairs, y' uniform\nand weighted", RED, ":"),
    ]
    draw_lines(axes, lines, gap=0.19)
    title = f"Averages over sequences of {data['length']} tags: flat, if drawn by their own law"
    name_axes(axes, "number of tags", "K × variance, R = 1", title)


def _sum(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(1e-3, 1e80))
    lines = [
        _line(data, "pairs", "sum", "the sum, weights\nof Algorithm 1", RED, "-"),
        _line(data, "pairs", "mean", "the mean, same\nlaw of draws", PURPLE, "-."),
    ]
    draw_lines(axes, lines, gap=0.19)
    name_axes(axes, "number of tags", "K × variance, R = 1", "The weighted sum over all pairs is not bounded")


def _line(data: dict[str, Any], kind: str, key: str, label: str, colour: str, look: str) -> Line:
    """K × variance against the number of tags."""
    rows = data["tags"]
    return Line([row["tags"] for row in rows], [row[kind][key]["variance"] for row in rows], label, colour, look)


def _control(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(yscale="log", ylim=(1e-3, 3e2))
    margins = [row["margin"] for row in data["control"]]
    axes.axhline(1, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    lines = [
        Line(margins, [row["one"] for row in data["control"]], "α = 1", RED, "o-"),
        Line(margins, [row["running"] for row in data["control"]], "α the running\nmean of −φ'", BLUE, "s-"),
    ]
    draw_lines(axes, lines, gap=0.19)
    name_axes(axes, "margin of the truth over the mean score", "variance, × plain", "The straight part put back exactly")


def _bound(axes: "Axes", height: float, word: str, left: float) -> None:
    """A level line with its name above its left end."""
    axes.axhline(height, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(word, (left, height), (0, 4), textcoords="offset points", color=FAINT, fontsize=9, va="bottom")
