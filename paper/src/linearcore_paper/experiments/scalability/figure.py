"""Figure of `scalability`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, GREEN, ORANGE, PURPLE, RED, SKY, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES = {
    "ssvm": (RED, "-"),
    "ssvm-dense": (ORANGE, "--"),
    "crf": (PURPLE, "-"),
    "all": (GREEN, "-"),
    "gradient": (FAINT, ":"),
    "sampled-dense": (SKY, "--"),
    "sampled": (BLUE, "-"),
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws milliseconds per step against the number of tags, one panel per batch size; the paper's range is shaded."""
    sizes = data["sizes"]
    tags = [size["tags"] for size in sizes]
    figure, axes = panels(len(sizes[0]["batches"]), 3.4)
    for index, panel in enumerate(axes):
        rows = [size["batches"][index] for size in sizes]
        medians = {key: [1e3 * row["times"][key]["median"] for row in rows] for key in _STYLES}
        # The gradient alone may start below the axis range. Leave room at the top for text.
        times = [value for key, values in medians.items() if key != "gradient" for value in values]
        panel.set(xscale="log", yscale="log", xlim=(tags[0], tags[-1]), ylim=(0.7 * min(times), 2.5 * max(times)))
        panel.axvspan(tags[0], min(tags[-1], data["paper_tags"]), color="#eef3f7", zorder=0)
        words = f"paper: up to {data['paper_tags']} tags"
        panel.text(0.015, 0.97, words, color=FAINT, fontsize=9, va="top", transform=panel.transAxes)
        for key, (colour, _) in _STYLES.items():
            low, high = ([1e3 * row["times"][key]["quartiles"][end] for row in rows] for end in (0, 1))
            panel.fill_between(tags, low, high, color=colour, alpha=0.15, linewidth=0)
        # A line outside the range gets no label.
        styles = {key: style for key, style in _STYLES.items() if medians[key][-1] >= panel.get_ylim()[0]}
        draw_lines(panel, [Line(tags, medians[key], data["labels"][key], *style) for key, style in styles.items()])
        panel.set_xticks(tags, [str(count) for count in tags])
        panel.minorticks_off()
        chains = rows[0]["batch"]
        title = f"One training step, {chains} {'sequence' if chains == 1 else 'sequences'} of {data['length']} positions"
        name_axes(panel, "number of tags, |Y|", "milliseconds, median and quartiles", title)
    return figure
