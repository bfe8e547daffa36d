"""Saved models: a folder of safetensors and JSON that can be read on another machine. Nothing is ever unpickled.

A *manifest*, one JSON file, says what the folder holds, who wrote it, and the name and SHA-256 of every other file. Files
that change have their hash in their name and the manifest is put in place last, by renaming: a reader, or the next run after
a power cut, finds the old state or the new one, never a mixture.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from linearcore._extras import require
from linearcore.runtime._record import package_version

MANIFEST = "linearcore.json"
#: Raised by one whenever an older version would misread what this one writes.
FORMAT = 1
_TENSORS = "tensors"
#: Below the folder of a result: the state of the run, until the result is there.
UNFINISHED = "checkpoint"


class StoreError(ValueError):
    """A folder is not what it should be: foreign, damaged, or of another version."""


@dataclass(frozen=True)
class Stored:
    """What a folder holds.

    Attributes:
        settings: JSON values.
        documents: larger JSON values, by name, which have files of their own.
        tensors: by name, on the CPU.
        written_by: versions of linearcore, torch and Python.
    """

    settings: dict[str, Any]
    documents: dict[str, Any]
    tensors: dict[str, Tensor]
    written_by: dict[str, str]


def write_store(
    folder: Path,
    kind: str,
    *,
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    documents: Mapping[str, Any] | None = None,
    files: Sequence[str] = (),
) -> None:
    """Saves into `folder`, which is made if need be; what it held before is replaced, and files of others are left alone.

    Args:
        folder: where to.
        kind: what is saved, in a word; `read_store` asks for the same.
        settings, documents, tensors: as in `Stored`.
        files: paths relative to `folder` of files that are there already and belong to it.

    Raises:
        MissingExtraError: if safetensors is not installed.
        OSError: if something cannot be written.
    """
    require("safetensors", extra="tagging")
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    before = _files_of(folder)
    blobs = {f"{name}.json": json.dumps(value, ensure_ascii=False).encode() for name, value in (documents or {}).items()}
    blobs[f"{_TENSORS}.safetensors"] = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    entries: dict[str, dict[str, str]] = {}
    for name, blob in blobs.items():
        digest = hashlib.sha256(blob).hexdigest()
        stem, _, suffix = name.partition(".")
        entries[stem] = {"file": f"{stem}-{digest[:12]}.{suffix}", "sha256": digest}
        _put(folder / entries[stem]["file"], blob)
    for path in files:
        entries[path] = {"file": path, "sha256": _digest(folder / path)}
    manifest = {
        "kind": kind,
        "format": FORMAT,
        "written_by": {"linearcore": package_version(), "torch": torch.__version__, "python": platform.python_version()},
        "settings": dict(settings),
        "settings_sha256": _settings_digest(settings),
        "files": entries,
    }
    _put(folder / MANIFEST, (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode())
    for old in before - {entry["file"] for entry in entries.values()}:
        (folder / old).unlink(missing_ok=True)


def is_store(folder: Path) -> bool:
    """Whether something was saved there."""
    return (folder / MANIFEST).is_file()


def read_store(folder: Path, kind: str, *, advice: str | None = None) -> Stored:
    """Reads what `write_store` wrote, every file checked against its hash first.

    Args:
        folder, kind: as in `write_store`.
        advice: what to do about a damaged folder, or one of another format; None is to copy it again.

    Raises:
        MissingExtraError: if safetensors is not installed.
        StoreError: in one line, if `folder` holds no such thing, or something in it is missing or damaged.
    """
    require("safetensors", extra="tagging")
    from safetensors import SafetensorError
    from safetensors.torch import load

    manifest = _manifest(folder, kind, advice)
    blobs = {name: _blob(folder, entry, advice) for name, entry in manifest["files"].items()}
    try:
        tensors = load(blobs.pop(_TENSORS))
        documents = {name: json.loads(blob) for name, blob in blobs.items() if "/" not in name and "." not in name}
    except (KeyError, SafetensorError, ValueError) as error:
        raise _damaged(folder, f"a file cannot be read ({type(error).__name__})", advice) from None
    return Stored(manifest["settings"], documents, tensors, manifest["written_by"])


def grouped(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Tensors by what their names begin with, up to the first dot, and then by the rest.

    Example:
        >>> grouped({"model.0.weight": torch.ones(1), "kept.3": torch.zeros(1)})
        {'model': {'0.weight': tensor([1.])}, 'kept': {'3': tensor([0.])}}
    """
    groups: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = tensor
    return groups


def _manifest(folder: Path, kind: str, advice: str | None) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        if is_store(folder / UNFINISHED):
            raise StoreError(f"{folder} holds a training run that is not finished; go on with the command that began it")
        raise StoreError(f"{folder} must be a saved {kind}, got no {MANIFEST} there; name the folder that it was saved to")
    try:
        manifest = json.loads(path.read_bytes())
        found, version = manifest["kind"], manifest["format"]
        parts = manifest["settings"], manifest["files"], manifest["written_by"]
        digest = manifest["settings_sha256"]
    except (ValueError, KeyError, TypeError):
        raise _damaged(folder, f"{MANIFEST} cannot be read", advice) from None
    if found != kind:
        raise StoreError(f"{folder} must be a saved {kind}, got a {found}; name another folder")
    if version != FORMAT:
        writer = parts[2].get("linearcore") if isinstance(parts[2], dict) else parts[2]
        got = f"{version}, written by linearcore {writer}"
        advice = advice or "read it with that version, or save it anew"
        raise StoreError(f"{folder} must be a {kind} of format {FORMAT}, got {got}; {advice}")
    if not all(isinstance(part, dict) for part in parts) or digest != _settings_digest(parts[0]):
        raise _damaged(folder, f"the settings in {MANIFEST} are not those that were saved", advice)
    return dict(manifest)


def _blob(folder: Path, entry: Any, advice: str | None) -> bytes:
    """A file's content, if it is the one that was saved."""
    try:
        name, wanted = str(entry["file"]), entry["sha256"]
    except (TypeError, KeyError):
        raise _damaged(folder, f"{MANIFEST} cannot be read", advice) from None
    # A manifest from elsewhere must not make us read outside its folder.
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise _damaged(folder, f"{name!r} lies outside", advice)
    try:
        blob = (folder / name).read_bytes()
    except OSError:
        raise _damaged(folder, f"{name} is missing", advice) from None
    if hashlib.sha256(blob).hexdigest() != wanted:
        raise _damaged(folder, f"{name} is not the file that was saved", advice)
    return blob


def _damaged(folder: Path, what: str, advice: str | None) -> StoreError:
    return StoreError(f"{folder} is damaged: {what}; {advice or 'copy the whole folder again, or save it anew'}")


def _files_of(folder: Path) -> set[str]:
    """The files with hashes in their names that a manifest already there speaks of."""
    try:
        entries = json.loads((folder / MANIFEST).read_bytes())["files"]
        return {entry["file"] for name, entry in entries.items() if entry["file"] != name and "/" not in entry["file"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _put(path: Path, blob: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            stream.write(blob)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _settings_digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(settings), sort_keys=True, ensure_ascii=False).encode()).hexdigest()
