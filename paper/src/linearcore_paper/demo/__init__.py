"""The demo: the time of a training step against the number of tags, and accuracy against the share of wrong labels."""

from linearcore_paper.demo._figure import draw
from linearcore_paper.demo._run import DemoResult, DemoSettings, run
from linearcore_paper.demo._table import print_result

__all__ = ["DemoResult", "DemoSettings", "draw", "print_result", "run"]
