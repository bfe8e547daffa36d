"""Figure of `optimization`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, ORANGE, RED, SKY, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {"hinge": "hinge", "lc": "linear core"}
#: Last step in the figure. The curves do not change after it.
_LAST = 4000


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the distance to the optimum against steps: full gradients (top) and one sample per step (bottom)."""
    figure, (above, below) = panels(2, 3.1)
    few = min(run["samples"] for run in data["runs"])
    colours = {("hinge", True): RED, ("lc", True): BLUE, ("hinge", False): ORANGE, ("lc", False): SKY}
    for axes, one_sample, title in (
        (above, False, f"Full gradients, step size {data['step_size']:g}, λ = {data['lambda']:g}"),
        (below, True, "One sample per step, same data: both stall at a noise floor"),
    ):
        axes.set(yscale="log", xlim=(0, _LAST), ylim=(3e-2, 8) if one_sample else (1e-14, 20))
        lines = []
        for run in (run for run in data["runs"] if run["one_sample"] == one_sample):
            points = [pair for pair in zip(run["step"], run["distance"], strict=True) if pair[0] <= _LAST]
            steps, distances = zip(*points, strict=True)
            label = f"{_LABELS[run['loss']]}, {run['samples']} samples"
            is_few = run["samples"] == few
            lines.append(Line(steps, distances, label, colours[run["loss"], is_few], "-" if is_few else "--"))
        draw_lines(axes, lines)
        name_axes(axes, "steps", "distance to the optimum", title)
    return figure
