"""The demo's picture: step time against the number of tags, and accuracy against the share of wrong labels."""

from typing import TYPE_CHECKING

import numpy as np

from linearcore_paper.demo._compare import compare
from linearcore_paper.demo._run import DemoResult
from linearcore_paper.drawing import BLUE, FAINT, GREEN, ORANGE, PURPLE, Line, label_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Ours in blue and green, baselines in grey and warm colours.
COLOURS = {
    "pytorch-crf": ORANGE,
    "ChainCRF": GREEN,
    "LinearCoreChain": BLUE,
    "token cross-entropy": FAINT,
    "cross-entropy": FAINT,
    "GCE": ORANGE,
    "LinearCoreLoss": BLUE,
    "wide core, NormedScores": GREEN,
    "RobustLinearCoreLoss": PURPLE,
}


def draw(result: DemoResult) -> "Figure":
    """Two panels side by side. Their titles state what was measured, whichever method is best."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_steps(left, result)
    _draw_accuracy(right, result)
    for axes in (left, right):
        axes.set_axisbelow(True)
        axes.tick_params(length=0)
    return figure


def step_title(result: DemoResult) -> str:
    """Compares our chain with pytorch-crf at the largest number of tags."""
    ratio = result.medians("pytorch-crf")[-1] / result.medians("LinearCoreChain")[-1]
    words = f"{ratio:,.0f} times faster" if ratio >= 1 else f"{1 / ratio:,.0f} times slower"
    return f"With {result.settings.tags[-1]:,} tags, a LinearCoreChain step\nis {words} than pytorch-crf's"


def accuracy_title(result: DemoResult) -> str:
    """Names the best loss at the highest rate, and those that do not differ from it significantly."""
    names = list(result.accuracy)
    comparison = compare(np.stack(list(result.accuracy.values()))[:, -1])
    best = [names[index] for index in (comparison.best, *comparison.tied)]
    more = f" and {len(best) - 2} more" if len(best) > 2 else ""
    return f"Best with {100 * result.settings.noise_rates[-1]:g} % wrong labels:\n{' and '.join(best[:2])}{more}"


def _draw_steps(axes: "Axes", result: DemoResult) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    tags = result.settings.tags
    axes.set(xscale="log", yscale="log", xlabel="number of tags", ylabel="CPU time of a training step")
    axes.set_xticks(tags, [f"{size:,}" for size in tags])
    axes.yaxis.set_major_locator(LogLocator(numticks=10))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    _draw_lines(axes, [Line(tags, result.medians(name), name, COLOURS[name]) for name in result.steps])
    axes.set_title(step_title(result), fontweight="bold")


def _draw_accuracy(axes: "Axes", result: DemoResult) -> None:
    percent = [100 * rate for rate in result.settings.noise_rates]
    axes.set(xlabel="wrong training labels (%)", ylabel="accuracy on clean test digits (%)")
    axes.set_xticks(percent, [f"{rate:g}" for rate in percent])
    means = {name: (100 * accuracy.mean(1)).tolist() for name, accuracy in result.accuracy.items()}
    _draw_lines(axes, [Line(percent, mean, name, COLOURS[name]) for name, mean in means.items()])
    axes.set_title(accuracy_title(result), fontweight="bold")


def _draw_lines(axes: "Axes", lines: list[Line]) -> None:
    for line in lines:
        axes.plot(line.x, line.y, color=line.colour, linewidth=2.2, marker="o", markersize=4.5, clip_on=False)
    # The limits are final before the labels are placed.
    axes.set_xlim(axes.get_xlim()[0], lines[0].x[-1])
    axes.set_ylim(axes.get_ylim())
    label_ends(axes, lines)
