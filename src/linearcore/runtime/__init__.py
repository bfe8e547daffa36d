"""Tools for long runs: result records, progress, interrupts, checkpoints, CUDA graphs, random streams, argument checks.

The package is public so that `linearcore-paper` and similar programs need no private names. Its names may change between
versions.

| for | names |
|---|---|
| result records | `write_record`, `read_record`, `write_atomically`, `environment`, `package_version`, `RECORD_FORMAT` |
| the commit of a record | `check_committed`, `has_uncommitted_changes` |
| progress on a terminal or in a log | `Progress`, `ProgressBar`, `track` |
| stopping between two steps | `Interrupt`, `StoppedError` |
| saved models | `write_store`, `read_store`, `is_store`, `store_digest`, `group_tensors`, `StoreContents`, `StoreError` |
| resuming a run, one at a time in a folder | `Checkpoint`, `differences`, `FolderLock` |
| training steps: CUDA graphs, autocast, one thread | `GraphStepper`, `autocast_dtype`, `one_thread` |
| random numbers | `stream_for` |
| one-line errors | `complaint`, `one_of`, `positive`, `between`, `shape`, `require`, `MissingExtraError` |
"""

from linearcore._checks import between, complaint, one_of, positive, shape
from linearcore._extras import MissingExtraError, require
from linearcore._streams import stream_for
from linearcore.runtime._checkpoint import Checkpoint, differences
from linearcore.runtime._folder_lock import FolderLock
from linearcore.runtime._interrupt import Interrupt, StoppedError
from linearcore.runtime._progress import Progress, ProgressBar, track
from linearcore.runtime._record import (
    RECORD_FORMAT,
    check_committed,
    environment,
    has_uncommitted_changes,
    package_version,
    read_record,
    write_atomically,
    write_record,
)
from linearcore.runtime._stepper import GraphStepper, autocast_dtype, one_thread
from linearcore.runtime._store import (
    StoreContents,
    StoreError,
    group_tensors,
    is_store,
    read_store,
    store_digest,
    write_store,
)

__all__ = [
    "RECORD_FORMAT",
    "Checkpoint",
    "FolderLock",
    "GraphStepper",
    "Interrupt",
    "MissingExtraError",
    "Progress",
    "ProgressBar",
    "StoppedError",
    "StoreContents",
    "StoreError",
    "autocast_dtype",
    "between",
    "check_committed",
    "complaint",
    "differences",
    "environment",
    "group_tensors",
    "has_uncommitted_changes",
    "is_store",
    "one_of",
    "one_thread",
    "package_version",
    "positive",
    "read_record",
    "read_store",
    "require",
    "shape",
    "store_digest",
    "stream_for",
    "track",
    "write_atomically",
    "write_record",
    "write_store",
]
