import errno
import json
import os

import pytest
import torch

from linearcore.runtime._store import MANIFEST, StoreError, is_store, read_store, write_store

TENSORS = {"weight": torch.arange(6.0).view(2, 3), "count": torch.tensor(7), "half": torch.ones(3, dtype=torch.bfloat16)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "extra.txt").write_text("kept")
    documents = {"words": ["a", "ä", "\u200b"]}
    write_store(tmp_path, "thing", settings={"size": 2}, tensors=TENSORS, documents=documents, files=["deep/extra.txt"])
    return tmp_path


def weights_file(folder):
    return next(folder.glob("tensors-*.safetensors"))


def test_what_is_written_is_read(folder):
    stored = read_store(folder, "thing")
    assert stored.settings == {"size": 2}
    assert stored.documents == {"words": ["a", "ä", "\u200b"]}
    assert stored.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert stored.tensors[name].dtype == tensor.dtype
        assert torch.equal(stored.tensors[name], tensor)
    assert set(stored.written_by) == {"linearcore", "torch", "python"}


def test_tensors_that_are_views_are_written(tmp_path):
    table = torch.arange(12.0).view(3, 4)
    write_store(tmp_path, "thing", settings={}, tensors={"turned": table.t()})
    assert torch.equal(read_store(tmp_path, "thing").tensors["turned"], table.t())


def test_writing_again_replaces_and_leaves_strangers_alone(folder):
    (folder / "notes.txt").write_text("mine")
    write_store(folder, "thing", settings={"size": 3}, tensors={"weight": torch.zeros(2)})
    assert read_store(folder, "thing").settings == {"size": 3}
    names = {path.name for path in folder.iterdir()}
    assert {"notes.txt", "deep", MANIFEST} < names
    assert len(names) == 4


def test_a_write_that_fails_leaves_what_was_there(folder, monkeypatch):
    real = os.replace

    def full(source, target):
        if str(target).endswith(MANIFEST):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_store(folder, "thing", settings={"size": 9}, tensors={"weight": torch.zeros(9)})
    monkeypatch.undo()
    stored = read_store(folder, "thing")
    assert stored.settings == {"size": 2} and torch.equal(stored.tensors["weight"], TENSORS["weight"])
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_one_changed_byte_is_noticed_in_every_file(folder, where):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 4
    for path in files:
        blob = bytearray(path.read_bytes())
        place = {"first": 0, "middle": len(blob) // 2, "last": len(blob) - 2}[where]
        kept = bytes(blob)
        blob[place] ^= 1
        path.write_bytes(bytes(blob))
        with pytest.raises(StoreError) as caught:
            read_store(folder, "thing")
        assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
        path.write_bytes(kept)
    read_store(folder, "thing")


def test_a_missing_or_cut_file_is_noticed(folder):
    path = weights_file(folder)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(StoreError, match="does not match its SHA-256; copy the whole folder"):
        read_store(folder, "thing")
    path.unlink()
    with pytest.raises(StoreError, match=f"{path.name} is missing"):
        read_store(folder, "thing")


def test_a_folder_without_read_permission(folder, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(StoreError, match=f"{MANIFEST} cannot be read: permission denied"):
        read_store(folder, "thing")


def test_foreign_folders_are_refused(tmp_path, folder):
    with pytest.raises(StoreError, match=r"must be a saved thing, got a folder without linearcore\.json"):
        read_store(tmp_path / "deep", "thing")
    with pytest.raises(StoreError, match="must be a saved other, got a thing"):
        read_store(folder, "other")
    for text in ("[]", "null", "{}", "no json", '{"kind": "thing", "format": 1}'):
        (folder / MANIFEST).write_text(text)
        with pytest.raises(StoreError, match="cannot be read"):
            read_store(folder, "thing")


def changed(folder, change):
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_another_format_is_refused(folder):
    changed(folder, lambda manifest: manifest.update(format=99))
    with pytest.raises(StoreError, match=r"must be a thing of format 1, got 99, written by linearcore .*; read it with"):
        read_store(folder, "thing")


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside", "deep/../../outside"])
def test_a_manifest_cannot_name_files_elsewhere(folder, name):
    changed(folder, lambda manifest: manifest["files"]["words"].update(file=name))
    with pytest.raises(StoreError, match="outside the folder"):
        read_store(folder, "thing")


def test_a_pickle_is_never_opened(folder, tmp_path):
    ran = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return os.system, (f"touch {ran}",)

    path = weights_file(folder)
    torch.save({"weight": Trap()}, path)
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    changed(folder, lambda manifest: manifest["files"]["tensors"].update(sha256=digest))
    with pytest.raises(StoreError, match="cannot be read"):
        read_store(folder, "thing")
    assert not ran.exists()


def test_is_store(folder, tmp_path):
    assert is_store(folder)
    assert not is_store(tmp_path / "deep")
