"""Whether there are fused kernels for a tensor, and where."""

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor


def fused_for(*tensors: Tensor) -> ModuleType | None:
    """`linearcore.kernels.fused` if it can work on these tensors, else None. Triton is imported here, on first use.

    It can where they are on a CUDA device, in float32 or narrower, and triton is installed. With TRITON_INTERPRET=1 in the
    environment it works on the CPU, slowly: that is how the tests reach it.
    """
    if not all(tensor.is_cuda or _is_interpreted() for tensor in tensors) or torch.compiler.is_compiling():
        return None
    return _module() if all(tensor.dtype in _DTYPES for tensor in tensors) else None


_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def _module() -> ModuleType | None:
    return import_module("linearcore.kernels.fused") if find_spec("triton") is not None else None
