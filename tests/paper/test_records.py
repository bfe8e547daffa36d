"""The results file: a killed run loses at most one line, and several runs can share a file."""

import json
import os
import random
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from linearcore.cli import main
from linearcore.runtime import _record, write_atomically, write_record
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report import write_report
from linearcore_paper.runner import ResultsFile, Settings, _records, _run, prepare
from tests.paper.stub_runs import NAMES, STUB

#: A copy of this process starts at once, and is killed or ends before it can use what others hold.
forked = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def file(tmp_path) -> ResultsFile:
    (tmp_path / "stub").mkdir()
    return ResultsFile(tmp_path, "stub")


def save_many(folder: Path, name: str, count: int, told: int) -> None:
    """Saves parts NAME-0, NAME-1, …, and tells each when it is saved. Every fifth is saved twice, to replace its line."""
    file = ResultsFile(folder, "stub")
    for number in range(count):
        for _ in range(2 if number % 5 == 0 else 1):
            file.save({"part": f"{name}-{number}", "results": {"text": "x" * 20_000, "number": number}})
        os.write(told, f"{number}\n".encode())


def again(file: ResultsFile) -> ResultsFile:
    return ResultsFile(file.path.parents[1], "stub")


def lines(file: ResultsFile) -> list[str]:
    return [json.loads(line)["part"] for line in file.path.read_text("utf-8").splitlines()]


@forked
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_run_loses_at_most_one_line(file):
    wait, said = random.Random(0), 0
    for name in map(str, range(25)):
        reader, told = os.pipe()
        process = get_context("fork").Process(target=save_many, args=(file.path.parents[1], name, 10**6, told))
        process.start()
        os.close(told)
        with open(reader) as lines_told:
            first = lines_told.readline()  # A busy machine may take long to start the process.
            time.sleep(wait.uniform(0.0, 0.1))
            process.kill()
            process.join()
            saved = {f"{name}-{number.strip()}" for number in (first, *lines_told)}
        kept = {part for part in again(file).parts if part.startswith(f"{name}-")}
        # What was told is there; the one that was being written may be.
        assert saved <= kept and len(kept - saved) <= 1
        said += len(saved)
    parts = again(file).parts
    assert 25 <= said <= len(parts) and all(len(record["results"]["text"]) == 20_000 for record in parts.values())


@forked
@pytest.mark.skipif(sys.platform == "win32", reason="no lock")
def test_runs_that_share_a_file_keep_each_others_lines(file):
    nowhere = os.open(os.devnull, os.O_WRONLY)
    arguments = [(file.path.parents[1], name, 25, nowhere) for name in "ab"]
    processes = [get_context("fork").Process(target=save_many, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    os.close(nowhere)
    assert sorted(lines(file)) == sorted(f"{name}-{number}" for name in "ab" for number in range(25))


@pytest.mark.skipif(sys.platform == "win32", reason="no lock")
def test_who_waited_for_a_file_that_was_replaced_waits_for_the_new_one(file):
    file.save({"part": "a", "results": 1})
    other = ResultsFile(file.path.parents[1], "stub")
    with _records._locked(file.path):
        thread = threading.Thread(target=other.save, args=({"part": "b", "results": 2},))
        thread.start()
        time.sleep(0.1)
        write_atomically(file.path, file.path.read_text("utf-8"))
        new = _records._locked(file.path)
        new.__enter__()
    thread.join(0.2)
    assert thread.is_alive() and lines(file) == ["a"]
    new.__exit__(None, None, None)
    thread.join()
    assert lines(file) == ["a", "b"]


@pytest.mark.parametrize("size", [1, 20, -1])
def test_an_incomplete_last_line_is_dropped_with_a_message(file, size, capsys):
    file.save({"part": "a", "results": 1})
    file.save({"part": "b", "results": 2})
    whole = file.path.read_bytes()
    file.path.write_bytes(whole + whole.splitlines()[0].replace(b'"a"', b'"c"')[:size])
    torn = again(file)
    err = capsys.readouterr().err
    assert err == f"linearcore: {file.path}: dropped the last line, which a killed run left incomplete\n"
    assert list(torn.parts) == ["a", "b"]
    torn.save({"part": "d", "results": 4})
    assert lines(file) == ["a", "b", "d"] and capsys.readouterr().err == ""


def test_a_last_line_that_lacks_only_its_line_break_is_kept(file, capsys):
    file.save({"part": "a", "results": 1})
    file.path.write_bytes(file.path.read_bytes().removesuffix(b"\n"))
    again(file).save({"part": "b", "results": 2})
    assert lines(file) == ["a", "b"] and capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"part": "x"}', b'{"part": "", "format": 9}', b'{"format": 1}', b"\xff"]
)
def test_another_damaged_line_is_named(file, line):
    file.save({"part": "a", "results": 1})
    file.path.write_bytes(file.path.read_bytes() + line + b"\n")
    with pytest.raises(ValueError, match=r"must hold a record in every line, got none in line 2; delete that line"):
        again(file)


def test_a_line_is_replaced_where_it_is_and_nothing_is_left_behind(file, monkeypatch):
    for part in ("a", None, "b"):
        file.save({"part": part, "results": 1})
    file.save({"part": "a", "results": {"z": 1, "a": 2}})
    assert lines(file) == ["a", None, "b"]
    # The order inside a result is that in which it was computed.
    assert list(again(file).parts["a"]["results"]) == ["z", "a"]
    before = file.path.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        file.save({"part": "b", "results": 3})
    assert file.path.read_bytes() == before and [path.name for path in file.path.parent.iterdir()] == ["results.jsonl"]


def fail(*_: object) -> None:
    raise OSError(28, "disk full")


def test_lines_are_sorted_as_the_parts(file):
    for part in ("b", None, "other", "a"):
        file.save({"part": part, "results": 1})
    file.sort(["a", "b", "missing"])
    assert lines(file) == ["a", "b", "other", None] and again(file).conclusion is not None


@pytest.mark.parametrize("name", ["stub", "stub-runs"])
def test_files_of_an_earlier_version_are_taken_over_once(tmp_path, capsys, name):
    old = tmp_path / name
    (old / "parts").mkdir(parents=True)
    settings = {"data": "0123abcd", "rate": 1, "sizes": [1, 2]}
    for path in (old / "parts" / "tune-1.json", old / "results.json"):
        record = write_record(path, command="c", settings=settings, results={"score": 1}, seed=0)
        path.write_text(json.dumps(record | {"seconds": 1.5}))
    (old / "parts" / "plain.json").write_text('{"key": "k", "result": 1, "seconds": 0.1}')
    new = tmp_path / name.replace("-", "_")
    for told in (f"linearcore: {new / 'results.jsonl'}: took over 2 of 3 files of an earlier version\n", ""):
        [job] = prepare([replace(STUB, name=name)], Settings(), tmp_path)
        assert list(job.file.parts) == ["tune-1"] and job.file.conclusion["results"] == {"score": 1}
        assert capsys.readouterr().err == told
    assert {path.name for path in old.iterdir()} - {"results.jsonl"} == {"results.json.converted", "parts.converted"}


def test_the_report_refuses_files_of_an_earlier_version(tmp_path):
    (tmp_path / "vanishing-core").mkdir()
    (tmp_path / "vanishing-core" / "results.json").write_text("{}")
    with pytest.raises(ValueError, match="of an earlier version; `linearcore reproduce vanishing-core` converts it"):
        write_report(tmp_path)


def test_a_part_is_saved_where_files_cannot_be_locked(file, monkeypatch, capsys):
    monkeypatch.setattr(_records.fcntl, "flock", fail)
    file.save({"part": "a", "results": 1})
    assert lines(file) == ["a"] and f"{file.path}: no lock (disk full); do not let" in capsys.readouterr().err


# Uncommitted changes.


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setattr(_run, "save_figure", lambda *figure: None)
    monkeypatch.setitem(EXPERIMENTS, "stub", STUB)
    monkeypatch.setattr(_record, "_commit", lambda: "0123abcd" + ("+changes" if _record._changed_files() else ""))
    (tmp_path / "data").mkdir()
    return tmp_path


def call(place, *words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "stub", "--data", str(place / "data"), "--out", str(place / "out"), *words])
    return stop.value.code


def test_uncommitted_changes_are_refused_at_paper_scale_unless_allowed_and_then_marked(place, monkeypatch, capsys):
    changed = ["a.py", "b.py", "c.py", "d.py"]
    monkeypatch.setattr(_record, "_changed_files", lambda: changed)
    assert call(place, "--scale", "paper") == 2
    told = "`--scale paper` must be run from a checkout without uncommitted changes, got changes in a.py, b.py, c.py, …;"
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1 and not (place / "out").exists()
    assert call(place, "--scale", "smoke") == 0
    assert call(place, "--scale", "paper", "--fresh", "--allow-dirty") == 0
    assert "6 of 7 parts were made with uncommitted changes" in capsys.readouterr().out
    assert call(place, "--list") == 0
    assert "    records: 7, 7 made with uncommitted changes\n" in capsys.readouterr().out
    changed.clear()
    assert call(place, "--scale", "paper", "--fresh", "--parts", "tune-*") == 0
    assert "3 of 7 parts" in capsys.readouterr().out
    assert call(place, "--list", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["records"], row["with_uncommitted_changes"]) == (7, 3)
    settings = ResultsFile(place / "out", "stub").conclusion["settings"]
    assert settings["runs_with_uncommitted_changes"] == 3 and len(NAMES) == 7
