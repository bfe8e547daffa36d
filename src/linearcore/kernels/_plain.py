"""The plain twin: the definition of every form, differentiable as often as wanted, in one piece."""

from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.kernels._form import FormKernel
from linearcore.kernels._labels import Labels


def plain_rows(kernel: FormKernel, scores: Tensor, labels: Labels) -> Tensor:
    """(N,): the losses of all rows, in float32 for half-precision scores."""
    scores = scores.to(compute_dtype(scores))
    return kernel.hard(scores, labels) if labels.is_hard else kernel.soft(scores, labels, slice(0, scores.shape[-1]))
