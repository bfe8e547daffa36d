"""Loads the shared library of compiled kernels on first use."""

import ctypes
import warnings
from collections.abc import Callable
from functools import cache

from linearcore._torch import openmp_parallel


@cache
def library() -> ctypes.CDLL | None:
    """Returns the library, or None after a warning if the package was built without a C compiler."""
    # Not with the package: Python warns if a module that it runs with `-m`, as users do with this one, is imported already.
    from linearcore.kernels.compiled.build import LIBRARY, source_hash

    try:
        loaded = ctypes.CDLL(str(LIBRARY))
    except OSError:
        _warn("linearcore was installed without its compiled CPU kernels")
        return None
    loaded.lc_source_hash.restype = ctypes.c_int64
    if loaded.lc_source_hash() != source_hash():
        _warn("the compiled CPU kernels are those of another version of linearcore")
        return None
    parallel = openmp_parallel()
    if parallel is not None:
        loaded.lc_set_parallel(parallel)
    return loaded


def _warn(problem: str) -> None:
    advice = "install a C compiler (gcc or clang), then run `python -m linearcore.kernels.compiled.build`"
    message = f"{problem}: losses of small batches and chains take 3 to 10 times as long; {advice}"
    warnings.warn(message, RuntimeWarning, stacklevel=3)


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
