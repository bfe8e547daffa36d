"""One run at a time in a folder, and no lock after the end of a process."""

import os
import signal

import pytest

from linearcore.runtime import Checkpoint, FolderLock


def refused(folder):
    with pytest.raises(ValueError, match="`out` must be used by one run at a time") as error:
        FolderLock(folder).acquire()
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


def test_a_second_lock_is_refused_until_the_first_is_released(tmp_path):
    first = FolderLock(tmp_path)
    first.acquire()
    first.acquire()  # Does nothing.
    refused(tmp_path)
    refused(tmp_path)
    first.release()
    first.release()
    with Checkpoint(tmp_path, "run", {}, "").lock():
        refused(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(KeyError), FolderLock(tmp_path):
        raise KeyError
    FolderLock(tmp_path).acquire()


def test_a_new_folder_that_stays_empty_is_removed(tmp_path):
    with FolderLock(tmp_path / "empty"):
        assert (tmp_path / "empty").is_dir()
    with FolderLock(tmp_path / "used"):
        (tmp_path / "used" / "file").touch()
    (tmp_path / "own").mkdir()
    with FolderLock(tmp_path / "own"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"used", "own"}


def test_a_folder_that_cannot_be_made_is_an_os_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        FolderLock(tmp_path / "file").acquire()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="wants fork")
def test_a_killed_process_leaves_no_lock(tmp_path):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # Holds the lock until it is killed.
        try:
            lock = FolderLock(tmp_path)
            lock.acquire()
            os.write(writer, b"x")
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(reader, 1) == b"x"
        refused(tmp_path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
    assert (tmp_path / ".lock").exists()
    with FolderLock(tmp_path):
        refused(tmp_path)
