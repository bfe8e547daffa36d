"""Figure of `optimization-rates`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import BLUE, FAINT, GREEN, RAMP, RED, Line, draw_lines, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"hinge": GREEN, "logistic": RED, "lc-0.25": RAMP[0], "lc-1": RAMP[2], "lc-4": RAMP[4]}
#: Losses whose bounds are drawn.
_BOUNDED = ("hinge", "logistic", "lc-1")


def draw(data: dict[str, Any]) -> "Figure":
    """Draws the rates on ties, and the 0-1 excess against steps and samples for both laws of noise."""
    laws = list(data["laws"])
    figure, axes = panels(1 + 2 * len(laws), 2.8)
    _draw_rates(axes[0], data)
    for place, law in enumerate(laws):
        rows = [row for row in data["end_to_end"] if row["law"] == law]
        _draw_end(axes[1 + place], rows, "steps", f"0-1 risk, {data['laws'][law]}: no loss stays ahead; dashed: bounds")
        _draw_end(
            axes[1 + len(laws) + place], rows, "samples", f"0-1 risk, {data['laws'][law]}: the same slope for all losses"
        )
    return figure


def _draw_rates(axes: "Axes", data: dict[str, Any]) -> None:
    by_key = {row["key"]: row for row in data["rates"]}
    core, logistic = by_key["lc-logistic-1"], by_key["logistic"]
    curves = (
        (data["hinge"]["curve"], f"hinge: slope −{data['hinge']['ties']:.2f}", GREEN, "-"),
        (core["gradient"]["curve"], f"linear core: slope −{core['gradient']['ties']:.2f}", BLUE, "-"),
        (core["nesterov"]["curve"], f"with momentum: −{core['nesterov']['ties']:.2f}", BLUE, "--"),
        (logistic["gradient"]["curve"], "logistic loss", RED, "-"),
    )
    floor = 1e-9
    axes.set(xscale="log", yscale="log", xlim=(1, core["gradient"]["curve"]["step"][-1]), ylim=(floor, 0.3))
    draw_lines(
        axes, [Line(c["step"], [max(y, floor / 10) for y in c["excess"]], label, *look) for c, label, *look in curves]
    )
    name_axes(axes, "steps T", "excess surrogate risk", "Near ties: slope −½ hinge, −1 linear core; logistic is faster")


def _draw_end(axes: "Axes", rows: list[dict[str, Any]], axis: str, title: str) -> None:
    x = rows[0][axis]["step" if axis == "steps" else "samples"]
    axes.set(xscale="log", yscale="log", xlim=(x[0], x[-1]), ylim=(1e-3, 1.2))
    for row in rows:
        if row["loss"] in _BOUNDED:
            axes.plot(x, row[axis]["bound"], "--", color=_COLOURS[row["loss"]], linewidth=1.1)
    lines = [Line(x, [max(y, 1e-4) for y in row[axis]["excess"]], row["label"], _COLOURS[row["loss"]]) for row in rows]
    draw_lines(axes, lines)
    if axis == "steps":
        axes.axhline(0.01, color=FAINT, linewidth=1.0, linestyle=":")
    name_axes(axes, "gradient steps" if axis == "steps" else "samples", "0-1 excess risk", title)
