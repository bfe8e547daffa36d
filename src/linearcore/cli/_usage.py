"""How commands end early: one line for what the user can mend, a code for Ctrl-C, a traceback for everything else."""

from collections.abc import Iterator
from contextlib import contextmanager

from linearcore._extras import MissingExtraError

#: What shells expect after Ctrl-C: 128 plus the number of the signal.
INTERRUPTED = 130


class UsageError(Exception):
    """Something the user can mend; its text is the whole message."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """Inside, errors about arguments, files and missing extras become a `UsageError`.

    Put it around checks and file access, not around computation: a ValueError from the middle of it is a fault of the
    library, and its traceback is wanted.
    """
    try:
        yield
    except MissingExtraError as error:
        raise UsageError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write{place}: {reason}; name a folder you may write to with --out") from error


def check_device(name: str) -> str:
    """The name of a device that is there, for `--device`.

    Raises:
        ValueError: if torch knows no such device, or the machine has none.
    """
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"`--device` must be a device of torch, got {name!r}; pass cpu or cuda") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"`--device` must be there, got {name!r} and {torch.cuda.device_count()} CUDA devices; pass cpu")
    return str(device)
