"""Entries of the snapshot, the file that holds them, and the comparison."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

FILE = Path(__file__).with_name("snapshot.npz")


class Tolerance(NamedTuple):
    """|found − recorded| ≤ relative · |recorded| + absolute · max(scale, `SMALLEST_SCALE`), scale = max |recorded|."""

    relative: float
    absolute: float


#: All tolerances. Integers, booleans and text are compared exactly; NaN equals NaN and ±inf itself.
TOLERANCES = {"float64": Tolerance(1e-9, 1e-12), "float32": Tolerance(2e-5, 1e-6)}
#: For results of iterative solvers, which stop where their own certificate holds.
SOLVED = Tolerance(1e-6, 1e-7)
SMALLEST_SCALE = 1e-3

Array = npt.NDArray[Any]
#: What an entry computes: tensors, arrays, numbers or text by the last part of their names. "NAME [HOW]" is another way to
#: NAME; it is not recorded, but compared with the record of NAME.
Results = Mapping[str, Any]


class Entry(NamedTuple):
    """Results under one name.

    Attributes:
        name: for example "multiclass/logodds/LinearCore(gamma)/index/mean/float64". Each result adds its own part.
        compute: gives the results. An exception in it is an error of the snapshot, and is not recorded.
        via: empty for what is recorded. Otherwise another way to the same numbers, such as a backend, which is compared with
            the record of the default.
        tolerance: None takes `TOLERANCES`.
    """

    name: str
    compute: Callable[[], Results]
    via: str = ""
    tolerance: Tolerance | None = None


def as_array(result: Any) -> Array:
    """A result as an array of float64, float32, int64, bool or text."""
    array = np.array(result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result)
    if array.dtype.kind in "iu":
        array = array.astype(np.int64)
    if (array.dtype.kind == "U" and array.ndim == 0) or array.dtype.name in ("float64", "float32", "int64", "bool"):
        return array
    raise TypeError(f"the snapshot holds no arrays of {array.dtype}")


def refused(call: Callable[[], Any]) -> dict[str, str]:
    """The type of the exception with which a call refuses its arguments. Raises AssertionError unless it does."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return {"refused": type(error).__name__}
    raise AssertionError("the call was expected to refuse its arguments")


def collect(entries: Iterable[Entry]) -> dict[str, Array]:
    """What is recorded, by name."""
    arrays: dict[str, Array] = {}
    for entry in entries:
        if entry.via:
            continue
        for part, result in _results(entry).items():
            name, how = _name(entry, part)
            if how:
                continue
            if name in arrays:
                raise ValueError(f"two entries have the name {name}")
            arrays[name] = as_array(result)
    return arrays


def compare(entries: Iterable[Entry], recorded: Mapping[str, Array]) -> Iterator[str]:
    """One line for every name that differs, is missing or is additional. `recorded` has the names of these entries only."""
    seen: set[str] = set()
    for entry in entries:
        for part, result in _results(entry).items():
            name, how = _name(entry, part)
            label = f"{name} [{how}]" if how else name
            seen.add(name)
            if name not in recorded:
                yield f"{label}: not in the record"
            elif problem := difference(as_array(result), recorded[name], entry.tolerance):
                yield f"{label}: {problem}"
    for name in sorted(set(recorded) - seen):
        yield f"{name}: in the record, but no longer computed"


def _results(entry: Entry) -> Results:
    """What the entry computes; an exception says which entry it comes from."""
    try:
        return entry.compute()
    except Exception as error:
        error.add_note(f"while computing {entry.name}{f' [{entry.via}]' if entry.via else ''}")
        raise


def _name(entry: Entry, part: str) -> tuple[str, str]:
    """The name of a result, and in which other way it was computed, or an empty string."""
    name, _, how = part.removesuffix("]").partition(" [")
    return f"{entry.name}/{name}", ", ".join(filter(None, (entry.via, how)))


def difference(found: Array, recorded: Array, tolerance: Tolerance | None = None) -> str:
    """What differs, or an empty string."""
    if (found.dtype.kind, found.shape) != (recorded.dtype.kind, recorded.shape) or (
        found.dtype.kind == "f" and found.dtype != recorded.dtype
    ):
        return f"{_kind(found)} instead of {_kind(recorded)}"
    if found.dtype.kind != "f":
        wrong = found != recorded
        excess = wrong.astype(float)
    else:
        relative, absolute = tolerance or TOLERANCES[recorded.dtype.name]
        wide, reference = found.astype(np.float64), recorded.astype(np.float64)
        finite = np.isfinite(reference)
        scale = max(SMALLEST_SCALE, float(np.abs(reference[finite]).max(initial=0.0)))
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = relative * np.abs(np.where(finite, reference, 0.0)) + absolute * scale
            excess = np.abs(wide - reference) / allowed
            same = (wide == reference) | (np.isnan(wide) & np.isnan(reference))
            wrong = ~(same | (finite & (excess <= 1)))
        excess = np.where(wrong, np.nan_to_num(excess, nan=math.inf), 0.0)
    if not wrong.any():
        return ""
    worst = np.unravel_index(int(np.argmax(excess)), found.shape)
    place = f" at {list(map(int, worst))}" if found.ndim else ""
    return f"{int(wrong.sum())} of {found.size} differ, worst{place}: {found[worst]} instead of {recorded[worst]}"


def _kind(array: Array) -> str:
    return f"{'text' if array.dtype.kind == 'U' else array.dtype.name} {array.shape}"


def write(arrays: Mapping[str, Array], file: Path = FILE) -> None:
    """Writes the record, with the same bytes for the same arrays.

    One member of the archive for each dtype, all arrays behind one another, and an index of names and shapes as JSON: a
    member for every name would take more room than the numbers do.
    """
    index: list[list[Any]] = []
    parts: dict[str, list[Array]] = {name: [] for name in ("float64", "float32", "int64", "bool")}
    for name in sorted(arrays):
        array = arrays[name]
        if array.dtype.kind == "U":
            index.append([name, "text", str(array)])
        else:
            index.append([name, array.dtype.name, list(array.shape)])
            parts[array.dtype.name].append(array.reshape(-1))
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":")).encode()
    flat = {name: np.concatenate([np.empty(0, name), *chunks]).astype(name) for name, chunks in parts.items()}
    np.savez_compressed(file, index=np.frombuffer(text, np.uint8), **flat)


def read(file: Path = FILE) -> dict[str, Array]:
    """The record: name → array."""
    with np.load(file, allow_pickle=False) as archive:
        flat = {name: archive[name] for name in archive.files}
    arrays: dict[str, Array] = {}
    used = dict.fromkeys(flat, 0)
    for name, dtype, rest in json.loads(flat["index"].tobytes()):
        if dtype == "text":
            arrays[name] = np.array(rest)
            continue
        start, size = used[dtype], math.prod(rest)
        arrays[name] = flat[dtype][start : start + size].reshape(rest)
        used[dtype] += size
    return arrays
