"""Figure of `statements`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, ORANGE, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Draws both regrets of random problems, with the line on which they are equal."""
    figure, (axes,) = panels(1, 3.6)
    axes.set(xscale="log", yscale="log", xlim=(1e-3, 30), ylim=(1e-5, 2))
    axes.plot((1e-4, 2), (1e-4, 2), "-", color=FAINT, linewidth=1.2)
    axes.annotate("equal regrets: the bound", (0.2, 0.2), (-6, 6), textcoords="offset points", ha="right", color=FAINT)
    for problems, colour, marker in zip(data["problems"], (BLUE, ORANGE), ("o", "^"), strict=True):
        label = "one-sided (corollary 3.6)" if problems["sides"] == 1 else "two-sided (Theorem 3.4)"
        axes.plot(problems["surrogate"], problems["target"], marker, color=colour, markersize=3.2, alpha=0.7, label=label)
    legend(axes, "lower right")
    name_axes(axes, "surrogate regret", "0-1 regret", "Random two-class problems: no point above the bound")
    return figure
