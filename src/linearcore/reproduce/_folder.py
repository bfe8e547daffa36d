"""Folders and files for results."""

import os
from pathlib import Path


def make_writable(folder: Path) -> None:
    """Makes the folder and writes to it, so that a bad one is found before the work and not after it.

    Raises:
        OSError: if it cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".linearcore-probe"
    probe.touch()
    probe.unlink()


def write_whole(path: Path, text: str) -> None:
    """Puts `text` into `path`; readers see the old file or the whole new one.

    Raises:
        OSError: if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
