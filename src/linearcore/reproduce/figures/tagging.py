"""Figure of `tagging`."""

from typing import TYPE_CHECKING, Any

from linearcore.reproduce.figures._style import (
    BLUE,
    FAINT,
    GREEN,
    OLIVE,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Line,
    draw_lines,
    name_axes,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "broadcast": (RED, "--"),
    "crf": (PURPLE, "-"),
    "ssvm": (ORANGE, "-"),
    "ce": (OLIVE, "-"),
    "lc": (SKY, "-"),
    "lc-rank": (BLUE, "-"),
    "lc-sampled": (GREEN, "--"),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Accuracy on dev against seconds, a panel for each data set and encoder; the target is a dotted line."""
    tables: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in data["rows"]:
        tables.setdefault((row["source"], row["encoding"]), []).append(row)
    figure, axes = panels(len(tables), 2.7)
    for panel, ((source, encoding), rows) in zip(axes, tables.items(), strict=True):
        shown = [row for row in rows if row["curve"]]
        values = [value for row in shown for _, value in row["curve"]]
        times = [seconds for row in shown for seconds, _ in row["curve"]]
        # From where it gets interesting: below, all curves lie on each other.
        low = max(min(values), max(values) - 40)
        panel.set(xscale="log", xlim=(min(times), max(times)), ylim=(low, max(values) + 1.5))
        panel.axhline(data["target"], color=FAINT, linestyle=":", linewidth=1)
        lines = []
        for row in shown:
            seconds, accuracies = ([point[axis] for point in row["curve"]] for axis in (0, 1))
            lines.append(Line(seconds, accuracies, data["labels"][row["method"]], *_STYLES[row["method"]]))
        draw_lines(panel, lines)
        title = f"{data['sources'][source]} · {data['encodings'][encoding]}"
        name_axes(panel, "seconds of training", "dev accuracy, %", title)
    return figure
