"""The results file of an experiment, `results.jsonl`: one line for each finished part and one for the conclusion.

A finished part is appended and synced to disk, so a run that is killed loses at most the line that it was writing. A line is
replaced by writing a new file and renaming it over the old one. Every write takes a lock and reads the file again, so that
several runs can share a file.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from linearcore.runtime import RECORD_FORMAT, complaint, made_with_changes, read_record, write_whole

if sys.platform != "win32":
    import fcntl

#: A line of the file.
Record = dict[str, Any]
FILE_NAME = "results.jsonl"


class ResultsFile:
    """The records of one experiment, read from OUT/NAME/results.jsonl. The file need not exist.

    Every line has a key `part`: the name of a part, or None for the conclusion. If a part occurs twice, its last line
    counts. An incomplete last line, as a killed run leaves it, is dropped with a message.

    Args:
        out: folder of all experiments.
        name: of the experiment; its folder has `_` where the name has `-`, as its package does.

    Raises:
        OSError: if the file is there and cannot be read.
        ValueError: if another line than the last is no record; the message names it.
    """

    def __init__(self, out: Path, name: str) -> None:
        self.path = results_folder(out, name) / FILE_NAME
        #: Where an earlier version had its files; `name` was the folder then.
        self.old = out / name
        self._records, rest = self._read()
        if rest and _record(rest) is None:
            print(f"linearcore: {self.path}: dropped the last line, which a killed run left incomplete", file=sys.stderr)

    @property
    def parts(self) -> dict[str, Record]:
        """Records of the finished parts by name."""
        return {str(part): record for part, record in self._records.items() if part is not None}

    @property
    def conclusion(self) -> Record | None:
        """The record of the conclusion; None before all parts were finished once."""
        return self._records.get(None)

    def count(self) -> tuple[int, int]:
        """How many records name the commit that made them, and how many of these had uncommitted changes."""
        dated = [record for record in self._records.values() if "environment" in record]
        return len(dated), sum(made_with_changes(record["environment"]) for record in dated)

    def save(self, record: Mapping[str, Any]) -> Record:
        """Appends a record, or replaces the one of the same part; returns it as a reader will see it.

        Raises:
            TypeError: if something in it is no JSON value.
            ValueError: if a number in it is not finite.
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
        """Puts the lines into the order of the parts, other records after them and the conclusion last."""
        order: list[str | None] = list(names)
        with _locked(self.path):
            self._records, _ = self._read()
            order += [part for part in self._records if part is not None and part not in order]
            order = [part for part in (*order, None) if part in self._records]
            if order != list(self._records):
                self._records = {part: self._records[part] for part in order}
                self._rewrite()

    def convert_old_files(self) -> None:
        """Takes over results.json and parts/*.json of an earlier version, and renames them to *.converted."""
        old = [path for path in (self.old / "results.json", self.old / "parts") if path.exists()]
        if not old:
            return
        files = [*sorted(self.old.glob("parts/*.json")), *self.old.glob("results.json")]
        before = len(self._records)
        for path in files:
            part = path.stem if path.parent != self.old else None
            # Not a record: the part of a plain function, which depends on source that has changed.
            with suppress(ValueError):
                if part not in self._records:
                    self.save(read_record(path) | {"part": part})
        for path in old:
            path.rename(path.with_name(f"{path.name}.converted"))
        count = len(self._records) - before
        print(f"linearcore: {self.path}: took over {count} of {len(files)} files of an earlier version", file=sys.stderr)

    def _read(self) -> tuple[dict[str | None, Record], bytes]:
        """Records by part, and what follows the last line break: nothing, unless a write was cut short."""
        try:
            *lines, rest = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}, b""
        records = {}
        for number, line in enumerate(lines, 1):
            record = _record(line)
            if record is None:
                advice = "delete that line, and its part is run again"
                raise ValueError(complaint(str(self.path), "hold a record in every line", f"none in line {number}", advice))
            records[record["part"]] = record
        last = _record(rest)
        if last is not None:
            records[last["part"]] = last
        return records, rest

    def _rewrite(self) -> None:
        write_whole(self.path, b"".join(map(_line, self._records.values())).decode())


def results_folder(out: Path, name: str) -> Path:
    """Where an experiment's results file and figures lie, below the folder of all experiments."""
    return out / name.replace("-", "_")


def _line(record: Mapping[str, Any]) -> bytes:
    # Keys inside keep their order: what is computed from a result must not depend on whether it was read from here.
    return (json.dumps(dict(sorted(record.items())), allow_nan=False, ensure_ascii=False) + "\n").encode()


def _record(line: bytes) -> Record | None:
    """What a line holds, or None if that is no record."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_record = isinstance(record, dict) and record.get("format") == RECORD_FORMAT and "part" in record
    return record if is_record else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other runs from writing to the file, where there are locks: Windows and some network drives have none."""
    if sys.platform == "win32":
        yield
        return
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                # The part is computed and must be saved all the same.
                print(f"linearcore: {path}: no lock ({error.strerror}); do not let other runs write to it", file=sys.stderr)
            # Whoever held the lock may have renamed a new file over this one.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return
