"""The demo: one small network, several losses, digits whose training labels are partly wrong."""

from linearcore_paper.demo._figure import save_figure
from linearcore_paper.demo._run import DemoResult, DemoSettings, run
from linearcore_paper.demo._table import legend, reading, table

__all__ = ["DemoResult", "DemoSettings", "legend", "reading", "run", "save_figure", "table"]
