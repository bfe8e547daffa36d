"""Every use of torch that its documentation does not promise, each with a fallback for a torch without it."""

import sys

import numpy as np
import torch
from torch import Tensor, nn


def is_transformed() -> bool:
    """Whether a transform of torch.func (vmap, grad, jvp …) is active. A torch that cannot tell counts as "yes".

    Callers take their reference path then, which every transform can look into.
    """
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return True if active is None else bool(active())


def _is_recorded(tensor: Tensor) -> bool:
    """Whether `tensor` may stand for numbers that are not known yet: fake tensors, tracing, and transforms."""
    if type(tensor) not in (Tensor, nn.Parameter) or torch.compiler.is_compiling():
        return True
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if modes is not None and active is not None:
        return bool(modes() or active())
    try:  # A torch that cannot tell: such tensors refuse to be read.
        tensor.reshape(-1)[:1].tolist()
    except RuntimeError:
        return True
    return False


def is_traced() -> bool:
    """Whether operations are recorded or transformed, so that Python must not depend on the numbers in a tensor."""
    return torch.compiler.is_compiling() or is_transformed()


def can_read(tensor: Tensor) -> bool:
    """Whether Python may look at the numbers in `tensor` now, waiting for the device if need be."""
    if tensor.device.type == "meta" or _is_recorded(tensor):
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def is_on_host(tensor: Tensor) -> bool:
    """Whether Python may look at the numbers in `tensor` now without waiting."""
    return tensor.device.type == "cpu" and not _is_recorded(tensor)


def packed_linear(matrix: Tensor, rows: int) -> Tensor | None:
    """`matrix` (K, N) in oneDNN's own layout for products with `rows` rows, or None where torch cannot pack it."""
    ops = torch.ops.mkldnn
    is_there = hasattr(ops, "_reorder_linear_weight") and hasattr(ops, "_linear_pointwise")
    if not (is_there and torch.backends.mkldnn.is_available()):
        return None
    if matrix.device.type != "cpu" or matrix.dtype != torch.float32 or matrix.numel() == 0:
        return None
    packed: Tensor = ops._reorder_linear_weight(matrix.t().contiguous(), rows)
    return packed


def linear(x: Tensor, packed: Tensor) -> Tensor:
    """x @ matrix, for what `packed_linear` made of the matrix."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return product


def gamma_draws(concentration: Tensor, generator: torch.Generator) -> Tensor:
    """Draws from Gamma(concentration, 1). torch.distributions.Gamma takes no generator."""
    draw = getattr(torch, "_standard_gamma", None)
    if draw is not None:
        drawn: Tensor = draw(concentration, generator=generator)
        return drawn
    seed = int(torch.randint(2**31, (), generator=generator))
    return torch.from_numpy(np.random.default_rng(seed).standard_gamma(concentration.numpy())).to(concentration)


def is_compiler_error(error: Exception) -> bool:
    """Whether torch.compile raised `error`. Looks the class up instead of importing it, which would load the compiler."""
    base = getattr(sys.modules.get("torch._dynamo.exc"), "TorchDynamoException", None)
    return base is not None and isinstance(error, base)
