"""What a training run does with its folder: other runs, damaged files, a full disk."""

import errno
import os

import pytest
import torch

from linearcore.runtime import FolderLock, StoreError, is_store, read_store
from linearcore.tagging import Tagger, Training, train
from tests.tagged_text import sentences

DATA, DEV = sentences(30), sentences(10, seed=1)
SHORT = Training(epochs=2, batch_tokens=64, seed=3, hidden=8)
KIND = "training run of a tagger"


def full_disk_after(monkeypatch, writes):
    """Makes every write of a saved file fail after this many."""
    real, left = os.fsync, [writes]

    def fsync(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def stop_by_a_full_disk(monkeypatch, out, writes):
    """Trains until the disk is full; returns the error."""
    with monkeypatch.context() as patch:
        full_disk_after(patch, writes)
        with pytest.raises(OSError) as error:
            train(DATA, DEV, SHORT, out=out)
    assert error.value.errno == errno.ENOSPC and str(out) in error.value.filename
    return error.value


def same(one, other):
    pairs = zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True)
    return all(torch.equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("fresh", (False, True))
def test_a_second_run_is_refused(tmp_path, fresh, monkeypatch):
    out = tmp_path / "model"
    stop_by_a_full_disk(monkeypatch, out, 2)
    with FolderLock(out):
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        with pytest.raises(ValueError, match="`out` must be used by one run at a time"):
            train(DATA, DEV, SHORT, out=out, fresh=fresh)
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    assert train(DATA, DEV, SHORT, out=out).resumed == (2, 0)
    assert not (out / ".lock").exists()


def test_a_finished_tagger_in_a_read_only_folder(tmp_path, monkeypatch):
    first = train(DATA, DEV, SHORT, out=tmp_path)

    def refuse(lock):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path))

    monkeypatch.setattr(FolderLock, "acquire", refuse)
    again = train(DATA, DEV, SHORT, out=tmp_path)
    assert again.was_finished and same(again.tagger, first.tagger)
    with pytest.raises(PermissionError):
        train(DATA, DEV, SHORT, out=tmp_path, fresh=True)


def test_an_interrupted_run_beside_a_finished_tagger_is_resumed(tmp_path, monkeypatch):
    train(DATA, DEV, Training(epochs=1, hidden=4), out=tmp_path)
    with monkeypatch.context() as patch:
        full_disk_after(patch, 2)
        with pytest.raises(OSError):
            train(DATA, DEV, SHORT, out=tmp_path, fresh=True)
    found = train(DATA, DEV, SHORT, out=tmp_path)
    assert found.resumed == (2, 0) and not found.was_finished
    assert same(Tagger.load(tmp_path), train(DATA, DEV, SHORT).tagger)


def test_a_run_that_cannot_start_leaves_no_folder(tmp_path):
    with pytest.raises(RuntimeError, match="abacus"):
        train(DATA, DEV, SHORT, device="abacus", out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


# A checkpoint has two files: the first epoch is saved with two writes, the second with four.
@pytest.mark.parametrize(("writes", "resumed"), [(1, None), (2, (2, 0)), (3, (2, 0)), (4, (3, 0)), (6, (3, 0))])
def test_a_full_disk_loses_nothing(tmp_path, monkeypatch, writes, resumed):
    out = tmp_path / "model"
    stop_by_a_full_disk(monkeypatch, out, writes)
    assert not is_store(out)
    if resumed is not None:
        state = read_store(out / "checkpoint", KIND).settings["state"]
        assert state["epoch"] + 1 == resumed[0]
        assert len(list((out / "checkpoint").iterdir())) == 2  # Nothing is left of the write that failed.
    found = train(DATA, DEV, SHORT, out=out)
    assert found.resumed == resumed and not found.tagger.model.training
    assert same(found.tagger, train(DATA, DEV, SHORT).tagger) and same(Tagger.load(out), found.tagger)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def change(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", (cut, change, lambda path: path.unlink()), ids=("cut", "changed", "missing"))
@pytest.mark.parametrize("name", ("linearcore.json", "tensors-*.safetensors"))
def test_a_damaged_checkpoint_or_tagger_names_the_way_out(tmp_path, monkeypatch, damage, name):
    out = tmp_path / "model"
    stop_by_a_full_disk(monkeypatch, out, 2)
    for folder in (out / "checkpoint", out):
        if folder == out:
            train(DATA, DEV, SHORT, out=out, fresh=True)
        (path,) = folder.glob(name)
        damage(path)
        if not is_store(folder):
            continue  # Without a manifest there is no checkpoint, and the run starts again.
        with pytest.raises(StoreError, match="--fresh") as error:
            train(DATA, DEV, SHORT, out=out)
        assert str(folder) in str(error.value) and "\n" not in str(error.value)
    assert not train(DATA, DEV, SHORT, out=out, fresh=True).was_finished


def test_a_checkpoint_of_another_kind_names_the_way_out(tmp_path, monkeypatch):
    out = tmp_path / "model"
    stop_by_a_full_disk(monkeypatch, out, 2)
    manifest = out / "checkpoint" / "linearcore.json"
    manifest.write_text(manifest.read_text().replace(KIND, "sandwich"))
    with pytest.raises(StoreError, match="got a sandwich; pass --fresh"):
        train(DATA, DEV, SHORT, out=out)
