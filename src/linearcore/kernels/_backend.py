"""Backends of a loss. The public function chooses one.

reference   torch operations: the definition, supports all kinds of differentiation
eager       rows in blocks, with a custom backward pass
compiled    C on a CPU, not torch.compile; falls back to eager for infinite and NaN scores
fused       Triton kernels
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from linearcore._checks import complaint, one_of
from linearcore._torch import is_traced, is_transformed
from linearcore.kernels._fused import fused_kernels_for

BACKENDS = ("auto", "reference", "eager", "compiled", "fused")


def resolve_backend(
    backend: str,
    scores: Sequence[Tensor],
    others: Sequence[Tensor | None] = (),
    *,
    can_fuse: bool = True,
    can_compile: bool = False,
    can_trace: bool = False,
) -> str:
    """Returns "reference", "eager", "compiled" or "fused".

    "auto" chooses the fastest backend that works. It is the reference under torch.func transforms, in forward-mode
    differentiation, for gradients of `others`, and under torch.compile, which fuses the reference better than blocks, unless
    it can call fused kernels.

    Args:
        backend: the choice of the user.
        scores: inputs that every backend differentiates.
        others: inputs that only the reference differentiates.
        can_fuse: whether the loss has fused kernels.
        can_trace: whether a function that torch.compile is tracing can call the fused kernels.
        can_compile: whether the C kernels support the loss and the scores.

    Raises:
        ValueError: if the backend is unknown or does not support these inputs.
    """
    one_of("backend", backend, BACKENDS)
    if backend == "reference":
        return backend
    needs_reference = any(map(is_differentiated, others))
    if backend == "auto":
        if needs_reference or any(map(_has_tangent, scores)):
            return "reference"
        if is_traced():
            return "fused" if can_trace else "reference"
        if can_fuse and fused_kernels_for(*scores):
            return "fused"
        return "compiled" if can_compile else "eager"
    if needs_reference:
        advice = 'use backend="reference" or "auto" to differentiate targets, weights or margins'
        raise ValueError(complaint("backend", "be able to differentiate all inputs", repr(backend), advice))
    if backend == "compiled" and not can_compile:
        advice = (
            'use backend="auto"; compiled kernels are for built-in forms and surrogates without class margins, in '
            "float32 or float64, on a CPU, outside torch.compile and torch.func, and are built by a C compiler"
        )
        raise ValueError(complaint("backend", "have compiled kernels for this loss and these scores", repr(backend), advice))
    if backend == "fused" and not can_trace and not (can_fuse and fused_kernels_for(*scores)):
        advice = (
            'use backend="auto"; fused kernels are for class indices without label smoothing, built-in forms and '
            "surrogates, in float32 or half precision, on a CUDA device with triton"
        )
        raise ValueError(complaint("backend", "have fused kernels for this loss and device", repr(backend), advice))
    return backend


def is_differentiated(tensor: Tensor | None) -> bool:
    """Returns whether `tensor` is being differentiated, in reverse or forward mode.

    Always True inside torch.func transforms, where this is not visible.
    """
    if tensor is not None and not torch.compiler.is_compiling() and is_transformed():
        return True
    return tensor is not None and (tensor.requires_grad or _has_tangent(tensor))


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None


def compute_gradients(
    values: Tensor, inputs: Sequence[Tensor], grad_output: Tensor, needs_grad: Sequence[bool], *, create_graph: bool = False
) -> list[Tensor | None]:
    """Returns the gradients of the `inputs` with `needs_grad`, and None for the others, for a backward pass."""
    required = [tensor for tensor, is_needed in zip(inputs, needs_grad, strict=True) if is_needed]
    # An input may not be in the graph: a sequence of one tag has no transitions.
    gradients = iter(torch.autograd.grad(values, required, grad_output, create_graph=create_graph, materialize_grads=True))
    return [next(gradients) if is_needed else None for is_needed in needs_grad]
