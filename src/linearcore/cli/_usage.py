"""Usage errors of commands: one line instead of a traceback."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from linearcore._extras import MissingExtraError

#: Exit code after Ctrl-C: 128 plus the number of SIGINT.
INTERRUPTED = 130
#: Error numbers of a full disk, a quota and a limit of the size of files.
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UsageError(Exception):
    """An error that the user can correct; its text is the whole message."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Context manager that turns errors about arguments, files and missing extras into a `UsageError`.

    Use it for checks and file access, not for computation: a ValueError in a computation is a bug of the library and should
    print a traceback.
    """
    try:
        yield
    except MissingExtraError as error:
        raise UsageError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        path = f" {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        message = f"cannot write{path}: {reason}; pass a writable folder to --out"
        raise UsageError(disk_full_message(error) or message) from error


def disk_full_message(error: Exception) -> str | None:
    """Returns the message for a full disk, or None for any other error. An error without a file is of standard output."""
    if not isinstance(error, OSError) or error.errno not in _DISK_FULL:
        return None
    path = error.filename or "standard output"
    return f"cannot write {path}: {(error.strerror or str(error)).lower()}; free some space and run the same command again"


def check_device(name: str) -> str:
    """Returns the name of an available device, for `--device`.

    Raises:
        ValueError: if torch does not know the device, or the machine does not have it.
    """
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"`--device` must be a torch device, got {name!r}; pass cpu or cuda") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"`--device` must be available, got {name!r} with {torch.cuda.device_count()} CUDA devices; pass cpu"
        )
    return str(device)
