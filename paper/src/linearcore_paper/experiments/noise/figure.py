"""Figure of `noise`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, OLIVE, ORANGE, PURPLE, RED, SKY, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {
    "ce": (RED, "-"),
    "ce-tuned": (RED, "--"),
    "gce-tuned": (ORANGE, "-"),
    "gce-normed": (ORANGE, "--"),
    "lc": (SKY, "-"),
    "logodds": (BLUE, "--"),
    "unhinged-tuned": (OLIVE, "--"),
    "robust": (PURPLE, "-"),
}
#: Colours and marker shapes of the paper's numbers.
_PAPERS = {"ce": (RED, "o"), "gce": (ORANGE, "s"), "lc": (SKY, "^")}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws accuracy against the noise rate (hollow: the paper's), and accuracies with symmetric noise if there are any."""
    rows = [row for row in data["rows"] if row["mean"] is not None]
    other = [row for row in rows if row["law"] != "instance"]
    figure, axes = panels(2 if other else 1, 4.0)
    _against_rates(axes[0], data, [row for row in rows if row["law"] == "instance"])
    if other:
        _side_by_side(axes[1], data, other)
    return figure


def _against_rates(panel: "Axes", data: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Draws a line for each method, with error bars if there are several seeds."""
    lines = []
    for key in dict.fromkeys(row["row"] for row in rows):
        method_rows = sorted((row for row in rows if row["row"] == key), key=lambda row: row["rate"])
        rates, means = ([row[name] for row in method_rows] for name in ("rate", "mean"))
        colour, dashes = _STYLES[key]
        # Two methods share a colour, and the line before a label is too short to show dashes.
        label = ("╌╌ " if dashes == "--" else "") + data["labels"][key]
        lines.append(Line([100 * rate for rate in rates], means, label, colour, dashes))
    shown = [value for line in lines for value in line.y] + [value for pairs in data["paper"].values() for _, value in pairs]
    panel.set(ylim=(min(shown) - 3, max(shown) + 3))
    draw_lines(panel, lines)
    for row in rows:
        colour = _STYLES[row["row"]][0]
        panel.plot(100 * row["rate"], row["mean"], ".", color=colour)
        if row["spread"] is not None:
            panel.errorbar(100 * row["rate"], row["mean"], row["spread"], color=colour, capsize=2, linewidth=1)
    for key, pairs in data["paper"].items():
        colour, marker = _PAPERS[key]
        places = ([100 * rate for rate, _ in pairs], [value for _, value in pairs])
        panel.plot(*places, marker, color=colour, markerfacecolor="none", markersize=5, label=f"{key.upper()}, paper")
    if data["paper"]:
        panel.legend(frameon=False, fontsize=9, loc="lower left")
    title = f"{data['source']}, {data['laws']['instance']['label']} noise"
    if any(row["spread"] is not None for row in rows):
        title += f"; bars: {max(len(row['seeds']) for row in rows)} seeds, no bar: one seed"
    name_axes(panel, "wrong training labels, %", "test accuracy, %", title)


def _side_by_side(panel: "Axes", data: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Draws a dot for each method under symmetric noise, the best on top, with labels on the right as in the panel above."""
    ranked = sorted(rows, key=lambda row: -row["mean"])
    panel.set_yticks(range(len(ranked)), [data["labels"][row["row"]] for row in ranked])
    panel.yaxis.tick_right()
    panel.tick_params(axis="y", length=0)
    for place, (row, name) in enumerate(zip(ranked, panel.get_yticklabels(), strict=True)):
        colour = _STYLES[row["row"]][0]
        panel.plot(row["mean"], place, "o", color=colour)
        name.set_color(colour)
    panel.invert_yaxis()
    title = f"{data['source']}, {data['laws'][rows[0]['law']]['label']} noise, {100 * rows[0]['rate']:g} %"
    name_axes(panel, "test accuracy, %", "", title)
