"""Opens files, packed or not, by what is in them."""

import gzip
import lzma
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Self

from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._lines import text_lines

#: Stands for standard input.
STANDARD_INPUT = "-"

_XZ, _GZIP, _ZIP, _BZIP2 = b"\xfd7zXZ\x00", b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06"), b"BZh"

# What the unpackers of the standard library raise when the bytes make no sense, or are in a way they do not know.
_DAMAGE = (
    OSError, EOFError, ValueError, OverflowError, RuntimeError, LookupError,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error,
)  # fmt: skip


class Source:
    """A file, whose text is read inside this context: one text, or in a zip as many as it has members.

    The kind is told by the first bytes and not by the name, so that `.conllu` may be packed and `.xz` unpacked.

    Attributes:
        file: the path as the user gave it; "-" is standard input, which holds plain text.
        members: the texts of a zip in alphabetic order, without folders and what systems add; (None,) for any other file.

    Raises:
        ReaderError: if there is no such file, it may not be read, or it is damaged.

    Example:
        >>> with Source("nowhere.conllu") as source:
        ...     pass
        Traceback (most recent call last):
        linearcore.tagging.readers._error.ReaderError: nowhere.conllu: there is no such file; check the path
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.members: tuple[str | None, ...] = (None,)
        self._open = ExitStack()
        self._archive: zipfile.ZipFile | None = None
        self._kind = "file"

    def __enter__(self) -> Self:
        try:
            self._enter()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def name(self, member: str | None = None) -> str:
        """What messages call the file, or a member of it."""
        return self.file if member is None else f"{self.file}({member})"

    def lines(self, member: str | None = None) -> Iterator[str]:
        """The lines of the text, or of this member of a zip. A text that is no zip's can be read once only."""
        name = self.name(member)
        if member is None:
            yield from text_lines(self._guarded(self._read, name), name)
            return
        with ExitStack() as stack:
            stream = stack.enter_context(self._opened(member))
            yield from text_lines(self._guarded(stream.read1, name), name)  # type: ignore[attr-defined]

    def _enter(self) -> None:
        if self.file == STANDARD_INPUT:
            self._read: Callable[[int], bytes] = sys.stdin.buffer.read1  # type: ignore[union-attr]
            return
        stack = self._open
        try:
            stream = stack.enter_context(open(self.file, "rb"))  # noqa: SIM115 (the stack closes it)
            start = stream.peek(len(_XZ))
        except (OSError, ValueError) as error:
            raise _unreadable(self.file, error) from error
        self._read = stream.read1
        if start.startswith(_XZ):
            self._kind = "xz archive"
            self._read = stack.enter_context(lzma.LZMAFile(stream)).read1  # noqa: SIM115 (the stack closes it)
        elif start.startswith(_GZIP):
            self._kind, self._read = "gzip archive", stack.enter_context(gzip.GzipFile(fileobj=stream)).read1
        elif start.startswith(_ZIP):
            self._kind = "zip archive"
            self._list(stream)
        elif start.startswith(_BZIP2):
            raise ReaderError.at(self.file, None, "bzip2 is not read", "unpack it, or pack it as .xz, .gz or .zip")

    def _list(self, stream: IO[bytes]) -> None:
        try:
            self._archive = self._open.enter_context(zipfile.ZipFile(stream))
            names = self._archive.namelist()
        except _DAMAGE as error:
            raise self._damaged(self.file, error) from error
        parts = [name for name in names if not name.endswith("/")]
        kept = {name for name in parts if not name.startswith("__MACOSX/") and not os.path.basename(name).startswith(".")}
        if not kept:
            raise ReaderError.at(self.file, None, "the archive holds no file", "pack the text into it")
        self.members = tuple(sorted(kept))

    def _opened(self, member: str) -> IO[bytes]:
        assert self._archive is not None  # Only a zip has members.
        try:
            return self._archive.open(member)
        except _DAMAGE as error:
            raise self._damaged(self.name(member), error) from error

    def _guarded(self, read: Callable[[int], bytes], name: str) -> Callable[[int], bytes]:
        """`read` with its errors turned into ours. Only the reading: what is done with the bytes has its own errors."""

        def guarded(size: int) -> bytes:
            try:
                return read(size)
            except _DAMAGE as error:
                raise self._damaged(name, error) from error

        return guarded

    def _damaged(self, name: str, error: Exception) -> ReaderError:
        reason = str(error) or type(error).__name__
        if self._kind == "file":
            return _unreadable(name, error)
        if "encrypted" in reason:
            return ReaderError.at(name, None, "the archive is encrypted", "unpack it first")
        return ReaderError.at(name, None, f"the {self._kind} is damaged ({reason})", "fetch or pack it again")


def _unreadable(name: str, error: Exception) -> ReaderError:
    if isinstance(error, FileNotFoundError):
        return ReaderError.at(name, None, "there is no such file", "check the path")
    if isinstance(error, IsADirectoryError):
        return ReaderError.at(name, None, "this is a folder", "name a file in it")
    if isinstance(error, PermissionError):
        return ReaderError.at(name, None, "you may not read this file", "change its permissions, or copy it")
    reason = ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
    return ReaderError.at(name, None, f"it cannot be read ({reason})", "check the path and the disk")
