"""Saved models: a folder of safetensors and JSON files. Does not use pickle.

A *manifest*, one JSON file, contains the settings, the library versions, and the name and SHA-256 of every other file.
File names contain the hash, and the manifest is replaced atomically at the end: a reader always sees a consistent state,
even after a crash.
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from linearcore._atomic import replaced_when_complete
from linearcore._extras import require
from linearcore.runtime._record import package_version

MANIFEST = "linearcore.json"
#: Format version; incremented on incompatible changes.
FORMAT_VERSION = 1
_TENSORS = "tensors"
#: Subfolder of a result folder with the state of the unfinished run.
CHECKPOINT_FOLDER = "checkpoint"


class StoreError(ValueError):
    """A folder is not a saved model, is damaged, or has another format version."""


@dataclass(frozen=True)
class StoreContents:
    """Contents of a folder written by `write_store`.

    Attributes:
        settings: JSON values.
        documents: larger JSON values by name, each in a separate file.
        tensors: tensors by name, on the CPU.
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
    """Saves settings, documents and tensors into `folder`. Replaces an earlier save; keeps all other files.

    Args:
        folder: target folder, created if needed.
        kind: type of the content, for example "tagger"; `read_store` checks it.
        settings, documents, tensors: as in `StoreContents`.
        files: existing files to add to the manifest, as paths relative to `folder`.

    Raises:
        MissingExtraError: if safetensors is not installed.
        OSError: if a file cannot be written; an earlier save stays valid.
    """
    require("safetensors", extra="tagging")
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    old_files = _hashed_files(folder)
    blobs = {f"{name}.json": json.dumps(value, ensure_ascii=False).encode() for name, value in (documents or {}).items()}
    blobs[f"{_TENSORS}.safetensors"] = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    entries: dict[str, dict[str, str]] = {}
    contents: dict[str, bytes] = {}
    for name, blob in blobs.items():
        digest = hashlib.sha256(blob).hexdigest()
        stem, _, suffix = name.partition(".")
        entries[stem] = {"file": f"{stem}-{digest[:12]}.{suffix}", "sha256": digest}
        contents[entries[stem]["file"]] = blob
    for path in files:
        entries[path] = {"file": path, "sha256": _digest(folder / path)}
    manifest = {
        "kind": kind,
        "format": FORMAT_VERSION,
        "written_by": {"linearcore": package_version(), "torch": torch.__version__, "python": platform.python_version()},
        "settings": dict(settings),
        "settings_sha256": _settings_digest(settings),
        "files": entries,
    }
    try:
        for name, blob in contents.items():
            _write_atomically(folder / name, blob)
        _write_atomically(folder / MANIFEST, (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode())
    except OSError:
        _remove(folder, contents.keys() - old_files)  # For example a full disk. The earlier save stays as it was.
        raise
    _remove(folder, old_files - contents.keys())


def is_store(folder: Path) -> bool:
    """Whether the folder contains a manifest."""
    return (folder / MANIFEST).is_file()


def store_digest(folder: Path) -> str:
    """Returns a SHA-256 of everything that `write_store` saved in the folder.

    Raises:
        OSError: if there is no manifest.
    """
    # The manifest has the settings and the hashes of all files.
    return _digest(folder / MANIFEST)


def read_store(folder: Path, kind: str, *, advice: str | None = None) -> StoreContents:
    """Reads a folder written by `write_store` and checks the hash of every file.

    Args:
        folder, kind: as in `write_store`.
        advice: end of the error message for a damaged folder or another format version; None advises to copy it again.

    Raises:
        MissingExtraError: if safetensors is not installed.
        StoreError: if `folder` is not a saved `kind`, or a file in it is missing or damaged.
    """
    require("safetensors", extra="tagging")
    from safetensors import SafetensorError
    from safetensors.torch import load

    manifest = _read_manifest(folder, kind, advice)
    blobs = {name: _read_verified(folder, entry, advice) for name, entry in manifest["files"].items()}
    try:
        tensors = load(blobs.pop(_TENSORS))
        documents = {name: json.loads(blob) for name, blob in blobs.items() if "/" not in name and "." not in name}
    except (KeyError, SafetensorError, ValueError) as error:
        raise _damage_error(folder, f"a file cannot be read ({type(error).__name__})", advice) from None
    return StoreContents(manifest["settings"], documents, tensors, manifest["written_by"])


def group_tensors(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """Groups tensors by their name up to the first dot; inside a group, the rest of the name is the key.

    Example:
        >>> group_tensors({"model.0.weight": torch.ones(1), "kept.3": torch.zeros(1)})
        {'model': {'0.weight': tensor([1.])}, 'kept': {'3': tensor([0.])}}
    """
    groups: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = tensor
    return groups


def _read_manifest(folder: Path, kind: str, advice: str | None) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        if is_store(folder / CHECKPOINT_FOLDER):
            raise StoreError(f"{folder} contains an unfinished training run; finish it with the command that started it")
        got = f"a folder without {MANIFEST}" if folder.is_dir() else "no such folder"
        raise StoreError(f"{folder} must be a saved {kind}, got {got}; pass the folder where it was saved")
    try:
        manifest = json.loads(path.read_bytes())
        saved_kind, version = manifest["kind"], manifest["format"]
        parts = manifest["settings"], manifest["files"], manifest["written_by"]
        digest = manifest["settings_sha256"]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(f"{path} cannot be read: {reason}; {advice or 'check its permissions'}") from None
    except (ValueError, KeyError, TypeError):
        raise _damage_error(folder, f"{MANIFEST} cannot be read", advice) from None
    if saved_kind != kind:
        raise StoreError(f"{folder} must be a saved {kind}, got a {saved_kind}; {advice or 'pass another folder'}")
    if version != FORMAT_VERSION:
        writer = parts[2].get("linearcore") if isinstance(parts[2], dict) else parts[2]
        got = f"{version}, written by linearcore {writer}"
        advice = advice or "read it with that version, or save it again"
        raise StoreError(f"{folder} must be a {kind} of format {FORMAT_VERSION}, got {got}; {advice}")
    if not all(isinstance(part, dict) for part in parts) or digest != _settings_digest(parts[0]):
        raise _damage_error(folder, f"the settings in {MANIFEST} do not match their hash", advice)
    return dict(manifest)


def _read_verified(folder: Path, entry: Any, advice: str | None) -> bytes:
    """Reads a file and checks its hash."""
    try:
        name, expected_sha256 = str(entry["file"]), entry["sha256"]
    except (TypeError, KeyError):
        raise _damage_error(folder, f"{MANIFEST} cannot be read", advice) from None
    # Security: reject paths outside the folder.
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise _damage_error(folder, f"{name!r} points outside the folder", advice)
    try:
        blob = (folder / name).read_bytes()
    except OSError:
        raise _damage_error(folder, f"{name} is missing", advice) from None
    if hashlib.sha256(blob).hexdigest() != expected_sha256:
        raise _damage_error(folder, f"{name} does not match its SHA-256", advice)
    return blob


def _damage_error(folder: Path, what: str, advice: str | None) -> StoreError:
    return StoreError(f"{folder} is damaged: {what}; {advice or 'copy the whole folder again, or save it again'}")


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _hashed_files(folder: Path) -> set[str]:
    """Returns the files of an existing manifest whose names contain their hash."""
    try:
        entries = json.loads((folder / MANIFEST).read_bytes())["files"]
        return {entry["file"] for name, entry in entries.items() if entry["file"] != name and "/" not in entry["file"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def _write_atomically(path: Path, blob: bytes) -> None:
    with replaced_when_complete(path) as temporary:
        temporary.write_bytes(blob)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _settings_digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(settings), sort_keys=True, ensure_ascii=False).encode()).hexdigest()
