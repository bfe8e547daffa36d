"""Structures: what an output is."""

from linearcore.structures._sequences import COSTS, FAMILIES, Sequences

__all__ = ["COSTS", "FAMILIES", "Sequences"]
