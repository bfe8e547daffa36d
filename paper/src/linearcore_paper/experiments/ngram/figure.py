"""Figure of `ngram`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, RED, name_axes, panels
from linearcore_paper.experiments.ngram.table import case_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the score of each method with both decoders, one panel for each task and metric, where all methods were run."""
    cases = list(dict.fromkeys(case_of(row) for row in data["rows"] if row["method"] == "lc-metric"))
    figure, axes = panels(len(cases), 2.9)
    for panel, case in zip(axes, cases, strict=True):
        task, metric, steps = case
        rows = [row for row in data["rows"] if case_of(row) == case][::-1]
        for by, shift, colour, face, label in (
            ("viterbi", 0.12, BLUE, BLUE, "Viterbi"),
            ("risk", -0.12, RED, "none", "decoded for the metric"),
        ):
            panel.errorbar(
                [row[by]["mean"] for row in rows],
                [place + shift for place in range(len(rows))],
                xerr=[row[by]["half_width"] for row in rows],
                fmt="o",
                color=colour,
                markerfacecolor=face,
                markersize=5,
                linewidth=1.2,
                label=label,
            )
        panel.set_yticks(range(len(rows)), [row["label"] for row in rows])
        panel.legend(fontsize=8, loc="lower left")
        name_axes(panel, f"{data['metrics'][metric]}, %, with 95 % intervals", "", f"{data['tasks'][task]}, {steps} steps")
    return figure
