"""CIFAR-10's binary version: records of a label and 3,072 bytes of pixels."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from linearcore.runtime import complaint


def binary_file(folder: Path, stem: str) -> Path:
    """Where a part lies."""
    return folder / f"{stem}.bin"


def read_binary(folder: Path, stem: str, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Images (N, 3, side, side) and labels (N,) of `stem.bin`.

    Raises:
        FileNotFoundError, ValueError: in one line that names the file, if it is missing or cut short.
    """
    file = binary_file(folder, stem)
    if not file.is_file():
        raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", f"fetch '{folder}' again"))
    content = np.frombuffer(file.read_bytes(), np.uint8)
    record = 1 + 3 * side * side
    if len(content) == 0 or len(content) % record:
        must = f"consist of records of {record} bytes"
        raise ValueError(complaint(file.name, must, f"{len(content)} bytes", f"fetch '{folder}' again"))
    records = content.reshape(-1, record)
    return records[:, 1:].reshape(-1, 3, side, side), records[:, 0]
