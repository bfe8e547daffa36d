"""Optimisers that leave alone what a sparse gradient does not touch."""

from linearcore.optim._sparse_adamw import SparseAdamW

__all__ = ["SparseAdamW"]
