"""Files that are replaced: links, permissions, devices and errors."""

import os
import sys

import pytest

from linearcore._atomic import replaced_when_complete


def write(path, text):
    with replaced_when_complete(path) as temporary:
        temporary.write_text(text)


def test_an_error_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), replaced_when_complete(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "before"
        raise KeyboardInterrupt
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions")
def test_a_link_stays_a_link_and_a_private_file_private(tmp_path):
    path, link = tmp_path / "out.csv", tmp_path / "link.csv"
    path.write_text("before")
    path.chmod(0o600)
    link.symlink_to(path)
    with replaced_when_complete(link) as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
        temporary.write_text("after")
    assert link.is_symlink() and path.read_text() == "after" and path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_pipe_is_written_to_and_stays(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write(path, "row")
    assert os.read(reader, 9) == b"row" and path.is_fifo()
    os.close(reader)


def test_an_error_names_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "nowhere" / "out.csv", "x")
    assert caught.value.filename == str(tmp_path / "nowhere" / "out.csv")
