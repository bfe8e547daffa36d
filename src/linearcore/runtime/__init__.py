"""What long work needs: records, progress, interrupts, checkpoints, CUDA graphs, random streams and checks of arguments.

It is public so that `linearcore-paper` and programs like it can be written with public names only. It may change: names here
are not promised to stay from one version to the next.

| for | names |
|---|---|
| records of what was run | `write_record`, `read_record`, `write_whole`, `environment`, `package_version`, `RECORD_FORMAT` |
| records of code that is committed | `check_committed`, `made_with_changes` |
| progress on a terminal or in a log | `Progress`, `Part`, `track` |
| stopping between two steps | `Interrupt`, `StoppedError` |
| saved models | `write_store`, `read_store`, `is_store`, `grouped`, `Stored`, `StoreError` |
| runs that go on where they stopped | `Checkpoint`, `differences` |
| training steps: CUDA graphs, half precision, one core | `GraphStepper`, `autocast_dtype`, `one_thread` |
| random numbers | `stream_for` |
| errors in one line | `complaint`, `one_of`, `positive`, `between`, `shape`, `require`, `MissingExtraError` |
"""

from linearcore._checks import between, complaint, one_of, positive, shape
from linearcore._extras import MissingExtraError, require
from linearcore._streams import stream_for
from linearcore.runtime._checkpoint import Checkpoint, differences
from linearcore.runtime._interrupt import Interrupt, StoppedError
from linearcore.runtime._progress import Part, Progress, track
from linearcore.runtime._record import (
    RECORD_FORMAT,
    check_committed,
    environment,
    made_with_changes,
    package_version,
    read_record,
    write_record,
    write_whole,
)
from linearcore.runtime._stepper import GraphStepper, autocast_dtype, one_thread
from linearcore.runtime._store import Stored, StoreError, grouped, is_store, read_store, write_store

__all__ = [
    "RECORD_FORMAT",
    "Checkpoint",
    "GraphStepper",
    "Interrupt",
    "MissingExtraError",
    "Part",
    "Progress",
    "StoppedError",
    "StoreError",
    "Stored",
    "autocast_dtype",
    "between",
    "check_committed",
    "complaint",
    "differences",
    "environment",
    "grouped",
    "is_store",
    "made_with_changes",
    "one_of",
    "one_thread",
    "package_version",
    "positive",
    "read_record",
    "read_store",
    "require",
    "shape",
    "stream_for",
    "track",
    "write_record",
    "write_store",
    "write_whole",
]
