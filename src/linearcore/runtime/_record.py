"""Records: JSON files with the command, settings, seed, environment and results of a run.

A record contains no host name, user name or absolute path, so it can be published. Keys are sorted and a list of numbers
takes one line, so two records can be compared with `diff`.
"""

import json
import math
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any

from linearcore._atomic import replaced_when_complete
from linearcore._checks import complaint

#: Format version; incremented on incompatible changes.
RECORD_FORMAT = 1
#: Suffix of the commit in a record whose code had uncommitted changes.
_CHANGES = "+changes"


def environment() -> dict[str, str | int | None]:
    """Returns versions, platform, processor, device and commit, as stored in a record.

    `commit` is None outside a checkout of linearcore. It ends in "+changes" if tracked files differ from the commit; records
    and figures are ignored, because a run may write them into the checkout. `device` is the first CUDA device, or "cpu".
    """
    import numpy
    import torch

    return {
        "commit": _commit(),
        "cpu": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "device": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu",
        "linearcore": package_version(),
        "numpy": numpy.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def has_uncommitted_changes(environment: Mapping[str, Any]) -> bool:
    """Whether a record with this environment was made from code with uncommitted changes."""
    return str(environment.get("commit")).endswith(_CHANGES)


def check_committed(name: str, allow_dirty: bool) -> None:
    """Raises if the checkout has uncommitted changes, so that a record names the exact code that made it.

    Args:
        name: option or file that requires a clean checkout, for the error message.
        allow_dirty: skip the check; the commit in the record then ends in "+changes".

    Raises:
        ValueError: if tracked files of linearcore's checkout have uncommitted changes and `allow_dirty` is False.
    """
    changed = [] if allow_dirty or _commit() is None else _changed_files()
    if changed:
        files = f"changes in {', '.join(changed[:3])}{', …' if len(changed) > 3 else ''}"
        advice = "commit them, or pass --allow-dirty, which the record will show"
        raise ValueError(complaint(name, "be run from a checkout without uncommitted changes", files, advice))


def package_version() -> str:
    """Returns the installed version of linearcore, or "uninstalled" in a checkout that is not installed."""
    try:
        return version("linearcore")
    except PackageNotFoundError:
        return "uninstalled"


def write_record(
    path: str | PurePath, *, command: str, settings: Mapping[str, Any], results: Any, seed: int | None
) -> dict[str, Any]:
    """Writes a record atomically and returns it.

    Args:
        path: the file to write; its folder must exist.
        command: the command of the run, for example "linearcore demo".
        settings: everything that determines the results, as JSON values. Leave out file paths.
        results: the results, as JSON values. Use None or a string for NaN and infinities.
        seed: the first seed, or None if the run has no random numbers.

    Raises:
        TypeError: if a value is not a JSON value, for example a tensor or a path.
        ValueError: if a number is not finite.
        OSError: if the file cannot be written.
    """
    record: dict[str, Any] = {
        "command": command,
        "environment": environment(),
        "format": RECORD_FORMAT,
        "results": results,
        "seed": seed,
        "settings": settings,
    }
    text = _encode(record, "record", "") + "\n"
    write_atomically(Path(path), text)
    read_back: dict[str, Any] = json.loads(text)
    return read_back


def read_record(path: str | PurePath) -> dict[str, Any]:
    """Reads a record written by `write_record`.

    Raises:
        ValueError: if the file is not a record, or has an unknown format version.
    """
    name = PurePath(path).name
    advice = "pass a file that linearcore wrote"
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(complaint("path", "name a record", f"{name}, which is not JSON", advice)) from None
    file_format = record.get("format") if isinstance(record, dict) else None
    if file_format != RECORD_FORMAT:
        raise ValueError(
            complaint("path", f"name a record of format {RECORD_FORMAT}", f"{name} with format {file_format}", advice)
        )
    return dict(record)


def write_atomically(path: Path, text: str) -> None:
    """Writes `text` to a temporary file and renames it to `path`, so a reader never sees an incomplete file.

    Raises:
        OSError: if the file cannot be written.
    """
    with replaced_when_complete(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _encode(value: Any, name: str, indent: str) -> str:
    """Formats JSON with sorted keys, one key per line, and flat lists on one line."""
    if isinstance(value, Mapping):
        items = [
            f"{indent}  {json.dumps(str(key))}: {_encode(value[key], f'{name}.{key}', indent + '  ')}"
            for key in sorted(value, key=str)
        ]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}" if items else "{}"
    if isinstance(value, list | tuple):
        parts = [_encode(item, f"{name}[{index}]", indent + "  ") for index, item in enumerate(value)]
        if not any(isinstance(item, Mapping | list | tuple) for item in value):
            return "[" + ", ".join(parts) + "]"
        return "[\n" + ",\n".join(f"{indent}  {part}" for part in parts) + f"\n{indent}]"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(complaint(name, "be a finite number", value, "write None or a string instead"))
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(
        complaint(name, "be a JSON value", type(value).__name__, "convert it with `float`, `int`, `str` or `.tolist()`")
    )


def _cpu_model() -> str:
    """Returns the model name of the processor, or its architecture if the system does not list the name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str | None:
    """Returns the commit of the checkout that contains this file, or None if there is none.

    `ls-files` checks that the file is tracked: an installed copy can be inside the repository of another project.
    """
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = _git("rev-parse", "HEAD")
    return commit + (_CHANGES if _changed_files() else "") if commit else None


def _changed_files() -> list[str]:
    """Lists the tracked files that differ from the commit, without records and figures."""
    exclusions = [f":(top,exclude){pattern}" for pattern in ("*.jsonl", "*/results/*", "*.png", "*.svg")]
    return (_git("diff", "--name-only", "HEAD", "--", ":(top)", *exclusions) or "").splitlines()


def _git(*arguments: str) -> str | None:
    """Runs git in the folder of this file; returns its output, or None without git, repository or output within 10 s."""
    try:
        process = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
