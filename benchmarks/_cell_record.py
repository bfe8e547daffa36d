"""Records of `which_loss.py`: JSON lines, one for each cell, that an interrupted run continues."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from _label_sets import DataError


class Cell(NamedTuple):
    """What a line is about."""

    data: str
    noise: str
    optimizer: str
    loss: str


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the lines of a record; an incomplete last line, of an interrupted write, is left out."""
    if path.is_file():
        for text in path.read_text("utf-8").splitlines(keepends=True):
            if text.endswith("\n"):
                yield json.loads(text)


def finished(path: Path, settings_of: Callable[[Cell], dict[str, Any]]) -> set[Cell]:
    """Returns the cells of a record with the present settings, and removes an incomplete last line.

    Raises:
        DataError: if a cell has other settings; two plans do not belong into one record.
    """
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)
    done = set()
    for line in lines(path):
        cell = Cell(**line["cell"])
        if line["settings"] != settings_of(cell):
            raise DataError(f"{path.name} has other settings for {', '.join(cell)}; pass another --out")
        done.add(cell)
    return done


def append(path: Path, line: dict[str, Any]) -> None:
    """Appends a line in one write, so that an interrupted run leaves whole lines."""
    text = json.dumps(line, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(text.encode())
        os.fsync(file.fileno())
