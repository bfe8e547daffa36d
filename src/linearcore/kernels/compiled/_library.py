"""Loads the shared library of compiled kernels on first use."""

import ctypes
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

from linearcore._torch import openmp_parallel


@cache
def library() -> ctypes.CDLL | None:
    """Returns the library, or None after a warning if the package was built without a C compiler."""
    path = Path(__file__).with_name("_kernels.so")
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        warnings.warn(
            "linearcore was installed without its compiled CPU kernels: losses of small batches and chains take 3 to 10 "
            "times as long; install a C compiler (gcc or clang), then run `python -m linearcore.kernels.compiled.build`",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    parallel = openmp_parallel()
    if parallel is not None:
        loaded.lc_set_parallel(parallel)
    return loaded


@cache
def entry(name: str) -> Callable[[bytes], int] | None:
    """Returns the kernel with this name, a function of its packed arguments that returns 0 for success."""
    loaded = library()
    if loaded is None:
        return None
    function = getattr(loaded, name)
    function.argtypes, function.restype = (ctypes.c_char_p,), ctypes.c_int64
    return function  # type: ignore[no-any-return]


def has_compiled_kernels() -> bool:
    """Whether the compiled CPU kernels are installed."""
    return library() is not None
