"""Figure of `surfaces`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from linearcore_paper.drawing import INK, RED, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = (0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


def draw(data: dict[str, Any]) -> "Figure":
    """Draws contours of the four surfaces and outlines the region in which each is affine."""
    from matplotlib import colormaps

    figure, axes = panels(2, 3.0, columns=2)
    # One shade per level, light enough for the printed numbers.
    shades = colormaps["Blues"](np.linspace(0.0, 0.6, len(_LEVELS) + 1))
    for panel, surface in zip(axes, data["surfaces"], strict=True):
        axis, value = np.asarray(surface["axis"]), np.asarray(surface["value"])
        # Rows run along the first margin; `contour` expects them along the second.
        panel.contourf(axis, axis, value.T, levels=[0, *_LEVELS, 64], colors=shades)
        lines = panel.contour(axis, axis, value.T, levels=_LEVELS, colors=INK, linewidths=0.6)
        panel.clabel(lines, fontsize=8, fmt="%g")
        if surface["beyond_core"] is not None:
            panel.contour(axis, axis, np.asarray(surface["beyond_core"]).T, levels=[0.0], colors=RED, linewidths=1.8)
        panel.set_aspect("equal")
        panel.grid(False)
        form, rest = surface["label"].split(", ", 1)
        name_axes(panel, "margin over class 2", "margin over class 3", f"{form}\n{rest}")
    figure.suptitle(
        "Loss against the two margins; the red outline marks the affine region", fontsize=10.5, x=0.02, ha="left"
    )
    return figure
