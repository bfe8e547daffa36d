"""Reads datasets stored as tiles of one large lossless image, with the labels in a separate file."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from linearcore.runtime import complaint

_PICTURE, _LABELS = ".webp", ".labels.u8"


def sheet_file(folder: Path, stem: str) -> Path:
    """Returns the path of a sheet."""
    return folder / f"{stem}{_PICTURE}"


def read_sheet(folder: Path, stem: str, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Reads a sheet and splits it into tiles, row by row.

    Args:
        folder, stem: the sheet is `stem.webp`, its labels are `stem.labels.u8`, one byte each.
        side: side of a tile in pixels.

    Returns:
        Images (N, 3, side, side) and labels (N,).

    Raises:
        FileNotFoundError, ValueError: if a file is missing or damaged; the message names it.
    """
    from PIL import Image, UnidentifiedImageError

    sheet, label_file = sheet_file(folder, stem), folder / f"{stem}{_LABELS}"
    for file in (sheet, label_file):
        if not file.is_file():
            raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", f"copy '{folder}' again"))
    labels = np.frombuffer(label_file.read_bytes(), np.uint8)
    width = side * math.isqrt(max(1, len(labels)))
    try:
        with Image.open(sheet) as image:
            # Checked before decompression, because a small file can contain a huge image.
            if image.size != (width, width) or len(labels) != (width // side) ** 2:
                got = f"{image.size[0]} × {image.size[1]} for {len(labels)} labels"
                must = f"be a square of tiles of {side} × {side}, one for each label"
                raise ValueError(complaint(sheet.name, must, got, f"copy '{folder}' again"))
            pixels = np.asarray(image.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        got = f"a damaged file ({type(error).__name__})"
        raise ValueError(complaint(sheet.name, "be an image", got, f"copy '{folder}' again")) from None
    tiles = pixels.reshape(width // side, side, width // side, side, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(-1, 3, side, side)), labels
