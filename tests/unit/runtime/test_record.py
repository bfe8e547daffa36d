"""Records: complete, comparable, and silent about who ran them where."""

import getpass
import json
import platform
import subprocess
from pathlib import Path

import pytest
import torch

import linearcore.runtime._record as records
from linearcore.runtime import check_committed, environment, has_uncommitted_changes, read_record, write_record

SETTINGS = {"rates": [0.0, 0.2], "epochs": 3, "name": "φ"}


def write(path: Path, **changes: object) -> dict:
    arguments = {"command": "linearcore demo", "settings": SETTINGS, "results": {"b": 1, "a": [1.5]}, "seed": 0}
    return write_record(path, **(arguments | changes))


def test_what_is_written_is_what_is_read(tmp_path):
    path = tmp_path / "record.json"
    written = write(path)
    assert read_record(path) == written == json.loads(path.read_text("utf-8"))
    assert set(written) == {"command", "environment", "format", "results", "seed", "settings"}
    assert written["settings"] == SETTINGS


def test_order_of_keys_does_not_depend_on_how_they_were_given(tmp_path):
    write(tmp_path / "one", results={"a": {"y": 1, "x": 2}, "b": []})
    write(tmp_path / "two", results={"b": [], "a": {"x": 2, "y": 1}})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_flat_lists_take_one_line(tmp_path):
    write(tmp_path / "record", results={"accuracy": [[0.1, 0.2], [0.3, 0.4]], "none": {}})
    text = (tmp_path / "record").read_text("utf-8")
    assert "      [0.1, 0.2],\n      [0.3, 0.4]\n" in text and '"none": {}' in text


def test_environment_names_versions_and_hardware():
    found = environment()
    assert found["python"] == platform.python_version() and found["torch"] == torch.__version__
    assert {"commit", "cpu", "cpu_count", "device", "linearcore", "numpy", "platform", "threads"} < set(found)


def test_environment_says_nothing_about_who_and_where(tmp_path):
    write(tmp_path / "record")
    text = (tmp_path / "record").read_text("utf-8")
    values = [str(value) for value in environment().values()]
    assert not any(platform.node() and platform.node() in value for value in values)
    assert not any(getpass.getuser() in value.split() for value in values)
    for folder in (tmp_path, Path(records.__file__).parent, Path.home()):
        assert f"{folder}/" not in text and f'{folder}"' not in text


def test_commit_is_that_of_linearcore_and_of_nothing_else(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    module = tmp_path / "_record.py"
    module.write_text("one")
    monkeypatch.setattr(records, "__file__", str(module))
    assert environment()["commit"] is None, "no repository"
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "other").write_text("x")
    subprocess.run([*git, "add", "other"], check=True)
    subprocess.run([*git, "commit", "-qm", "other"], check=True)
    assert environment()["commit"] is None, "a repository that does not track the file"
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "ours"], check=True)
    commit = environment()["commit"]
    assert commit is not None and len(str(commit)) == 40
    module.write_text("two")
    assert environment()["commit"] == f"{commit}+changes" and has_uncommitted_changes(environment())
    with pytest.raises(ValueError, match=r"`paper` must be run from a checkout .*, got changes in _record.py; commit"):
        check_committed("paper", allow_dirty=False)
    check_committed("paper", allow_dirty=True)


def test_records_that_a_run_writes_are_no_changes(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    names = ("source/_record.py", "paper/results.jsonl", "benchmarks/results/a.json", "paper/a.png", "paper/a.json")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    monkeypatch.setattr(records, "__file__", str(tmp_path / names[0]))
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    for name in names[1:-1]:
        (tmp_path / name).write_text("two")
    (tmp_path / "source" / "untracked.txt").write_text("new")
    check_committed("paper", allow_dirty=False)
    assert not has_uncommitted_changes(environment())
    # In another folder than the file's own, and staged.
    (tmp_path / names[-1]).write_text("two")
    subprocess.run([*git, "add", "."], check=True)
    with pytest.raises(ValueError, match=r"got changes in paper/a.json, source/untracked.txt;"):
        check_committed("paper", allow_dirty=False)


def test_environment_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert environment()["commit"] is None


def test_failed_write_leaves_the_old_record_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(path, seed=1)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ({"loss": [1.0, float("nan")]}, ValueError, r"`record\.results\.loss\[1\]` must be a finite number, got nan"),
        ({"loss": float("inf")}, ValueError, "write None or a string"),
        ({"loss": torch.tensor(1.0)}, TypeError, r"`record\.results\.loss` must be a JSON value, got Tensor; convert it"),
        ({"where": Path("x")}, TypeError, "must be a JSON value"),
    ],
)
def test_messages_when_writing(tmp_path, results, error, message):
    with pytest.raises(error, match=message):
        write(tmp_path / "record", results=results)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "`path` must name a record, got record, which is not JSON; pass a file that linearcore wrote"),
        (b"{", "which is not JSON"),
        (b"[1]", "`path` must name a record of format 1, got record with format None"),
        (b'{"format": 99}', "got record with format 99"),
    ],
)
def test_messages_when_reading(tmp_path, content, message):
    (tmp_path / "record").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_record(tmp_path / "record")
