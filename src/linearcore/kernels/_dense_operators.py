"""Operators `torch.ops.linearcore.dense_losses` and `dense_gradient`: the fused kernels of rows under torch.compile."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from linearcore._torch import is_transformed
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._loss_code import FormCode, LossCode
from linearcore.surrogates import KernelIdentity

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_HAS_TRITON = find_spec("triton") is not None


def can_trace_fused(scores: Tensor) -> bool:
    """Whether torch.compile traces now and the operators support the scores (N, C)."""
    if not torch.compiler.is_compiling() or is_transformed() or scores.dtype not in _DTYPES:
        return False
    return (scores.is_cuda or os.environ.get("TRITON_INTERPRET") == "1") and _HAS_TRITON


def traced_rows(code: LossCode, scores: Tensor, target: Tensor, margin: Tensor | None) -> Tensor:
    """Returns the losses (N,) in float32 as one operator; arguments as in `fused_rows`."""
    surrogate = list(code.surrogate[1:])
    losses: Tensor = torch.ops.linearcore.dense_losses(
        scores, target, margin, int(code.form), code.is_mean, code.surrogate.base, surrogate
    )[0]
    return losses


def _losses(
    scores: Tensor, target: Tensor, margin: Tensor | None, form: int, is_mean: bool, base: int, surrogate: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Returns the losses (N,) and the statistics (3, N) for their gradient, float32."""
    fused = fused_kernels_for(scores)
    assert fused is not None
    return fused.rows_forward(_code(form, is_mean, base, surrogate), scores, target, margin)  # type: ignore[no-any-return]


def _gradient(
    scores: Tensor, target: Tensor, margin: Tensor | None, statistics: Tensor, grad_losses: Tensor,
    form: int, is_mean: bool, base: int, surrogate: Sequence[float],
) -> Tensor:  # fmt: skip
    """Returns the gradient (N, C) in the dtype of the scores."""
    fused = fused_kernels_for(scores)
    assert fused is not None
    code = _code(form, is_mean, base, surrogate)
    return fused.rows_backward(code, scores, target, margin, statistics, grad_losses)  # type: ignore[no-any-return]


def _code(form: int, is_mean: bool, base: int, surrogate: Sequence[float]) -> LossCode:
    return LossCode(FormCode(form), is_mean, KernelIdentity(base, *surrogate))


def _fake_losses(scores: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    num_rows = scores.shape[0]
    return scores.new_empty(num_rows, dtype=torch.float32), scores.new_empty(3, num_rows, dtype=torch.float32)


def _fake_gradient(scores: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    scores, target, margin, *ctx.options = inputs
    ctx.save_for_backward(scores, target, margin, output[1])


def _backward(ctx: Any, grad_losses: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    gradient = torch.ops.linearcore.dense_gradient(*ctx.saved_tensors, grad_losses, *ctx.options)
    return gradient, None, None, None, None, None, None


# Not `torch.library.custom_op`, which takes tens of milliseconds.
_LIBRARY = torch.library.Library("linearcore", "DEF")
_INPUTS = "Tensor scores, Tensor target, Tensor? margin"
_OPTIONS = "int form, bool is_mean, int base, float[] surrogate"
_LIBRARY.define(f"dense_losses({_INPUTS}, {_OPTIONS}) -> (Tensor, Tensor)")
_LIBRARY.define(f"dense_gradient({_INPUTS}, Tensor statistics, Tensor grad_losses, {_OPTIONS}) -> Tensor")
for _name, _kernel, _fake in (("dense_losses", _losses, _fake_losses), ("dense_gradient", _gradient, _fake_gradient)):
    _LIBRARY.impl(_name, _kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"linearcore::{_name}", _fake, lib=_LIBRARY)
torch.library.register_autograd("linearcore::dense_losses", _backward, setup_context=_save, lib=_LIBRARY)
