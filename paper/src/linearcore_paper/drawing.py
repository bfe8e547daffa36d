"""The style of all figures: one column that fits a phone, a palette for colour-blind readers, labels at the lines.

Figures have a light background and dark text, so they look the same on a light and on a dark page.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, CARD = "#1c1c1c", "#5f5f5f", "#fcfbf8"

# The palette of Okabe and Ito, with darker yellow and light blue for contrast on the light background.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, OLIVE = "#0072B2", "#C77800", "#00805E", "#C24A00", "#A8558A", "#2E8BC0", "#7A7400"
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, OLIVE)
#: From light to dark, for increasing values of a parameter.
RAMP = ("#58A6D6", "#2A86C0", "#0F68A0", "#004C7C", "#002B4A")

# Any, because matplotlib's type for it differs between versions.
STYLE: Any = {
    "axes.edgecolor": FAINT,
    "axes.facecolor": CARD,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "figure.facecolor": CARD,
    "font.size": 10,
    "grid.color": "#e4e2dc",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "linearcore",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelsize": 9,
    "ytick.color": FAINT,
    "ytick.labelsize": 9,
}


class Line(NamedTuple):
    """A curve with a label at its end."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    colour: str
    dashes: str = "-"


def panels(rows: int, height: float = 2.9, columns: int = 1) -> tuple["Figure", list["Axes"]]:
    """Makes a figure of `rows` × `columns` panels, 5.8 inches wide, each `height` inches high."""
    from matplotlib.figure import Figure

    # `Figure` instead of pyplot needs no window system and keeps no global figure.
    figure = Figure(figsize=(5.8, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat:
        panel.set_axisbelow(True)
    return figure, list(axes.flat)


def draw_lines(axes: "Axes", lines: Sequence[Line], *, side: str = "right", gap: float = 0.075) -> None:
    """Draws curves and writes each label next to the end of its curve.

    Call it after the scale and the limits of y are set, because labels are moved apart in screen coordinates.

    Args:
        axes: axes to draw on.
        lines: the curves, with increasing x.
        side: "right" labels the last point, "left" the first.
        gap: smallest distance between labels, as a fraction of the height of the axes.
    """
    for line in lines:
        axes.plot(line.x, line.y, line.dashes, color=line.colour)
    label_ends(axes, lines, side=side, gap=gap)


def label_ends(axes: "Axes", lines: Sequence[Line], *, side: str = "right", gap: float = 0.075) -> None:
    """Writes each label in the margin next to the end of its curve; labels that overlap are moved apart."""
    end, sign = (-1, 1) if side == "right" else (0, -1)
    to_height = axes.transScale + axes.transLimits
    ends = [float(to_height.transform((line.x[end], line.y[end]))[1]) for line in lines]
    places = _spread(np.clip(ends, 0.0, 1.0), gap)
    edge = 1.0 if side == "right" else 0.0
    for line, height, place in zip(lines, np.clip(ends, 0.0, 1.0), places, strict=True):
        axes.plot(
            [edge + sign * 0.005, edge + sign * 0.03],
            [height, place],
            color=line.colour,
            linewidth=0.8,
            transform=axes.transAxes,
            clip_on=False,
        )
        axes.text(
            edge + sign * 0.035,
            place,
            line.label,
            color=line.colour,
            fontsize=9,
            transform=axes.transAxes,
            verticalalignment="center",
            horizontalalignment="left" if side == "right" else "right",
        )


def _spread(heights: Any, gap: float) -> list[float]:
    """Moves heights in [0, 1] until neighbours are at least `gap` apart."""
    order = np.argsort(heights, kind="stable")
    places = np.array(heights, dtype=float)[order]
    for _ in range(200):
        overlap = gap - np.diff(places)
        if (overlap <= 1e-9).all():
            break
        push = np.clip(overlap, 0, None) / 2
        places[:-1] -= push
        places[1:] += push
    # Move them back into [0, 1]: from the top down, then from the bottom up.
    for index in range(len(places) - 1, -1, -1):
        ceiling = 1.0 if index == len(places) - 1 else places[index + 1] - gap
        places[index] = min(places[index], ceiling)
    for index in range(len(places)):
        ground = 0.0 if index == 0 else places[index - 1] + gap
        places[index] = max(places[index], ground)
    moved = np.empty_like(places)
    moved[order] = places
    return [float(place) for place in moved]


def legend(axes: "Axes", place: str) -> None:
    """Adds a legend in the colours of the lines, for curves whose ends are close; place "beside" is outside the axes."""
    style: dict[str, Any] = {
        "frameon": False,
        "fontsize": 9,
        "labelcolor": "linecolor",
        "handlelength": 2.4,
        "labelspacing": 0.3,
    }
    outside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    axes.legend(**style, **(outside if place == "beside" else {"loc": place}))


def name_axes(axes: "Axes", x: str, y: str, title: str) -> None:
    """Sets axis labels and title of a panel."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title)


def save_figure(name: str, draw: "Callable[[dict[str, Any]], Figure]", data: dict[str, Any], folder: Path) -> None:
    """Draws a figure and saves it as NAME.svg and NAME.png in `folder`; the same data give the same files.

    Raises:
        OSError: if the files cannot be written.
    """
    from matplotlib import rc_context

    # Fixed ids and no date, so that equal data give equal files.
    with rc_context(dict(STYLE)):
        figure = draw(data)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        # Reuse the layout of the first save, because computing it again is slow.
        figure.set_layout_engine("none")
        figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})


def draw_regrets(axes: "Axes", lines: Sequence[Line], title: str, *, wide: float = 1.8, steep_from: float = 1.5e-6) -> None:
    """Draws 0-1 regret against surrogate regret on log axes, with reference lines of slope 1, from `steep_from`, and ½."""
    axes.set(xscale="log", yscale="log", xlim=(1e-8, 2.0), ylim=(1.2e-4, 0.4))
    for (x, y), slope, text in (((steep_from, 2e-4), 1.0, "slope 1 "), ((3e-8, 1e-3), 0.5, "slope ½ ")):
        end = (x * 15 ** (1 / slope), y * 15)
        axes.plot((x, end[0]), (y, end[1]), ":", color=FAINT, linewidth=1.2)
        # The steep line is below the flat one, so its label is at its lower end.
        at = (x, y) if slope == 1 else end
        axes.annotate(text, at, (-3, 3), textcoords="offset points", color=FAINT, fontsize=9, ha="right", va="center")
    for index, line in enumerate(lines):
        # The first line is wide, so that it stays visible under lines that coincide with it.
        axes.plot(line.x, line.y, line.dashes, color=line.colour, label=line.label, linewidth=wide if index == 0 else 1.8)
    legend(axes, "beside")
    name_axes(axes, "surrogate regret", "0-1 regret, 2δ", title)


def draw_slopes(axes: "Axes", lines: Sequence[Line], title: str, *, gap: float = 0.075) -> None:
    """Draws the local slope against δ, with reference lines for a linear and a square-root rate."""
    axes.set(xscale="log", xlim=(1e-4, 1e-1), ylim=(0.42, 1.06))
    for level in (0.5, 1.0):
        axes.axhline(level, color=FAINT, linewidth=1.0, linestyle=":")
    draw_lines(axes, lines, gap=gap)
    name_axes(axes, "bias of the coin, δ", "local slope", title)
