"""`SparseAdamW`: a few steps with sparse gradients, with dense ones, and with both in turn."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from linearcore.optim import SparseAdamW
from tests.snapshot.inputs import DTYPES, fixed
from tests.snapshot.record import Entry, Results

ROWS, WIDTH = 6, 3
#: The rows that each step has a gradient for, with a repetition; None is a dense gradient.
SEQUENCES: dict[str, list[list[int] | None]] = {
    "sparse": [[0, 2], [2, 5, 2], [1], [0, 1]],
    "dense": [None, None, None],
    "in turn": [[0, 2], None, [3], [0, 3], None],
}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"lr": 0.1},
    "no decay": {"lr": 0.1, "weight_decay": 0.0},
    "options": {"lr": 0.05, "betas": (0.5, 0.75), "eps": 1e-4, "weight_decay": 0.5},
}


def optimizers() -> Iterator[Entry]:
    """The parameter after every step, and the moments after the last."""
    for dtype_name, dtype in DTYPES.items():
        for setting_name, setting in SETTINGS.items():
            for name, rows in SEQUENCES.items():
                entry = f"optimizers/SparseAdamW/{setting_name}/{name}/{dtype_name}"
                yield Entry(entry, lambda s=setting, r=rows, d=dtype: _steps(s, r, d))
            yield Entry(
                f"optimizers/SparseAdamW/{setting_name}/entries of a matrix/{dtype_name}",
                lambda s=setting, d=dtype: _entries(s, d),
            )


def _steps(setting: dict[str, Any], sequence: list[list[int] | None], dtype: torch.dtype) -> Results:
    gradients = [_gradient(place, rows, dtype) for place, rows in enumerate(sequence)]
    return _run(setting, gradients, dtype)


def _gradient(place: int, rows: list[int] | None, dtype: torch.dtype) -> Tensor:
    if rows is None:
        return fixed(120 + place, ROWS, WIDTH, dtype=dtype)
    values = fixed(120 + place, len(rows), WIDTH, dtype=dtype)
    return torch.sparse_coo_tensor(torch.tensor([rows]), values, (ROWS, WIDTH), check_invariants=True)


def _entries(setting: dict[str, Any], dtype: torch.dtype) -> Results:
    """Gradients that are sparse in both dimensions."""
    places = [torch.tensor([[0, 2, 2], [1, 0, 0]]), torch.tensor([[2, 5], [0, 2]]), torch.tensor([[0], [1]])]
    gradients = [
        torch.sparse_coo_tensor(index, fixed(130 + step, index.shape[1], dtype=dtype), (ROWS, WIDTH), check_invariants=True)
        for step, index in enumerate(places)
    ]
    return _run(setting, gradients, dtype)


def _run(setting: dict[str, Any], gradients: list[Tensor], dtype: torch.dtype) -> Results:
    parameter = torch.nn.Parameter(fixed(119, ROWS, WIDTH, dtype=dtype))
    optimizer = SparseAdamW([parameter], **setting)
    after = []
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()
        after.append(parameter.detach().clone())
    state = optimizer.state[parameter]
    return {"parameter": torch.stack(after), "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
