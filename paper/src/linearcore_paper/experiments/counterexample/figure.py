"""Figure of `counterexample`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import (
    BLUE,
    FAINT,
    GREEN,
    PURPLE,
    RED,
    Line,
    draw_lines,
    label_ends,
    name_axes,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMS = {
    "centered": ("centered (ours)", BLUE),
    "pairwise": ("pairwise (paper)", RED),
    "logodds": ("logodds (ours)", PURPLE),
}
_DASHES = {("logistic", 1): "-", ("logistic", 2): "--", ("exponential", 1): "-.", ("exponential", 2): ":"}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the ratios against δ: three classes in the top panel, conditions of the centered bound in the bottom one."""
    figure, (above, below) = panels(2, 3.4)
    _draw_forms(above, data)
    _draw_centered(below, data)
    for axes in (above, below):
        axes.axhline(1.0, color=FAINT, linewidth=1.2, linestyle=":")
        axes.text(0.0021, 0.93, "a linear bound keeps ratios above this", color=FAINT, fontsize=9, va="top")
    return figure


def _set_up(axes: "Axes", title: str) -> None:
    axes.set(xscale="log", yscale="log", xlim=(0.002, 0.1), ylim=(2.5e-3, 4))
    name_axes(axes, "δ", "surrogate / target regret", title)


def _draw_forms(axes: "Axes", data: dict[str, Any]) -> None:
    """Draws one line per form (colour) and surrogate (dashes)."""
    _set_up(axes, "p = (0.4 + δ, 0.4 − δ, 0.2), predicting class 2")
    rows = [row for row in data["rows"] if row["classes"] == 3 and row["tau"] == 1]
    for (base, sides), dashes in _DASHES.items():
        axes.plot([], [], dashes, color=FAINT, label=f"{base}, {sides}-sided")
    for row in rows:
        if row["form"] in _FORMS:
            axes.plot(data["deltas"], row["ratios"], _DASHES[row["base"], row["sides"]], color=_FORMS[row["form"]][1])
    axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=FAINT, handlelength=2.6, labelspacing=0.3)
    # One label for each form, at the end of its first curve.
    first = {form: next(row for row in rows if row["form"] == form) for form in _FORMS}
    label_ends(
        axes, [Line(data["deltas"], first[form]["ratios"], label, colour) for form, (label, colour) in _FORMS.items()]
    )


def _draw_centered(axes: "Axes", data: dict[str, Any]) -> None:
    _set_up(axes, "Four outputs: the centered bound needs one side and complete scores")
    four = {row["sides"]: row["ratios"] for row in data["rows"] if row["classes"] == 4}
    lines = [
        Line(data["deltas"], four[1], "centered, one-sided", BLUE),
        Line(data["deltas"], four[2], "two-sided: no bound", BLUE, "--"),
        Line(data["deltas"], data["unary_scores"]["ratios"], "unary scores: no bound", GREEN),
    ]
    draw_lines(axes, lines)
