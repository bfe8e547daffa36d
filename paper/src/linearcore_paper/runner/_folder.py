"""Folders for results."""

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
