"""Which way a loss is computed: `plain` (one graph of torch operations) or `blocked` (rows in blocks, own backward)."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from linearcore._checks import complaint, one_of

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
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return "plain"
    return "plain" if _has_tangent(scores) or any(map(is_differentiated, others)) else "blocked"


def is_differentiated(tensor: Tensor | None) -> bool:
    """Whether a derivative with respect to `tensor` is being taken, backwards or forwards.

    Inside the transforms of torch.func a tensor does not tell, so that there the answer is always yes.
    """
    if tensor is not None and not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return True
    return tensor is not None and (tensor.requires_grad or _has_tangent(tensor))


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None
