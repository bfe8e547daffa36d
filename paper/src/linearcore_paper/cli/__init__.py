"""The commands that linearcore-paper adds to `linearcore`: `demo` and `reproduce`."""

from linearcore_paper.cli._demo import demo
from linearcore_paper.cli._reproduce import reproduce

__all__ = ["demo", "reproduce"]
