"""Figure of `gradient-histogram`."""

from typing import TYPE_CHECKING, Any

from linearcore.reproduce.figures._style import BLUE, RED, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Shares of right and of wrong labels in each bin, a panel for each loss; on a log scale, since peaks are high."""
    bins = data["bins"]
    edges = [place / bins for place in range(bins + 1)]
    figure, axes = panels(len(data["runs"]), 2.5)
    for panel, (key, run) in zip(axes, data["runs"].items(), strict=True):
        title = f"{data['source']}: {data['labels'][key]}, after epoch {data['epoch']}"
        if "failed" in run:
            name_axes(panel, "", "", f"{title}: {run['failed']}")
            continue
        for name, colour in (("right", BLUE), ("wrong", RED)):
            counts = run[name]["counts"]
            shares = [100 * count / max(1, sum(counts)) for count in counts]
            panel.stairs(shares, edges, color=colour, label=f"{name} labels", linewidth=1.6)
        panel.set(yscale="log", xlim=(0, 1), ylim=(0.01, 100))
        name_axes(panel, "size of the gradient at the given label", "% of labels", title)
        legend(panel, "beside")
    return figure
