"""Inputs that are the same on every machine, and exact in float32."""

from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

DTYPES = {"float64": torch.float64, "float32": torch.float32}


def fixed(seed: int, *shape: int, dtype: torch.dtype = torch.float64, low: float = -2.0, high: float = 2.0) -> Tensor:
    """Numbers in [low, high], multiples of 1/1024. NumPy promises that the stream of `RandomState` never changes."""
    return torch.tensor(_drawn(seed, round(low * 1024), round(high * 1024) + 1, shape) / 1024, dtype=dtype)


def whole(seed: int, high: int, *shape: int) -> Tensor:
    """Integers in [0, high)."""
    return torch.tensor(_drawn(seed, 0, high, shape))


def simplex(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Probabilities along the last dimension, multiples of 1/1024 that add up to 1 exactly."""
    cuts = _drawn(seed, 0, 1025, (*shape[:-1], shape[-1] - 1))
    ends = [np.zeros((*shape[:-1], 1)), np.sort(cuts, -1), np.full((*shape[:-1], 1), 1024)]
    return torch.tensor(np.diff(np.concatenate(ends, -1), axis=-1) / 1024, dtype=dtype)


def generator(seed: int) -> torch.Generator:
    """A generator for one call."""
    return torch.Generator().manual_seed(seed)


@cache
def _drawn(seed: int, low: int, high: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.asarray(np.random.RandomState(seed).randint(low, high, shape, dtype=np.int64))
