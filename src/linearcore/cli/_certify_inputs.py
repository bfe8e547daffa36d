"""Inputs of `linearcore certify`: the surrogate from its options, a formula or a file, and a sample from a CSV file."""

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linearcore._checks import complaint
from linearcore.surrogates import CLASSICAL, LinearCore, Surrogate, UserSurrogate
from linearcore.tables import CsvTable, TableError, read_csv


@dataclass(frozen=True)
class SurrogateOptions:
    """The options that choose φ; None if not passed."""

    base: str | None
    tau: float | None
    sides: int | None
    sharpness: float | None
    classical: str | None
    phi: str | None
    phi_file: Path | None

    def surrogate(self) -> Surrogate:
        """Returns φ; raises ValueError if the options do not define one."""
        parameters = {"base": self.base, "tau": self.tau, "sides": self.sides, "sharpness": self.sharpness}
        core: dict[str, Any] = {name: value for name, value in parameters.items() if value is not None}
        others = {"--classical": self.classical, "--phi": self.phi, "--phi-file": self.phi_file}
        passed = [name for name, value in others.items() if value is not None]
        if not passed:
            return LinearCore(**core)
        if len(passed) > 1 or core:
            got = " and ".join([*(f"--{name}" for name in core), *passed])
            advice = "pass one of --classical, --phi and --phi-file, or the options of the linear core"
            raise ValueError(complaint("certify", "have one surrogate", got, advice))
        if self.phi is not None:
            return UserSurrogate.from_expression(self.phi)
        if self.phi_file is not None:
            return _from_file(self.phi_file)
        if self.classical is None or self.classical not in CLASSICAL:
            raise ValueError(
                complaint("--classical", f"be one of {', '.join(CLASSICAL)}", repr(self.classical), "choose one")
            )
        return CLASSICAL[self.classical]


def _from_file(path: Path) -> Surrogate:
    """Runs a Python file and returns its `phi`."""
    advice = "define `phi`, a function of a tensor or a Surrogate, in a Python file"
    if not path.is_file():
        raise ValueError(complaint("--phi-file", "be a file", str(path), advice))
    try:
        phi = runpy.run_path(str(path)).get("phi")
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise ValueError(complaint("--phi-file", "run without an error", got, f"correct {path}")) from error
    if isinstance(phi, Surrogate):
        return phi
    if not callable(phi):
        raise ValueError(complaint("--phi-file", "define `phi`", f"{path} without it", advice))
    return UserSurrogate(phi, path.name)


@dataclass(frozen=True)
class SampleFile:
    """A sample for `sample_bound`.

    Attributes:
        features: (n, d).
        labels: (n,) class indices.
        classes: names of the classes, in the order of the indices.
        probabilities: (n, C), (n,) or None.
    """

    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.intp]
    classes: list[str]
    probabilities: npt.NDArray[np.float64] | None


def read_sample(file: Path, label: str, probabilities: str | None) -> SampleFile:
    """Reads a CSV file with a label column, numeric features, and columns of probabilities, separated by commas."""
    table = read_csv(file)
    names = [] if probabilities is None else [name.strip() for name in probabilities.split(",")]
    for name in (label, *names):
        if name not in table.columns:
            option = "--label" if name == label else "--probabilities"
            raise ValueError(complaint(option, f"name a column of {file}", repr(name), f"choose {', '.join(table.columns)}"))
    columns = [name for name in table.columns if name != label and name not in names]
    if not columns:
        raise TableError.at(table.name, None, "there is no feature column", "add numeric columns")
    values = table.column(label)
    # Numbers in the order of their size, other names alphabetically.
    classes = sorted(set(values), key=lambda name: (not _is_number(name), float(name) if _is_number(name) else 0.0, name))
    if len(classes) < 2:
        raise TableError.at(table.name, None, f"column {label!r} has one class", "pass a sample with at least two classes")
    index = {name: number for number, name in enumerate(classes)}
    numbers = None
    if names:
        numbers = np.stack([_numbers(table, name) for name in names], 1)
        numbers = numbers[:, 0] if len(names) == 1 else numbers
    features = np.stack([_numbers(table, name) for name in columns], 1)
    return SampleFile(features, np.array([index[value] for value in values], dtype=np.intp), classes, numbers)


def _numbers(table: CsvTable, name: str) -> npt.NDArray[np.float64]:
    fields = table.column(name)
    for line, field in zip(table.lines, fields, strict=True):
        if not _is_number(field):
            advice = "use numeric columns, and encode others first"
            raise TableError.at(table.name, line, f"{field!r} in column {name!r} is not a finite number", advice)
    return np.array([float(field) for field in fields])


def _is_number(field: str) -> bool:
    try:
        return bool(np.isfinite(float(field)))
    except ValueError:
        return False
