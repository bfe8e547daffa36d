"""All uses of undocumented torch functions, each with a fallback for versions of torch without it."""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


def is_transformed() -> bool:
    """Whether a torch.func transform (vmap, grad, jvp …) is active; True if this torch cannot tell.

    If True, callers use their reference implementation, which supports every transform.
    """
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return True if active is None else bool(active())


def _is_symbolic(tensor: Tensor) -> bool:
    """Whether the values of `tensor` may be unavailable: fake tensors, tracing, and transforms."""
    if type(tensor) not in (Tensor, nn.Parameter) or torch.compiler.is_compiling():
        return True
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if modes is not None and active is not None:
        return bool(modes() or active())
    try:  # Older torch: reading such a tensor raises.
        tensor.reshape(-1)[:1].tolist()
    except RuntimeError:
        return True
    return False


def is_traced() -> bool:
    """Whether operations are traced or transformed. Python must then not branch on tensor values."""
    return torch.compiler.is_compiling() or is_transformed()


def has_forward_mode() -> bool:
    """Whether a level of forward-mode differentiation is active; True if this torch cannot tell."""
    level: int = getattr(forward_ad, "_current_level", 0)
    return level >= 0


def can_read(tensor: Tensor) -> bool:
    """Whether Python can read the values of `tensor` now, with a GPU synchronisation if needed."""
    if tensor.device.type == "meta" or _is_symbolic(tensor):
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def is_on_host(tensor: Tensor) -> bool:
    """Whether Python can read the values of `tensor` now without synchronisation."""
    return tensor.device.type == "cpu" and not _is_symbolic(tensor)


def _is_jit_tracing() -> bool:
    """Whether torch.jit.trace records operations; True if this torch cannot tell."""
    active = getattr(torch._C, "_is_tracing", None)
    return True if active is None else bool(active())


def is_plain(tensor: Tensor) -> bool:
    """Whether `tensor` is `is_ordinary` and on a CPU."""
    return is_ordinary(tensor) and tensor.is_cpu


def is_ordinary(tensor: Tensor) -> bool:
    """Whether `tensor` is an ordinary, dense tensor outside tracing, transforms and forward-mode differentiation.

    Kernels may then read its memory. Takes less than a microsecond.
    """
    if torch.compiler.is_compiling() or type(tensor) not in (Tensor, nn.Parameter):  # First: it does not trace what follows.
        return False
    if tensor.layout != torch.strided or tensor.is_neg() or _is_jit_tracing() or is_transformed():
        return False
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    return modes is not None and not modes() and not has_forward_mode()


def sparse_entries(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Returns indices and values of a sparse COO tensor, in which indices may repeat; coalesced if torch has no access."""
    if not (hasattr(tensor, "_indices") and hasattr(tensor, "_values")):
        tensor = tensor.coalesce()
        return tensor.indices(), tensor.values()
    return tensor._indices(), tensor._values()


def openmp_parallel() -> ctypes.c_void_p | None:
    """Returns the address of GOMP_parallel in the OpenMP runtime that torch uses; None if it is not found."""
    for path in (Path(torch.__file__).parent / "lib").glob("libtorch_cpu.*"):
        try:
            return ctypes.cast(ctypes.CDLL(str(path)).GOMP_parallel, ctypes.c_void_p)
        except (OSError, AttributeError):
            continue
    return None


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: tuple[Tensor, ...], inputs: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Calls `carry, outputs = step(carry, inputs[j])` for all j; returns the last carry and the stacked outputs.

    In torch.export this is one operator, so the number of steps is dynamic. Otherwise, and with a torch that does not have
    the operator, it is a Python loop, and torch.export refuses a dynamic number of steps.

    Args:
        step: a function of tuples of tensors; its results must not be the tensors that it was given.
        carry: tensors whose shapes do not change.
        inputs: tensors whose first dimension is j.
    """
    operator = getattr(sys.modules.get("torch._higher_order_ops"), "scan", None)
    if operator is not None and torch.compiler.is_compiling():
        last, stacked = operator(step, carry, inputs)
        return tuple(last), tuple(stacked)
    rows = []
    for slices in zip(*inputs, strict=True):
        carry, outputs = step(carry, slices)
        rows.append(outputs)
    return carry, tuple(torch.stack(column) for column in zip(*rows, strict=True))


def packed_linear(matrix: Tensor, rows: int) -> Tensor | None:
    """Returns `matrix` (K, N) in oneDNN's packed layout for products with `rows` rows, or None if torch cannot pack it."""
    ops = torch.ops.mkldnn
    has_ops = hasattr(ops, "_reorder_linear_weight") and hasattr(ops, "_linear_pointwise")
    if not (has_ops and torch.backends.mkldnn.is_available()):
        return None
    if matrix.device.type != "cpu" or matrix.dtype != torch.float32 or matrix.numel() == 0:
        return None
    packed: Tensor = ops._reorder_linear_weight(matrix.t().contiguous(), rows)
    return packed


def linear(x: Tensor, packed: Tensor) -> Tensor:
    """Returns x @ matrix; `packed` is the result of `packed_linear(matrix, rows)`."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
    return product


def sample_gamma(concentration: Tensor, generator: torch.Generator) -> Tensor:
    """Samples from Gamma(concentration, 1). torch.distributions.Gamma does not accept a generator."""
    standard_gamma = getattr(torch, "_standard_gamma", None)
    if standard_gamma is not None:
        samples: Tensor = standard_gamma(concentration, generator=generator)
        return samples
    seed = int(torch.randint(2**31, (), generator=generator))
    return torch.from_numpy(np.random.default_rng(seed).standard_gamma(concentration.numpy())).to(concentration)


def is_compiler_error(error: Exception) -> bool:
    """Whether torch.compile raised `error`. Does not import the error class, because that would load the compiler."""
    base = getattr(sys.modules.get("torch._dynamo.exc"), "TorchDynamoException", None)
    return base is not None and isinstance(error, base)
