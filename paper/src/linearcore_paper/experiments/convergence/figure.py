"""Figure of `convergence`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, GREEN, OLIVE, ORANGE, PURPLE, RED, SKY, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES = {
    "logodds": (BLUE, "-"),
    "pairwise": (SKY, "-"),
    "sampled-logodds": (GREEN, "--"),
    "sampled-pairwise": (OLIVE, "--"),
    "sequences": (PURPLE, "-."),
    "ssvm": (RED, "-"),
    "crf": (ORANGE, "-"),
}
_TITLES = {
    "one": "One sequence per step",
    "suited": "Best batch size of each method (in brackets)",
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws test error against seconds of training: the paper's batch size (top), and the best batch sizes (bottom)."""
    figure, axes = panels(2, 3.4)
    all_runs = data["runs"]
    seconds = [value for run in all_runs for value in run["curve"]["seconds"]]
    for panel, setting in zip(axes, _TITLES, strict=True):
        panel.set(xscale="log", yscale="log", xlim=(min(seconds), max(seconds)), ylim=(0.7 * data["errors"]["oracle"], 1.1))
        runs = [run for run in all_runs if run["setting"] == setting]
        lines = [_line(run, setting == "suited") for run in runs]
        draw_lines(panel, lines, gap=0.07)
        for line in lines:
            # The label is at the edge; the dot marks the end of the curve.
            panel.plot(line.x[-1], line.y[-1], "o", color=line.colour, markersize=4)
        _draw_level(panel, data["errors"]["oracle"], "true parameters")
        _draw_level(panel, data["errors"]["unary"], "no transitions")
        ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if tick >= 0.7 * data["errors"]["oracle"]]
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        title = f"{_TITLES[setting]}; {data['tags']} tags, {data['length']} positions"
        name_axes(panel, "seconds of training", "test error", title)
    return figure


def _line(run: dict[str, Any], with_batch: bool) -> Line:
    label = f"{run['label']} ({run['batch']})" if with_batch else run["label"]
    return Line(run["curve"]["seconds"], run["curve"]["error"], label, *_STYLES[run["method"]])


def _draw_level(axes: "Axes", height: float, words: str) -> None:
    axes.axhline(height, color=FAINT, linewidth=1.0, linestyle=":")
    # On the right, where no curve is close.
    place = axes.get_yaxis_transform()
    axes.text(0.99, height, words, color=FAINT, fontsize=9, va="bottom", ha="right", transform=place)
