"""Downloads, verifies and extracts a published archive."""

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
_TIMEOUT_S = 30.0


class DownloadError(ValueError):
    """An archive could not be downloaded, or has the wrong hash or content."""


def download(url: str, md5: str, target: Path, names: Collection[str], progress: Progress | None = None) -> None:
    """Downloads a tar archive and extracts the files `names` into the folder `target`, all of them or none.

    Only these files are extracted, without their folders, so an archive cannot write outside `target`.

    Args:
        url: address of the archive.
        md5: MD5 of the archive as published, 32 hexadecimal digits.
        target: a folder that does not exist.
        names: file names without folders.
        progress: progress display; None makes one.

    Raises:
        DownloadError: if the download fails, the MD5 differs, or a file is missing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetched-") as folder:
        archive, extracted = Path(folder, "archive"), Path(folder, "extracted")
        with Progress() if progress is None else nullcontext(progress) as display:
            digest = _fetch(url, archive, display)
        if digest != md5:
            raise DownloadError(f"{url} must have the MD5 {md5}, got {digest}; try again, or download it yourself")
        extracted.mkdir()
        _extract(archive, extracted, names)
        missing = sorted(set(names) - {file.name for file in extracted.iterdir()})
        if missing:
            raise DownloadError(f"{url} must hold {missing[0]}, got an archive without it; download the files yourself")
        os.replace(extracted, target)


def _fetch(url: str, archive: Path, progress: Progress) -> str:
    """Downloads `url` into a file and returns its MD5."""
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response, archive.open("wb") as stream:
            size = int(response.headers.get("Content-Length") or 0)
            with progress.part("fetching", total=-(-size // _BLOCK) or None, unit="MiB") as part:
                while block := response.read(_BLOCK):
                    stream.write(block)
                    digest.update(block)
                    part.advance()
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url} could not be fetched ({reason}); download the files yourself") from None
    return digest.hexdigest()


def _extract(archive: Path, folder: Path, names: Collection[str]) -> None:
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                content = tar.extractfile(member) if member.isfile() and name in names else None
                if content is not None:
                    with content, (folder / name).open("wb") as stream:
                        shutil.copyfileobj(content, stream)
    except (tarfile.TarError, EOFError) as error:
        raise DownloadError(f"the archive is damaged ({type(error).__name__}); try again") from None
