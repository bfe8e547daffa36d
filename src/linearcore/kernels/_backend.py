"""Which way a loss is computed: `plain` (one graph of torch operations) or `blocked` (rows in blocks, own backward)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from linearcore._checks import complaint, one_of
from linearcore._torch import is_traced, is_transformed

BACKENDS = ("auto", "plain", "blocked")


def choose_backend(backend: str, scores: Tensor, *others: Tensor | None) -> str:
    """The backend to use: "auto" takes `blocked` unless something must see the operations themselves.

    torch.compile fuses the plain twin better than any blocks; torch.func transforms and forward-mode differentiation need
    to look inside; so do gradients with respect to anything but the scores (`others`), which `blocked` refuses.
    """
    one_of("backend", backend, BACKENDS)
    if backend == "plain":
        return backend
    if backend == "blocked":
        if any(map(is_differentiated, others)):
            advice = 'use backend="plain" or "auto" to differentiate targets, weights or margins'
            raise ValueError(complaint("backend", "be able to differentiate all inputs", repr(backend), advice))
        return backend
    if is_traced():
        return "plain"
    return "plain" if _has_tangent(scores) or any(map(is_differentiated, others)) else "blocked"


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
    asked = [given for given, want in zip(inputs, wanted, strict=True) if want]
    # An input may be no part of the graph: a chain of one tag has no transitions.
    found = iter(torch.autograd.grad(values, asked, upstream, create_graph=create_graph, materialize_grads=True))
    return [next(found) if want else None for want in wanted]
