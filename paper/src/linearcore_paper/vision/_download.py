"""A published archive fetched, checked and unpacked."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path, PurePosixPath

from linearcore.runtime import Progress

_BLOCK = 1 << 20
_WAIT = 30.0


class DownloadError(ValueError):
    """An archive could not be fetched, or is not the one that was asked for."""


def download(url: str, md5: str, target: Path, names: Collection[str], progress: Progress | None = None) -> None:
    """Fetches a tar archive and puts the files called `names` into the folder `target`, all of them or none.

    Nothing but these files is unpacked, and only by their last name: an archive cannot write elsewhere.

    Args:
        url: of the archive.
        md5: of the archive, 32 hexadecimal digits, as its publisher gives it.
        target: a folder that is not there yet.
        names: of the files, without folders.
        progress: an open one; None opens its own.

    Raises:
        DownloadError: in one line, if there is no network, or the archive is another.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetched-") as folder:
        archive, unpacked = Path(folder, "archive"), Path(folder, "unpacked")
        with Progress() if progress is None else nullcontext(progress) as shown:
            found = _fetch(url, archive, shown)
        if found != md5:
            raise DownloadError(f"{url} must have the MD5 {md5}, got {found}; try again, or fetch it by other means")
        unpacked.mkdir()
        _unpack(archive, unpacked, names)
        missing = sorted(set(names) - {file.name for file in unpacked.iterdir()})
        if missing:
            raise DownloadError(f"{url} must hold {missing[0]}, got an archive without; fetch the files by other means")
        os.replace(unpacked, target)


def _fetch(url: str, archive: Path, progress: Progress) -> str:
    """Writes what lies at `url` into a file; gives its MD5."""
    known = hashlib.md5(usedforsecurity=False)
    try:
        with urllib.request.urlopen(url, timeout=_WAIT) as answer, archive.open("wb") as stream:
            size = int(answer.headers.get("Content-Length") or 0)
            with progress.part("fetching", total=-(-size // _BLOCK) or None, unit="MiB") as part:
                while block := answer.read(_BLOCK):
                    stream.write(block)
                    known.update(block)
                    part.advance()
    except (urllib.error.URLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise DownloadError(f"{url} could not be fetched ({why}); put the files there by other means") from None
    return known.hexdigest()


def _unpack(archive: Path, folder: Path, names: Collection[str]) -> None:
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                name = PurePosixPath(member.name).name
                content = opened.extractfile(member) if member.isfile() and name in names else None
                if content is not None:
                    with content, (folder / name).open("wb") as stream:
                        shutil.copyfileobj(content, stream)
    except (tarfile.TarError, EOFError) as error:
        raise DownloadError(f"the archive is damaged ({type(error).__name__}); try again") from None
