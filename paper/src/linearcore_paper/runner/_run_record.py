"""The file of a recorded run: settings, seed, environment and result, one line for each, small enough to commit."""

import json
from pathlib import Path
from typing import Any

from linearcore.runtime import RECORD_FORMAT, read_record, write_whole
from linearcore_paper.runner._compute import Done
from linearcore_paper.runner._experiment import RecordedRun


def load_run(path: Path, run: RecordedRun) -> Done | None:
    """What the file says about the run; None if it is missing or damaged, or is about other settings or another seed."""
    try:
        record = read_record(path)
        asked = json.loads(json.dumps([run.settings, run.seed]))
        if [record["settings"], record["seed"]] != asked:
            return None
        return Done(record["results"], float(record["seconds"]), dict(record["environment"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_run(path: Path, run: RecordedRun, done: Done, command: str) -> None:
    """Writes a record that `linearcore.runtime.read_record` reads.

    Args:
        path: the file.
        run: what was done.
        done: what came out.
        command: what does it again, without the reader's own folders.
    """
    record: dict[str, Any] = {
        "command": command,
        "environment": done.environment,
        "format": RECORD_FORMAT,
        "results": done.result,
        "seconds": round(done.seconds, 3),
        "seed": run.seed,
        "settings": run.settings,
    }
    # One line a key: a curve of a hundred points does not take a hundred lines, and a diff still shows what has changed.
    lines = [f" {json.dumps(key)}: {_one_line(record[key])}" for key in sorted(record)]
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _one_line(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True)
