"""Figure of `surrogates`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import COLOURS, FAINT, legend, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)), "-", "--")
_TITLES = {
    "standard": "Standard surrogates",
    "sides-1": "Linear-core surrogates, one-sided, τ = 1",
    "sides-2": "Linear-core surrogates, two-sided, τ = 1",
}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws loss against margin for standard surrogates, and for one- and two-sided linear-core surrogates."""
    figure, axes = panels(3, 3.0)
    for panel, (group, title) in zip(axes, _TITLES.items(), strict=True):
        panel.set(xlim=(-2.5, 3.5), ylim=(-0.15, 6.5))
        panel.plot([-2.5, 0, 0, 3.5], [1, 1, 0, 0], color=FAINT, linewidth=1.0, label="0-1 loss")
        for index, curve in enumerate(item for item in data["curves"] if item["panel"] == group):
            # The rest of the label is in the title.
            label = curve["label"] if group == "standard" else curve["label"].removeprefix("LC ").split(", ")[0]
            style = {"color": COLOURS[index % len(COLOURS)], "linestyle": _DASHES[index % len(_DASHES)]}
            panel.plot(curve["margin"], curve["value"], label=label, **style)
        legend(panel, "upper right")
        name_axes(panel, "margin", "loss", title)
    return figure
