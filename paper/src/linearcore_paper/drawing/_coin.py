"""Two panels that several figures about the biased coin use."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linearcore_paper.drawing._style import FAINT, Line, draw_lines, legend, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
