"""The two panels that figures about the biased coin have in common."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linearcore_paper.drawing._style import FAINT, Line, draw_lines, legend, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_regrets(axes: "Axes", lines: Sequence[Line], title: str, *, wide: float = 1.8) -> None:
    """0-1 regret against surrogate regret on log axes, with the two slopes to compare with."""
    axes.set(xscale="log", yscale="log", xlim=(1e-8, 2.0), ylim=(1.2e-4, 0.4))
    for (x, y), slope, word in (((1.5e-6, 2e-4), 1.0, "slope 1 "), ((3e-8, 1e-3), 0.5, "slope ½ ")):
        end = (x * 15 ** (1 / slope), y * 15)
        axes.plot((x, end[0]), (y, end[1]), ":", color=FAINT, linewidth=1.2)
        # The steep one lies under the flat one: its word goes to the foot.
        at = (x, y) if slope == 1 else end
        axes.annotate(word, at, (-3, 3), textcoords="offset points", color=FAINT, fontsize=9, ha="right", va="center")
    for index, line in enumerate(lines):
        # The first is wide, so that it shows under those that coincide with it.
        axes.plot(line.x, line.y, line.dashes, color=line.colour, label=line.label, linewidth=wide if index == 0 else 1.8)
    legend(axes, "beside")
    name_axes(axes, "surrogate regret", "0-1 regret, 2δ", title)


def draw_slopes(axes: "Axes", lines: Sequence[Line], title: str, *, gap: float = 0.075) -> None:
    """Local slope against δ, with the levels of a linear and of a square-root rate."""
    axes.set(xscale="log", xlim=(1e-4, 1e-1), ylim=(0.42, 1.06))
    for level in (0.5, 1.0):
        axes.axhline(level, color=FAINT, linewidth=1.0, linestyle=":")
    draw_lines(axes, lines, gap=gap)
    name_axes(axes, "bias of the coin, δ", "local slope", title)
