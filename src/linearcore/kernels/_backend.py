"""Which way a loss is computed: `plain` (one graph of torch operations) or `blocked` (rows in blocks, own backward)."""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from linearcore._checks import one_of

BACKENDS = ("auto", "plain", "blocked")


def choose_backend(backend: str, scores: Tensor, *, needs_plain: bool = False) -> str:
    """The backend to use: "auto" takes `blocked` unless something must see the operations themselves.

    torch.compile fuses the plain twin better than any blocks; torch.func transforms and forward-mode differentiation need
    to look inside; so do gradients with respect to anything but the scores (`needs_plain`).
    """
    one_of("backend", backend, BACKENDS)
    if backend != "auto":
        return backend
    if needs_plain or torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():  # type: ignore[attr-defined]
        return "plain"
    return "plain" if forward_ad.unpack_dual(scores).tangent is not None else "blocked"
