"""Opens files, compressed or not; the compression is detected from the content."""

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

#: File name of standard input.
STANDARD_INPUT = "-"

_XZ, _GZIP, _ZIP, _BZIP2 = b"\xfd7zXZ\x00", b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06"), b"BZh"

# Exceptions of the standard library for damaged or unsupported archives.
_ARCHIVE_ERRORS = (
    OSError, EOFError, ValueError, OverflowError, RuntimeError, LookupError,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile, struct.error,
)  # fmt: skip


class Source:
    """A file to read inside a `with` block: one text, or one per member of a zip file.

    The compression is detected from the first bytes, not from the name.

    Attributes:
        file: the path as the user gave it; "-" is standard input, which must not be compressed.
        members: sorted names of the texts in a zip file, without folders and hidden files; (None,) for any other file.

    Raises:
        ReaderError: if the file does not exist, cannot be read, or is damaged.

    Example:
        >>> with Source("nowhere.conllu") as source:
        ...     pass
        Traceback (most recent call last):
        linearcore.tagging.readers._error.ReaderError: nowhere.conllu: there is no such file; check the path
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.members: tuple[str | None, ...] = (None,)
        self._stack = ExitStack()
        self._archive: zipfile.ZipFile | None = None
        self._kind = "file"

    def __enter__(self) -> Self:
        try:
            self._enter()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def name(self, member: str | None = None) -> str:
        """Returns the name of the file or of a member in messages."""
        return self.file if member is None else f"{self.file}({member})"

    def lines(self, member: str | None = None) -> Iterator[str]:
        """Yields the lines of the text or of a member of a zip file. Only members can be read more than once."""
        name = self.name(member)
        if member is None:
            yield from text_lines(self._with_reader_errors(self._read, name), name)
            return
        with ExitStack() as stack:
            stream = stack.enter_context(self._open_member(member))
            yield from text_lines(self._with_reader_errors(stream.read1, name), name)  # type: ignore[attr-defined]

    def _enter(self) -> None:
        if self.file == STANDARD_INPUT:
            self._read: Callable[[int], bytes] = sys.stdin.buffer.read1  # type: ignore[union-attr]
            return
        stack = self._stack
        try:
            stream = stack.enter_context(open(self.file, "rb"))  # noqa: SIM115 (the stack closes it)
            start = stream.peek(len(_XZ))
        except (OSError, ValueError) as error:
            raise _unreadable_error(self.file, error) from error
        self._read = stream.read1
        if start.startswith(_XZ):
            self._kind = "xz archive"
            self._read = stack.enter_context(lzma.LZMAFile(stream)).read1  # noqa: SIM115 (the stack closes it)
        elif start.startswith(_GZIP):
            self._kind, self._read = "gzip archive", stack.enter_context(gzip.GzipFile(fileobj=stream)).read1
        elif start.startswith(_ZIP):
            self._kind = "zip archive"
            self._list_members(stream)
        elif start.startswith(_BZIP2):
            raise ReaderError.at(
                self.file, None, "bzip2 is not supported", "decompress it, or compress it as .xz, .gz or .zip"
            )

    def _list_members(self, stream: IO[bytes]) -> None:
        try:
            self._archive = self._stack.enter_context(zipfile.ZipFile(stream))
            names = self._archive.namelist()
        except _ARCHIVE_ERRORS as error:
            raise self._damage_error(self.file, error) from error
        files = [name for name in names if not name.endswith("/")]
        texts = {name for name in files if not name.startswith("__MACOSX/") and not os.path.basename(name).startswith(".")}
        if not texts:
            raise ReaderError.at(self.file, None, "the archive contains no file", "add the text to it")
        self.members = tuple(sorted(texts))

    def _open_member(self, member: str) -> IO[bytes]:
        assert self._archive is not None  # Only a zip file has members.
        try:
            return self._archive.open(member)
        except _ARCHIVE_ERRORS as error:
            raise self._damage_error(self.name(member), error) from error

    def _with_reader_errors(self, read: Callable[[int], bytes], name: str) -> Callable[[int], bytes]:
        """Returns `read` with its errors turned into `ReaderError`."""

        def read_checked(size: int) -> bytes:
            try:
                return read(size)
            except _ARCHIVE_ERRORS as error:
                raise self._damage_error(name, error) from error

        return read_checked

    def _damage_error(self, name: str, error: Exception) -> ReaderError:
        reason = str(error) or type(error).__name__
        if self._kind == "file":
            return _unreadable_error(name, error)
        if "encrypted" in reason:
            return ReaderError.at(name, None, "the archive is encrypted", "decrypt it first")
        return ReaderError.at(name, None, f"the {self._kind} is damaged ({reason})", "download or create it again")


def _unreadable_error(name: str, error: Exception) -> ReaderError:
    if isinstance(error, FileNotFoundError):
        return ReaderError.at(name, None, "there is no such file", "check the path")
    if isinstance(error, IsADirectoryError):
        return ReaderError.at(name, None, "this is a folder", "pass a file")
    if isinstance(error, PermissionError):
        return ReaderError.at(name, None, "permission denied", "change the permissions of the file")
    reason = ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
    return ReaderError.at(name, None, f"the file cannot be read ({reason})", "check the path and the disk")
