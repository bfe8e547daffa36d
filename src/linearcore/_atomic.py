"""Files that are written completely or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced_when_complete(path: Path) -> Iterator[Path]:
    """Context manager with the name of a temporary file, which replaces `path` unless an error occurs.

    A reader never sees an incomplete file. A link stays a link, and an existing file keeps its permissions. What cannot be
    replaced, such as /dev/stdout, is written directly.

    Raises:
        OSError: if the file cannot be written; it names `path`.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.exists():
            # Before the first byte: a private file must not be readable by others meanwhile.
            temporary.touch()
            shutil.copymode(target, temporary)
        yield temporary
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # An error of `write`, such as a full disk, does not name the file, and one of `open` names the temporary one.
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
