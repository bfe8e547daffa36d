"""The demo's picture: accuracy against the share of wrong labels, one line for each loss."""

from pathlib import Path

import numpy as np

from linearcore_paper.demo._run import DemoResult

# Okabe and Ito's palette, told apart by readers with any colour vision, a grey and a brown; markers and dashes say it in
# print, too.
_STYLES = (
    ("#000000", "o", "-"),
    ("#E69F00", "s", "--"),
    ("#CC79A7", "P", "--"),
    ("#7F7F7F", "*", ":"),
    ("#56B4E9", "^", "-."),
    ("#0072B2", "X", "-."),
    ("#009E73", "v", ":"),
    ("#D55E00", "D", "-"),
    ("#8C564B", "h", "-"),
)

#: A loss that falls this far behind the best one at some rate is told in the legend and not drawn, or the picture would
#: show nothing but the distance to it.
_FAR = 0.15


def save_figure(result: DemoResult, folder: Path) -> tuple[Path, Path]:
    """Draws the result and saves it as `demo.png` and `demo.svg`.

    Args:
        result: what was measured.
        folder: an existing folder.

    Returns:
        The two paths.

    Raises:
        OSError: if they cannot be written.
    """
    # `Figure` and not pyplot: no window system is asked for and no global figure is left behind.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    percent = 100 * np.array(result.settings.rates)
    # Side by side and not on top of each other, or the error bars cannot be read.
    gap = 0.012 * max(float(np.ptp(percent)), 10.0)
    middle = (len(result.accuracy) - 1) / 2
    far = far_behind(result)
    for index, (name, accuracy) in enumerate(result.accuracy.items()):
        colour, marker, dashes = _STYLES[index % len(_STYLES)]
        mean = 100 * accuracy.mean(1)
        told = f"{name}: {', '.join(f'{value:.0f}' for value in mean)}, not drawn"
        axes.errorbar(
            percent + (index - middle) * gap,
            np.full_like(mean, np.nan) if name in far else mean,
            yerr=100 * result.spread(name) if result.settings.seeds > 1 else None,
            label=told if name in far else name,
            color=colour,
            marker=marker,
            linestyle=dashes,
            linewidth=1.6,
            markersize=6,
            capsize=3,
        )
    axes.set_xticks(percent, [f"{rate:g}" for rate in percent])
    axes.set_xlabel("wrong labels in the training part (%)")
    axes.set_ylabel("accuracy on clean test digits (%)")
    axes.set_title(_title(result), loc="left", fontsize=11)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
    png, svg = folder / "demo.png", folder / "demo.svg"
    # Fixed ids and no date: the same numbers give the same file.
    with rc_context({"svg.hashsalt": "linearcore"}):
        figure.savefig(png, dpi=160)
        figure.savefig(svg, metadata={"Date": None})
    return png, svg


def far_behind(result: DemoResult) -> set[str]:
    """The losses that are not drawn: at one rate or more, far below the best mean there."""
    means = {name: accuracy.mean(1) for name, accuracy in result.accuracy.items()}
    best = np.max(list(means.values()), axis=0)
    return {name for name, mean in means.items() if (mean < best - _FAR).any()}


def _title(result: DemoResult) -> str:
    seeds = result.settings.seeds
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    return f"The same network on digits, {len(result.accuracy)} losses; {spread}"
