"""Figures: for each experiment a file whose `draw(data)` makes a matplotlib figure from the record's data alone."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(name: str, data: dict[str, Any]) -> "Figure":
    """The figure of an experiment.

    Args:
        name: of the experiment.
        data: `results.data` of its record.
    """
    figure: Figure = import_module(f"{__name__}.{name.replace('-', '_')}").draw(data)
    return figure


def save_figure(name: str, data: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """Draws a figure and saves it as NAME.svg and NAME.png in `folder`; the same data give the same files.

    Raises:
        OSError: if they cannot be written.
    """
    from matplotlib import rc_context

    from linearcore.reproduce.figures._style import STYLE

    svg, png = folder / f"{name}.svg", folder / f"{name}.png"
    # Fixed ids and no date, so that equal data give equal files.
    with rc_context(dict(STYLE)):
        figure = draw(name, data)
        figure.savefig(svg, metadata={"Date": None})
        # Where everything stands is known now; finding it out a second time is a good part of the drawing.
        figure.set_layout_engine("none")
        figure.savefig(png, dpi=160, metadata={"Software": None})
    return svg, png
