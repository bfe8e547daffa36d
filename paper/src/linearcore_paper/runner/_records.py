"""The results file of an experiment, `results.jsonl`: one line for each finished part and one for the conclusion.

A finished part is appended and synced to disk, so a killed run loses at most the line that it was writing. To replace a
line, the whole file is written again and renamed over the old one. Every write locks the file and reads it again, so several
runs can share a file.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from linearcore.runtime import RECORD_FORMAT, complaint, has_uncommitted_changes, read_record, write_atomically

if sys.platform != "win32":
    import fcntl

#: A line of the file.
Record = dict[str, Any]
FILE_NAME = "results.jsonl"


class ResultsFile:
    """The records of one experiment, read from OUT/NAME/results.jsonl. The file need not exist.

    Every line has a key `part`: the name of a part, or None for the conclusion. If a part occurs twice, the last line
    is used. An incomplete last line of a killed run is dropped with a message.

    Args:
        out: folder of all experiments.
        name: name of the experiment; in the folder name, `_` replaces `-`.

    Raises:
        OSError: if the file exists and cannot be read.
        ValueError: if a line before the last is not a record; the message names it.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.path = results_folder(out, name) / FILE_NAME
        #: Folder of an earlier version, which did not replace `-`.
        self.old_folder = out / name
        self._records, rest = self._read()
        if rest and _record(rest) is None:
            print(f"linearcore: {self.path}: dropped the last line, which a killed run left incomplete", file=sys.stderr)

    @property
    def parts(self) -> dict[str, Record]:
        """The records of the finished parts by name."""
        return {str(part): record for part, record in self._records.items() if part is not None}

    @property
    def conclusion(self) -> Record | None:
        """The record of the conclusion; None if the parts were never all finished."""
        return self._records.get(None)

    def count(self) -> tuple[int, int]:
        """Returns the number of records with an environment, and how many of them had uncommitted changes."""
        environments = [record["environment"] for record in self._records.values() if "environment" in record]
        return len(environments), sum(map(has_uncommitted_changes, environments))

    def save(self, record: Mapping[str, Any]) -> Record:
        """Appends a record, or replaces the record of the same part; returns the record as read back from JSON.

        Raises:
            TypeError: if a value is not a JSON value.
            ValueError: if a number is not finite.
            OSError: if the file cannot be written.
        """
        line = _line({"format": RECORD_FORMAT, **record})
        saved: Record = json.loads(line)
        with _locked(self.path):
            self._records, rest = self._read()
            is_new = saved["part"] not in self._records and not rest
            self._records[saved["part"]] = saved
            if is_new:
                with self.path.open("ab") as file:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
            else:
                self._rewrite()
        return saved

    def sort(self, names: Iterable[str]) -> None:
        """Sorts the lines by the order of the parts, then other records, then the conclusion."""
        order: list[str | None] = list(names)
        with _locked(self.path):
            self._records, _ = self._read()
            order += [part for part in self._records if part is not None and part not in order]
            order = [part for part in (*order, None) if part in self._records]
            if order != list(self._records):
                self._records = {part: self._records[part] for part in order}
                self._rewrite()

    def convert_old_files(self) -> None:
        """Converts results.json and parts/*.json of an earlier version, and renames them to *.converted."""
        old_paths = [path for path in (self.old_folder / "results.json", self.old_folder / "parts") if path.exists()]
        if not old_paths:
            return
        files = [*sorted(self.old_folder.glob("parts/*.json")), *self.old_folder.glob("results.json")]
        num_before = len(self._records)
        for path in files:
            part = path.stem if path.parent != self.old_folder else None
            # A ValueError means the part of a plain function, which must run again because the source has changed.
            with suppress(ValueError):
                if part not in self._records:
                    self.save(read_record(path) | {"part": part})
        for path in old_paths:
            path.rename(path.with_name(f"{path.name}.converted"))
        count = len(self._records) - num_before
        print(f"linearcore: {self.path}: took over {count} of {len(files)} files of an earlier version", file=sys.stderr)

    def _read(self) -> tuple[dict[str | None, Record], bytes]:
        """Reads the records by part, and the text after the last line break, which is empty if all lines are complete."""
        try:
            *lines, rest = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}, b""
        records = {}
        for number, line in enumerate(lines, 1):
            record = _record(line)
            if record is None:
                advice = "delete that line to run its part again"
                raise ValueError(complaint(str(self.path), "hold a record in every line", f"none in line {number}", advice))
            records[record["part"]] = record
        last = _record(rest)
        if last is not None:
            records[last["part"]] = last
        return records, rest

    def _rewrite(self) -> None:
        write_atomically(self.path, b"".join(map(_line, self._records.values())).decode())


def results_folder(out: Path, name: str) -> Path:
    """Returns the subfolder of `out` with the results file and figures of an experiment."""
    return out / name.replace("-", "_")


def _line(record: Mapping[str, Any]) -> bytes:
    # Only the outer keys are sorted: a result read from the file must equal the computed one, including its key order.
    return (json.dumps(dict(sorted(record.items())), allow_nan=False, ensure_ascii=False) + "\n").encode()


def _record(line: bytes) -> Record | None:
    """Parses a line; returns None if it is not a record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_record = isinstance(record, dict) and record.get("format") == RECORD_FORMAT and "part" in record
    return record if is_record else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Locks the file against other runs. Windows and some network drives have no locks."""
    if sys.platform == "win32":
        yield
        return
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                # Continue without a lock, because the finished part must be saved.
                print(f"linearcore: {path}: no lock ({error.strerror}); do not let other runs write to it", file=sys.stderr)
            # The last holder of the lock may have renamed a new file over this one.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return
