"""Optimisers for sparse gradients."""

from linearcore.optim._sparse_adamw import SparseAdamW

__all__ = ["SparseAdamW"]
