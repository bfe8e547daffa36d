"""The figure of `which_loss.py`: average ranks of the losses for each kind of noise, with the critical difference."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from _loss_trials import LOSSES
from linearcore_paper.drawing import BLUE, FAINT, INK, name_axes, panels, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Shown noises by panel.
SHOWN = ("clean", "symmetric 40 %", "pair flip 40 %")
#: Fewest data sets of a panel; an incomplete record can have fewer.
FEWEST_SETS = 4


def draw_ranks(data: dict[str, Any]) -> "Figure":
    """Draws a panel for each noise: a point for each loss, and a band from the best rank to the critical difference."""
    groups = [group for noise in SHOWN for group in data["groups"] if shows(group, noise)]
    mean = {loss: sum(group["losses"][loss]["rank"] for group in groups) for loss in groups[0]["losses"]}
    order = sorted(mean, key=lambda loss: -mean[loss])
    figure, axes = panels(1, 3.3, len(groups))
    for place, (axis, group) in enumerate(zip(axes, groups, strict=True)):
        ranks = [group["losses"][loss]["rank"] for loss in order]
        best = min(ranks)
        axis.axvspan(best, best + group["critical_difference"], color="#e3ecf2", zorder=0)
        for height, (loss, rank) in enumerate(zip(order, ranks, strict=True)):
            axis.plot(rank, height, "o", color=BLUE if LOSSES[loss].is_ours else FAINT, markersize=6)
        axis.set(xlim=(0.5, len(order) + 0.5), xticks=range(1, len(order) + 1, 3), yticks=range(len(order)))
        axis.set_yticklabels([LOSSES[loss].title for loss in order] if place == 0 else [])
        for label, loss in zip(axis.get_yticklabels(), order, strict=False):
            label.set_color(BLUE if LOSSES[loss].is_ours else INK)
        name_axes(axis, f"average rank\n(1 is best; {len(group['sets'])} sets)", "", group["noise"])
    return figure


def shows(group: dict[str, Any], noise: str) -> bool:
    """Whether a comparison is a panel: Adam, three or more classes, this noise."""
    return len(group["sets"]) >= FEWEST_SETS and (group["optimizer"], group["group"], group["noise"]) == (
        "adam",
        "many",
        noise,
    )


def save_ranks(summary: dict[str, Any], folder: Path) -> None:
    """Saves which-loss.svg and which-loss.png."""
    save_figure("which-loss", draw_ranks, summary, folder)
