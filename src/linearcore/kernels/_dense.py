"""Losses of rows of scores, by whichever backend."""

from torch import Tensor

from linearcore.kernels._backend import choose_backend
from linearcore.kernels._blocked import BlockedRows
from linearcore.kernels._form import FormKernel
from linearcore.kernels._labels import Labels
from linearcore.kernels._plain import plain_rows


def dense_rows(kernel: FormKernel, scores: Tensor, labels: Labels, backend: str = "auto") -> Tensor:
    """(N,): the loss of every row of `scores` (N, C), unreduced, in float32 for half-precision scores.

    Time O(N·C) with hard labels, O(N·C²) with soft ones where the kernel says so. Memory beyond the inputs: `plain` a
    handful of N×C (N×C×C) temporaries, `blocked` one block, and the gradient in the backward pass.
    """
    chosen = choose_backend(backend, scores, labels.probability, labels.weight, labels.margin)
    if chosen == "plain":
        return plain_rows(kernel, scores, labels)
    losses: Tensor = BlockedRows.apply(scores, kernel, labels.smoothing, *labels.tensors)  # type: ignore[no-untyped-call]
    return losses
