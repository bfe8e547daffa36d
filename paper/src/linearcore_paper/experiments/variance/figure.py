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
    """Draws the variance against K, in the worst case, against the number of tags, of the weighted sum, and with control."""
    figure, axes = panels(5, 2.7)
    for panel, fill in zip(axes, (_samples, _worst, _tags, _sum, _control), strict=True):
        fill(panel, data)
    return figure


def _samples(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(0.4, 6))
    rows = [(row, row["label"].replace(", ", ",\n"), *_STYLES[row["key"]]) for row in data["samples"]]
    rows.append((data["local"][-1], "local candidates\nof the chain head", INK, "D-"))
    lines = [
        Line(row["samples"], [k * v for k, v in zip(row["samples"], row["variance"], strict=True)], label, colour, style)
        for row, label, colour, style in rows
    ]
    _bound(axes, 4, "4, the paper's bound", lines[0].x[0])
    _bound(axes, 1, "R² Lip² for Lip = 1", lines[0].x[0])
    draw_lines(axes, lines, gap=0.2)
    axes.set_xticks(lines[0].x, [str(k) for k in lines[0].x])
    axes.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    axes.minorticks_off()
    name_axes(
        axes, "number of samples K", "K × variance, R = 1", "K times the variance is constant: the variance falls as 1/K"
    )


def _worst(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(yscale="log", ylim=(0.5, 1e4))
    _bound(axes, 4, "4, the paper's bound", data["worst"][0]["margin"][0])
    for row in data["worst"]:
        colour, style = _STYLES[row["key"]]
        axes.plot(row["margin"], row["exact"], style[1:], color=colour)
        axes.plot(row["margin"], row["measured"], style[0], color=colour, markersize=5, label=row["label"])
    legend(axes, "center left")
    name_axes(axes, "margin of the wrong output", "K × variance, R = 1", "Two antipodal outputs: R² Lip² is attained")


def _tags(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(0.4, 1e4))
    lines = [
        _line(data, "truth", "lc-logistic-1", "around the true\nsequence, one-sided", BLUE, "-"),
        _line(data, "truth", "lc-logistic-2", "around the true\nsequence, two-sided", GREEN, "--"),
        _line(data, "pairs", "mean", "pairs, y' by\nsimilarity", PURPLE, "-."),
        _line(data, "pairs", "mean-uniform", "pairs, y' uniform\nand weighted", RED, ":"),
    ]
    draw_lines(axes, lines, gap=0.19)
    title = f"Means over sequences of {data['length']} tags: constant if sampled by similarity"
    name_axes(axes, "number of tags", "K × variance, R = 1", title)


def _sum(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(xscale="log", yscale="log", ylim=(1e-3, 1e80))
    lines = [
        _line(data, "pairs", "sum", "the sum, weights\nof Algorithm 1", RED, "-"),
        _line(data, "pairs", "mean", "the mean, same\nproposal", PURPLE, "-."),
    ]
    draw_lines(axes, lines, gap=0.19)
    name_axes(axes, "number of tags", "K × variance, R = 1", "The weighted sum over all pairs is not bounded")


def _line(data: dict[str, Any], kind: str, key: str, label: str, colour: str, style: str) -> Line:
    """Returns K × variance against the number of tags."""
    rows = data["tags"]
    return Line([row["tags"] for row in rows], [row[kind][key]["variance"] for row in rows], label, colour, style)


def _control(axes: "Axes", data: dict[str, Any]) -> None:
    axes.set(yscale="log", ylim=(1e-3, 3e2))
    margins = [row["margin"] for row in data["control"]]
    axes.axhline(1, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    lines = [
        Line(margins, [row["one"] for row in data["control"]], "α = 1", RED, "o-"),
        Line(margins, [row["running"] for row in data["control"]], "α = running\nmean of −φ'", BLUE, "s-"),
    ]
    draw_lines(axes, lines, gap=0.19)
    name_axes(axes, "margin of the true sequence over the mean score", "variance / without control", "Control variate −α m")


def _bound(axes: "Axes", y: float, label: str, left: float) -> None:
    """Draws a horizontal line with its label above its left end."""
    axes.axhline(y, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(label, (left, y), (0, 4), textcoords="offset points", color=FAINT, fontsize=9, va="bottom")
