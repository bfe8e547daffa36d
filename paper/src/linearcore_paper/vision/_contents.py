"""What a loss is made of, in words that are the same in every process and differ wherever it does."""

import dataclasses
import dis
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (
    enum.Enum,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type(...),
    range,
    slice,
    np.generic,
    torch.dtype,
    torch.device,
)
#: What every module has, and `training`, which a run sets as it likes.
_OF_MODULES = frozenset(vars(nn.Module()))
#: Their code lies where Python does not see it.
_CLOSED = (torch.jit.ScriptModule, torch.jit.ScriptFunction)
#: Named without a hash of their code, from a checkout as from an installed package.
_OURS = ("linearcore", "linearcore_paper")


class UnknownError(Exception):
    """Of what kind a part is that cannot be told."""


class Teller:
    """Puts values into words: options as they are, tensors and code by a hash.

    Args:
        is_strict: raise `UnknownError` at a part that cannot be told; otherwise it is a question mark.

    Example:
        >>> tell = Teller(is_strict=True)
        >>> tell(nn.MSELoss()), tell({"weight": torch.ones(2)})
        ("MSELoss(reduction='mean')", "{'weight': tensor#fc469497}")
        >>> Teller(is_strict=False)(object())
        'object(?)'
    """

    def __init__(self, *, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._open: list[object] = []
        self._known: dict[int, tuple[object, str]] = {}

    def __call__(self, value: object) -> str:
        """The words for a value."""
        if isinstance(value, _PLAIN):
            return _on_one_line(repr(value))
        if any(value is other for other in self._open):
            return "…"  # It holds itself, as a function that calls itself does.
        if id(value) not in self._known:
            self._open.append(value)
            # The value is kept as well, or another could get its address.
            self._known[id(value)] = value, self._told(value)
            self._open.pop()
        return self._known[id(value)][1]

    def _told(self, value: Any) -> str:
        if isinstance(value, _CLOSED):
            return self._unknown(value)
        if isinstance(value, Tensor | np.ndarray):
            return self._array(value)
        if isinstance(value, functools.partial):
            return f"{self(value.func)}({', '.join([*map(self, value.args), *self._options(value.keywords)])})"
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, types.ModuleType):
            return value.__name__
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{self(key)}: {self(held)}' for key, held in value.items())}}}"
        if isinstance(value, list | tuple):
            return f"({', '.join(map(self, value))})"
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(map(self, value)))}}}"
        if callable(value) and isinstance(getattr(value, "name", None), str):
            return str(value.name)  # Whoever gives it a name answers for it.
        if isinstance(value, types.MethodType):
            return f"{self(value.__self__)}.{self(value.__func__)}"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if dataclasses.is_dataclass(value):
            return self._dataclass(value)
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | type | None):
            return value.__qualname__
        if isinstance(value, types.MethodDescriptorType | np.ufunc):
            return value.__name__
        return self._unknown(value)

    def _options(self, options: Mapping[str, object]) -> list[str]:
        return [f"{name}={self(value)}" for name, value in sorted(options.items())]

    def _array(self, value: Any) -> str:
        if isinstance(value, np.ndarray):
            held = None if value.dtype.hasobject else value.tobytes()
        elif value.layout is torch.strided and not value.is_quantized:
            held = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        else:
            held = None
        return self._unknown(value) if held is None else f"tensor#{_hash(value.dtype, tuple(value.shape), held)}"

    def _module(self, module: nn.Module) -> str:
        options: dict[str, object] = {name: value for name, value in vars(module).items() if name not in _OF_MODULES}
        options |= dict(module.named_children())
        options |= dict(module.named_buffers(recurse=False)) | dict(module.named_parameters(recurse=False))
        return f"{self(type(module))}({', '.join(self._options(options))})"

    def _dataclass(self, value: Any) -> str:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        text = _on_one_line(repr(value))
        if not is_installed(type(value).__module__) or " at 0x" in text:
            return f"{self(type(value))}({', '.join(self._options(fields))})"
        return text if _shows_all(value) else f"{text}#{_hash(*self._options(fields))}"

    def _class(self, cls: type) -> str:
        own: list[str] = []
        for above in cls.__mro__:
            if is_installed(above.__module__):
                continue
            for name, value in sorted(vars(above).items()):
                if name == "__call__" or not (name.startswith("__") or name == "_abc_impl"):
                    own.append(f"{name}={self(_inner(value))}")
        return f"{cls.__qualname__}#{_hash(*own)}" if own else cls.__qualname__

    def _function(self, function: types.FunctionType) -> str:
        code = function.__code__
        # `functools.wraps` lends a function another's name and module, but not its code and globals.
        if is_installed(function.__globals__.get("__name__", "")) and "<locals>" not in code.co_qualname:
            return function.__qualname__
        cells = [_cell(cell) for cell in function.__closure__ or ()]
        named = {name: function.__globals__[name] for name in _globals_of(code) if name in function.__globals__}
        held: Iterable[object] = (function.__defaults__, function.__kwdefaults__, cells, named, vars(function))
        return f"{function.__qualname__}#{_hash(self._code(code, function.__doc__), *map(self, held))}"

    def _code(self, code: types.CodeType, doc: str | None = None) -> str:
        # What is written about a function does not change it.
        constants = [
            self._code(held) if isinstance(held, types.CodeType) else self(held) for held in code.co_consts if held != doc
        ]
        return _hash(code.co_code, code.co_names, code.co_varnames, code.co_freevars, *constants)

    def _unknown(self, value: object) -> str:
        if self._is_strict:
            raise UnknownError(type(value).__qualname__)
        return f"{type(value).__qualname__}(?)"


def is_installed(module: str) -> bool:
    """Whether a module is Python's, linearcore's or an installed package's, so that names in it say enough."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names or root in _OURS:
        return True
    # `__main__` may be the file of a tool that runs what somebody wrote just now.
    file = "" if root == "__main__" else getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _hash(*parts: object) -> str:
    known = hashlib.sha256()
    for part in parts:
        held = part if isinstance(part, bytes) else str(part).encode()
        known.update(f"{len(held)}:".encode() + held)
    return known.hexdigest()[:8]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _shows_all(value: Any) -> bool:
    """Whether a dataclass is made of plain values only, and of no number that six digits would cut short."""
    if dataclasses.is_dataclass(value):
        return all(_shows_all(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init)
    return isinstance(value, _PLAIN) and (not isinstance(value, float) or float(f"{value:g}") == value)


def _inner(value: object) -> object:
    """The function that a class holds in a wrapping of Python's."""
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return (value.fget, value.fset) if isinstance(value, property) else value


def _cell(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # Not yet filled.
        return None


def _globals_of(code: types.CodeType) -> list[str]:
    """The names that a function, and those inside it, look up outside."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (held for held in code.co_consts if isinstance(held, types.CodeType))
    return sorted(names.union(*map(_globals_of, inner)))
