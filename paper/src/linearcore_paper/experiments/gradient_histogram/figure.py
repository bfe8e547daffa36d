"""Figure of `gradient-histogram`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, RED, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Shares of right and of wrong labels in each bin, on a log scale, since peaks are high.

    A panel for each loss and reading: against all competitors, as the network gets it, and against the strongest alone.
    """
    bins = data["bins"]
    edges = [place / bins for place in range(bins + 1)]
    shown = [(reading, key) for reading in data["readings"] for key in data["runs"]]
    figure, axes = panels(len(shown), 2.2)
    for panel, (reading, key) in zip(axes, shown, strict=True):
        title, run = f"{data['labels'][key]}, {reading}", data["runs"][key]
        if "failed" in run:
            name_axes(panel, "", "", f"{title}: {run['failed']}")
            continue
        for name, colour in (("right", BLUE), ("wrong", RED)):
            counts = run["readings"][reading][name]["counts"]
            shares = [100 * count / max(1, sum(counts)) for count in counts]
            panel.stairs(shares, edges, color=colour, label=f"{name} labels", linewidth=1.6)
        panel.set(yscale="log", xlim=(0, 1), ylim=(0.01, 100))
        name_axes(panel, "", "% of labels", title)
        legend(panel, "beside")
    axes[-1].set_xlabel(f"size of the gradient at the given label ({data['source']}, after epoch {data['epoch']})")
    return figure
