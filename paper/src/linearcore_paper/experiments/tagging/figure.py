"""Figure of `tagging`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, GREEN, OLIVE, ORANGE, PURPLE, RED, SKY, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {
    "broadcast": (RED, "--"),
    "crf": (PURPLE, "-"),
    "ssvm": (ORANGE, "-"),
    "ce": (OLIVE, "-"),
    "lc": (GREEN, "-"),
    "lc-rank": (BLUE, "-"),
    "lc-sampled": (SKY, "--"),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws accuracy on dev against seconds, one panel for each data set and encoder; the target is a dotted line."""
    tables: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in data["rows"]:
        tables.setdefault((row["source"], row["encoding"]), []).append(row)
    figure, axes = panels(len(tables), 2.7)
    for panel, ((source, encoding), rows) in zip(axes, tables.items(), strict=True):
        title = f"{data['sources'][source]} · {data['encodings'][encoding]}"
        name_axes(panel, "seconds of training", "dev accuracy, %", "")
        # Left-aligned, so that a long title can extend over the margin with the labels.
        panel.set_title(title, loc="left", pad=11)
        # A failed run, or a step that does not fit into memory, has no curve.
        lines = [_line(row, data["labels"]) for row in rows if row["curve"]]
        if lines:
            _draw_curves(panel, lines, data["target"])
    return figure


def _line(row: dict[str, Any], labels: dict[str, str]) -> Line:
    seconds, accuracies = zip(*row["curve"], strict=True)
    return Line(seconds, accuracies, labels[row["method"]], *_STYLES[row["method"]])


def _draw_curves(panel: "Axes", lines: list[Line], target: float) -> None:
    values = [value for line in lines for value in line.y]
    times = [seconds for line in lines for seconds in line.x]
    # Show the top 40 points only; below, all curves overlap.
    low = max(min(values), max(values) - 40)
    panel.set(xscale="log", xlim=(min(times), 1.05 * max(times)), ylim=(low, max(values) + 1.5))
    panel.axhline(target, color=FAINT, linestyle=":", linewidth=1)
    _name_times(panel, min(times), max(times))
    draw_lines(panel, lines)
    for line in lines:
        # Mark the end of the curve, so that the line to its label is not read as a continuation.
        panel.plot(line.x[-1], line.y[-1], "o", color=line.colour, markersize=3.5, clip_on=False)


def _name_times(panel: "Axes", low: float, high: float) -> None:
    """Labels the time axis with decimal numbers, few enough not to overlap."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    steps = (1.0,) if high > 300 * low else (1.0, 2.0, 5.0)
    panel.xaxis.set_major_locator(LogLocator(subs=steps))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
