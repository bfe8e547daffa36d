"""Images as tiles of one large lossless picture, labels as bytes beside it."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from linearcore.runtime import complaint

_PICTURE, _LABELS = ".webp", ".labels.u8"


def sheet_file(folder: Path, stem: str) -> Path:
    """Where the picture of a part lies."""
    return folder / f"{stem}{_PICTURE}"


def read_sheet(folder: Path, stem: str, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Cuts a sheet into its tiles, row by row.

    Args:
        folder, stem: the sheet is `stem.webp`, its labels are `stem.labels.u8`, one byte each.
        side: of a tile, in pixels.

    Returns:
        Images (N, 3, side, side) and labels (N,).

    Raises:
        FileNotFoundError, ValueError: in one line that names the file, if one is missing or damaged.
    """
    from PIL import Image, UnidentifiedImageError

    picture, bytes_of_labels = sheet_file(folder, stem), folder / f"{stem}{_LABELS}"
    for file in (picture, bytes_of_labels):
        if not file.is_file():
            raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", f"copy '{folder}' again"))
    labels = np.frombuffer(bytes_of_labels.read_bytes(), np.uint8)
    width = side * math.isqrt(max(1, len(labels)))
    try:
        with Image.open(picture) as opened:
            # Before it is unpacked: a small file can hold a picture that fills the memory.
            if opened.size != (width, width) or len(labels) != (width // side) ** 2:
                got = f"{opened.size[0]} × {opened.size[1]} for {len(labels)} labels"
                must = f"be a square of tiles of {side} × {side}, one for each label"
                raise ValueError(complaint(picture.name, must, got, f"copy '{folder}' again"))
            pixels = np.asarray(opened.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        got = f"a damaged file ({type(error).__name__})"
        raise ValueError(complaint(picture.name, "be a picture", got, f"copy '{folder}' again")) from None
    tiles = pixels.reshape(width // side, side, width // side, side, 3).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(tiles.reshape(-1, 3, side, side)), labels
