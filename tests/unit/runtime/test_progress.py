"""Progress: quiet in logs, bars on terminals."""

import io

import pytest

from linearcore.runtime import Progress, track
from tests.fresh_python import fresh_python


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_track_yields_everything_and_writes_one_line_to_stderr(capsys):
    assert list(track([3, 1, 2], "sorting")) == [3, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sorting: 3 steps in ") and err.count("\n") == 1


def test_track_takes_an_iterator_of_unknown_length(capsys):
    assert list(track(iter("ab"), "letters")) == ["a", "b"]
    assert "letters: 2 steps" in capsys.readouterr().err


def test_a_terminal_without_rich_gets_lines(monkeypatch):
    monkeypatch.setattr("linearcore.runtime._progress.find_spec", lambda name: None)
    terminal = Terminal()
    with Progress(terminal) as progress:
        assert list(progress.track("ab", "letters")) == ["a", "b"]
    assert terminal.getvalue().startswith("letters: 2 steps in ") and terminal.getvalue().count("\n") == 1


def test_nested_parts_are_indented_and_finish_inside_out():
    log = io.StringIO()
    with Progress(log) as progress:
        for _ in progress.track(range(2), "outer"):
            with progress.part("inner", total=5) as part:
                part.advance(2)
                part.advance(3)
    assert [line.split(" in ")[0] for line in log.getvalue().splitlines()] == [
        "  inner: 5 steps",
        "  inner: 5 steps",
        "outer: 2 steps",
    ]


def test_description_can_change():
    log = io.StringIO()
    with Progress(log) as progress, progress.part("first") as part:
        part.describe("second")
    assert log.getvalue().startswith("second: 0 steps")


def test_a_line_stays_in_logs_and_on_terminals():
    for stream in (io.StringIO(), Terminal()):
        with Progress(stream) as progress, progress.part("work", total=2) as part:
            part.advance()
            progress.print("[1] half of it is done")
        assert "[1] half of it is done" in stream.getvalue()


def test_part_that_fails_is_not_reported_as_finished():
    log = io.StringIO()
    with pytest.raises(RuntimeError, match="stop"), Progress(log) as progress, progress.part("work"):
        raise RuntimeError("stop")
    assert log.getvalue() == ""


def test_loop_left_early_is_not_reported_as_finished():
    log = io.StringIO()
    with Progress(log) as progress:
        loop = progress.track(range(9), "work")
        next(loop)
        loop.close()
    assert log.getvalue() == ""


def test_terminal_gets_bars_for_all_open_parts():
    terminal = Terminal()
    with Progress(terminal) as progress, progress.part("outer", total=4) as outer:
        with progress.part("inner", total=2) as inner:
            inner.advance()
            outer.describe("outside")
            progress._bars.refresh()  # drawn ten times a second otherwise, and this takes less
        outer.advance(4)
    shown = terminal.getvalue()
    assert "outside" in shown and "inner" in shown and "steps in" not in shown


def test_rich_is_not_imported_for_a_log():
    code = (
        "import sys; from linearcore.runtime import track; list(track(range(2), 'x')); "
        "sys.exit('rich' in sys.modules or 'rich.progress' in sys.modules)"
    )
    assert fresh_python("-c", code).returncode == 0


def test_work_goes_on_if_the_reader_of_the_log_has_gone():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with Progress(Closed()) as progress, progress.part("work", total=1) as part:
        progress.print("a line")
        part.advance()
    assert part.done == 1
