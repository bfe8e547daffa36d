"""Figure of `gradient-histogram`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, RED, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the percentage of right and of wrong labels in each bin, on a log scale.

    There is one panel for each loss and definition of the magnitude: with all competing classes, and with the strongest one.
    """
    bins = data["bins"]
    edges = [index / bins for index in range(bins + 1)]
    pairs = [(reading, key) for reading in data["readings"] for key in data["runs"]]
    figure, axes = panels(len(pairs), 2.2)
    for panel, (reading, key) in zip(axes, pairs, strict=True):
        title, run = f"{data['labels'][key]}, {reading}", data["runs"][key]
        if "failed" in run:
            name_axes(panel, "", "", f"{title}: {run['failed']}")
            continue
        for name, colour in (("right", BLUE), ("wrong", RED)):
            counts = run["readings"][reading][name]["counts"]
            percentages = [100 * count / max(1, sum(counts)) for count in counts]
            panel.stairs(percentages, edges, color=colour, label=f"{name} labels", linewidth=1.6)
        panel.set(yscale="log", xlim=(0, 1), ylim=(0.01, 100))
        name_axes(panel, "", "% of labels", title)
        legend(panel, "beside")
    axes[-1].set_xlabel(f"gradient magnitude at the noisy label ({data['source']}, after epoch {data['epoch']})")
    return figure
