"""Which way a loss is computed; decided once, by the public function.

reference   one graph of torch operations: the definition, differentiable in every way
eager       rows in blocks, with a backward pass of its own
fused       Triton kernels
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from linearcore._checks import complaint, one_of
from linearcore._torch import is_traced, is_transformed
from linearcore.kernels._fused import fused_for

BACKENDS = ("auto", "reference", "eager", "fused")


def resolve_backend(
    backend: str, scores: Sequence[Tensor], others: Sequence[Tensor | None] = (), *, can_fuse: bool = True
) -> str:
    """ "reference", "eager" or "fused".

    "auto" takes the fastest, unless something must see the operations themselves: torch.compile, which fuses the reference
    better than any blocks; torch.func transforms; forward-mode differentiation; and gradients with respect to `others`.

    Args:
        backend: what the user chose.
        scores: inputs that every backend differentiates.
        others: inputs that only the reference differentiates.
        can_fuse: whether the loss has fused kernels at all.

    Raises:
        ValueError: if the backend is unknown, or cannot do what is wanted of it.
    """
    one_of("backend", backend, BACKENDS)
    if backend == "reference":
        return backend
    is_reference = any(map(is_differentiated, others))
    if backend == "auto":
        if is_reference or is_traced() or any(map(_has_tangent, scores)):
            return "reference"
        return "fused" if can_fuse and fused_for(*scores) else "eager"
    if is_reference:
        advice = 'use backend="reference" or "auto" to differentiate targets, weights or margins'
        raise ValueError(complaint("backend", "be able to differentiate all inputs", repr(backend), advice))
    if backend == "fused" and not (can_fuse and fused_for(*scores)):
        advice = (
            'use backend="auto"; fused kernels are for the log-odds of class indices without label smoothing, in float32 or '
            "narrower, on a CUDA device with triton, and outside torch.compile"
        )
        raise ValueError(complaint("backend", "have fused kernels for this loss and device", repr(backend), advice))
    return backend


def is_differentiated(tensor: Tensor | None) -> bool:
    """Whether a derivative with respect to `tensor` is being taken, backwards or forwards.

    Inside the transforms of torch.func a tensor does not tell, so that there the answer is always yes.
    """
    if tensor is not None and not torch.compiler.is_compiling() and is_transformed():
        return True
    return tensor is not None and (tensor.requires_grad or _has_tangent(tensor))


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None


def wanted_gradients(
    values: Tensor, inputs: Sequence[Tensor], upstream: Tensor, wanted: Sequence[bool], *, create_graph: bool = False
) -> list[Tensor | None]:
    """The gradients of those `inputs` that are `wanted`, and None for the others, for a backward pass."""
    trained = [given for given, want in zip(inputs, wanted, strict=True) if want]
    # An input may be no part of the graph: a chain of one tag has no transitions.
    gradients = iter(torch.autograd.grad(values, trained, upstream, create_graph=create_graph, materialize_grads=True))
    return [next(gradients) if want else None for want in wanted]
