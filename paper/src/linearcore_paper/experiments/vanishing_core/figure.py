"""Figure of `vanishing-core`."""

from typing import TYPE_CHECKING, Any

from linearcore_paper.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    OLIVE,
    ORANGE,
    PURPLE,
    RAMP,
    RED,
    Line,
    draw_lines,
    draw_regrets,
    draw_slopes,
    name_axes,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BASES = {"logistic": BLUE, "exponential": PURPLE, "truncated_quadratic": ORANGE, "quartic": GREEN, "gamma": OLIVE}
_MARKERS = {"logistic": "o", "exponential": "s", "truncated_quadratic": "^"}


def draw(data: dict[str, Any]) -> "Figure":
    """Draws regrets as in the paper, their local slopes, measured against predicted crossovers, and limits of all bases."""
    figure, (regrets, slopes, crossovers, limits) = panels(4, 3.0)
    _draw_regrets_by_tau(regrets, data)
    _draw_slopes_by_tau(slopes, data)
    _draw_crossovers(crossovers, data["crossovers"])
    _draw_limits(limits, data)
    return figure


def _draw_regrets_by_tau(axes: "Axes", data: dict[str, Any]) -> None:
    """Draws the paper's Figure 10: ΔR against ΔL, two-sided."""
    curves = [curve for curve in data["curves"] if curve["sides"] == 2]
    colours = dict(zip(sorted(curve["tau"] for curve in curves), RAMP, strict=True))
    logistic = data["logistic"]
    # First and wide, to stand out from τ = 1e-5, which is twice the logistic loss but for its tiny core.
    red = Line(logistic["surrogate_regret"], logistic["target_regret"], "logistic loss", RED)
    cores = [Line(c["surrogate_regret"], c["target_regret"], f"τ = {c['tau']:g}", colours[c["tau"]]) for c in curves]
    title = "Figure 10: ΔR against ΔL as τ → 0, two-sided logistic LC"
    draw_regrets(axes, [red, *cores], title, wide=3.0, steep_from=1e-3)


def _draw_slopes_by_tau(axes: "Axes", data: dict[str, Any]) -> None:
    curves = [curve for curve in data["curves"] if curve["sides"] == 1]
    colours = dict(zip(sorted(curve["tau"] for curve in curves), RAMP, strict=True))
    lines = [Line(c["delta"], c["local_slope"], f"τ = {c['tau']:g} (fit {c['fit']:.3f})", colours[c["tau"]]) for c in curves]
    logistic = data["logistic"]
    red = Line(logistic["delta"], logistic["local_slope"], f"logistic loss (fit {logistic['fit']:.3f})", RED, "--")
    draw_slopes(axes, [*lines, red], "Local slope, one-sided logistic LC; dots: predicted crossover")
    for row in data["crossovers"]:
        if row["base"] == "logistic" and row["sides"] == 1 and row["predicted"] >= 1e-4:
            axes.plot(row["predicted"], 2 / 3, "o", color=INK, markersize=5)


def _draw_crossovers(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    axes.set(xscale="log", xlim=(1e-5, 1e-1), ylim=(0.75, 1.7))
    axes.axhspan(0.8, 1.2, color="#eef3f7", zorder=0)
    axes.text(1.15e-5, 1.185, "within 20 %", color=FAINT, fontsize=9, va="top")
    lines = []
    for base in _MARKERS:
        for sides in (1, 2):
            matching = sorted(
                (row for row in rows if row["base"] == base and row["sides"] == sides), key=lambda row: row["tau"]
            )
            taus, ratios = [row["tau"] for row in matching], [row["measured"] / row["predicted"] for row in matching]
            axes.plot(taus, ratios, _MARKERS[base], color=_BASES[base], markersize=4)
            label = f"{base.replace('_', ' ')}, {sides}-sided"
            lines.append(Line(taus, ratios, label, _BASES[base], "-" if sides == 1 else "--"))
    draw_lines(axes, lines)
    name_axes(
        axes, "half-width of the core, τ", "measured δ / predicted δ", "δ at which the slope is ⅔: measured / predicted"
    )


def _draw_limits(axes: "Axes", data: dict[str, Any]) -> None:
    rows = [row for row in data["limits"] if row["sides"] == 1]
    lines = [
        Line(
            row["curve"]["delta"],
            row["curve"]["local_slope"],
            f"{row['base'].replace('_', ' ')} (limit {row['limit']:.2f})",
            _BASES[row["base"]],
            "-" if row["is_c2"] else "--",
        )
        for row in rows
    ]
    draw_slopes(axes, lines, "Slope without a core: ½, or ¾ for the C2 bases (solid)")
    axes.axhline(0.75, color=FAINT, linewidth=1.0, linestyle=":")
