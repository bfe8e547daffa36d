"""Availability of the fused kernels."""

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor


def fused_kernels_for(*tensors: Tensor) -> ModuleType | None:
    """Returns `linearcore.kernels.fused` if it supports these tensors, else None. Triton is imported on first use.

    It requires CUDA tensors in float32 or half precision, and an installed triton. With TRITON_INTERPRET=1 in the
    environment it also runs on the CPU, slowly, which the tests use.
    """
    for tensor in tensors:
        if not (tensor.is_cuda or _is_interpreted()) or tensor.dtype not in _DTYPES:
            return None
    return None if torch.compiler.is_compiling() else _module()


_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


@cache
def _module() -> ModuleType | None:
    return import_module("linearcore.kernels.fused") if find_spec("triton") is not None else None
