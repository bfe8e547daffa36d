"""A lock that gives one run at a time the use of a folder."""

from contextlib import suppress
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from linearcore._checks import complaint

LOCK_FILE = ".lock"


class FolderLock:
    """Gives the folder of a result to one run at a time, until `release` or the end of the `with` block.

    It is a lock of the operating system on a file in the folder, so it ends with the process, also if that is killed.
    A second run raises at once. Within a process, a second lock on the folder is refused as well.

    Args:
        folder: folder of the result; created if needed, and removed again at the end if it was created and stayed empty.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with FolderLock(Path(folder.name)):
        ...     FolderLock(Path(folder.name)).acquire()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: `out` must be used by one run at a time, got ... in which another run is active; ...
        >>> folder.cleanup()
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / LOCK_FILE
        self._lock = FileLock(self._path, timeout=0, thread_local=False)
        self._is_new_folder = False

    def acquire(self) -> None:
        """Takes the lock; does nothing if this object holds it.

        Raises:
            ValueError: if another run holds it.
            OSError: if the folder cannot be written.
        """
        if self._lock.is_locked:
            return
        is_new_folder = not self._folder.exists()
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            advice = "wait until that run ends, or use another folder"
            got = f"{self._folder}, in which another run is active"
            raise ValueError(complaint("out", "be used by one run at a time", got, advice)) from None
        self._is_new_folder = is_new_folder

    def release(self) -> None:
        """Gives the lock back; does nothing if it is not held."""
        if not self._lock.is_locked:
            return
        with suppress(OSError):  # Windows does not remove an open file.
            self._path.unlink(missing_ok=True)
        self._lock.release()
        if self._is_new_folder:
            with suppress(OSError):  # The folder is not empty.
                self._folder.rmdir()

    def __enter__(self) -> "FolderLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
