"""Records: what was run, with which settings and seed, on what, and what came out, as one small JSON file.

A record can be published as it is: it holds no host name, no user name and no absolute path. Keys are sorted, and a
list of numbers takes one line, so that two records can be compared with `diff`.
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

from linearcore._checks import complaint

#: Raised by one whenever a reader of the old records would misread the new ones.
RECORD_FORMAT = 1
#: What follows the commit in a record whose code was not committed.
_CHANGES = "+changes"


def environment() -> dict[str, str | int | None]:
    """What the numbers depend on besides the code: versions, platform, processor, device, commit.

    `commit` is None outside a checkout of linearcore, and ends in "+changes" if tracked files differ from it; records and
    pictures, which a run may write into the checkout, do not count. `device` is the name of the first CUDA device, or "cpu".
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


def made_with_changes(environment: Mapping[str, Any]) -> bool:
    """Whether the environment of a record says that the code had uncommitted changes."""
    return str(environment.get("commit")).endswith(_CHANGES)


def check_committed(name: str, allow_dirty: bool) -> None:
    """Refuses to make a record that is worth keeping from code that no commit has.

    Args:
        name: the option or file that asks for such a record, for the message.
        allow_dirty: whether to go on all the same; the record's commit then ends in "+changes".

    Raises:
        ValueError: if tracked files of linearcore's checkout have uncommitted changes and `allow_dirty` is False.
    """
    changed = [] if allow_dirty or _commit() is None else _changed_files()
    if changed:
        found = f"changes in {', '.join(changed[:3])}{', …' if len(changed) > 3 else ''}"
        advice = "commit them, or pass --allow-dirty and the record says so"
        raise ValueError(complaint(name, "be run from a checkout without uncommitted changes", found, advice))


def package_version() -> str:
    """The installed version of linearcore; "uninstalled" when it is run from a checkout that was never installed."""
    try:
        return version("linearcore")
    except PackageNotFoundError:
        return "uninstalled"


def write_record(
    path: str | PurePath, *, command: str, settings: Mapping[str, Any], results: Any, seed: int | None
) -> dict[str, Any]:
    """Writes a record and returns it. Readers see the old file or the whole new one, never a part.

    Args:
        path: the file to write; its folder must exist.
        command: what was run, for example "linearcore demo".
        settings: what decides the results, as JSON values. Leave out where files lie.
        results: what came out, as JSON values; infinities and NaN are no JSON, write None or a word.
        seed: the first seed, or None if nothing was drawn.

    Raises:
        TypeError: if something in it is no JSON value, a tensor or a path for example.
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
    write_whole(Path(path), text)
    read_back: dict[str, Any] = json.loads(text)
    return read_back


def read_record(path: str | PurePath) -> dict[str, Any]:
    """Reads what `write_record` wrote.

    Raises:
        ValueError: if the file is no record, or one of a format that this version does not know.
    """
    name = PurePath(path).name
    advice = "pass a file that linearcore wrote"
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError(complaint("path", "name a record", f"{name}, which is no JSON", advice)) from None
    found = record.get("format") if isinstance(record, dict) else None
    if found != RECORD_FORMAT:
        raise ValueError(
            complaint("path", f"name a record of format {RECORD_FORMAT}", f"{name} with format {found}", advice)
        )
    return dict(record)


def write_whole(path: Path, text: str) -> None:
    """Puts `text` into `path` by renaming a complete file over it: readers see the old file or the whole new one.

    Raises:
        OSError: if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _encode(value: Any, name: str, indent: str) -> str:
    """JSON with sorted keys, one key a line, and flat lists on one line."""
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
        raise ValueError(complaint(name, "be a finite number", value, "write None or a word for it"))
    if value is None or isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(
        complaint(name, "be a JSON value", type(value).__name__, "convert it with `float`, `int`, `str` or `.tolist()`")
    )


def _cpu_model() -> str:
    """The processor's name as its maker writes it, or the bare architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the checkout this file belongs to.

    `ls-files` asks whether the file is tracked: an installed copy can lie inside the repository of another project.
    """
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = _git("rev-parse", "HEAD")
    return commit + (_CHANGES if _changed_files() else "") if commit else None


def _changed_files() -> list[str]:
    """Tracked files that differ from the commit, other than records and pictures."""
    aside = [f":(top,exclude){pattern}" for pattern in ("*.jsonl", "*/results/*", "*.png", "*.svg")]
    return (_git("diff", "--name-only", "HEAD", "--", ":(top)", *aside) or "").splitlines()


def _git(*arguments: str) -> str | None:
    """What git answers about this file's folder, or None if there is no git, no repository, or no answer within seconds."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
