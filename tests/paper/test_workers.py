"""Parts in several processes: real ones, started afresh."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linearcore.cli import main
from linearcore.runtime import Progress
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import ResultsFile, Settings, _run, _workers, prepare, run_experiment
from linearcore_paper.runner._workers import WorkerConfig, available_cores
from tests.paper.stub_runs import NAMES, STUB, did, log

#: Whoever starts the tests in the background may have had interrupts ignored, and children inherit that.
HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
COMMAND = f"""{HEARING}
from linearcore.cli import main
from linearcore_paper.experiments import EXPERIMENTS
from tests.paper.stub_runs import STUB
EXPERIMENTS["stub"] = STUB
main(["reproduce", "stub", "--workers", "2", "--data", {{data!r}}, "--out", {{out!r}}])
"""


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setattr(_run, "save_figure", lambda *figure: None)
    monkeypatch.setitem(EXPERIMENTS, "stub", STUB)
    (tmp_path / "data").mkdir()
    return tmp_path


def mode(place: Path, **parts: str) -> None:
    (place / "data" / "mode.json").write_text(json.dumps({name.replace("_", "-"): what for name, what in parts.items()}))


def kept(place: Path) -> set[str]:
    return set(ResultsFile(place / "out", "stub").parts)


def run(place: Path, workers: int = 2):
    [job] = prepare([STUB], Settings(data=place / "data"), place / "out")
    return run_experiment(job, Progress(), workers=workers)


def test_runs_go_side_by_side_and_timings_alone(place, monkeypatch):
    # What a worker would take if it were alone.
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    mode(place, **{name.replace("-", "_"): "slow" for name in NAMES})
    finished = run(place)
    assert finished.num_available == 7 and finished.num_reused == 0
    lines = {line["part"]: line for line in log(place / "data")}
    assert len(lines) == len(log(place / "data")) == 7
    here = os.getpid()
    alone = {name for name, line in lines.items() if line["process"] == here}
    assert alone == {"timing", "plain"}
    assert len({line["process"] for line in lines.values()} - {here}) == 2
    share = max(1, min(4, available_cores() // 2))
    assert {lines[name]["threads"] for name in lines.keys() - alone} == {share}
    for one in lines.values():
        beside = {two["part"] for two in lines.values() if two["started"] < one["ended"] and one["started"] < two["ended"]}
        assert one["part"] not in alone or beside == {one["part"]}
    assert lines["final"]["started"] > max(lines[f"tune-{rate}"]["ended"] for rate in (1, 2, 3))
    parts = ResultsFile(place / "out", "stub").parts
    places = {name: parts[name]["environment"] for name in ("final", "timing")}
    assert (places["final"]["workers"], places["timing"]["workers"]) == (2, 1)
    assert finished.record["results"]["data"]["check"]["score"] == 30
    # What several processes did, one finds again.
    assert run(place, workers=1).num_reused == 7


def test_a_dead_worker_is_one_line_that_names_the_part(place, capsys):
    mode(place, final="die")
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "stub", "--workers", "2", "--data", str(place / "data"), "--out", str(place / "out")])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("linearcore: the worker of part final died (signal 9,")
    assert kept(place) >= {"tune-1", "tune-2", "tune-3"} and "final" not in kept(place)


def test_an_error_in_a_worker_goes_up_with_its_traceback(place):
    mode(place, tune_1="hang", tune_2="fail")
    started = time.monotonic()
    with pytest.raises(ValueError, match="a bug in tune-2") as caught:
        run(place)
    assert "In a worker, part tune-2:" in caught.value.__notes__[0] and "in _compute" in caught.value.__notes__[0]
    assert time.monotonic() - started < 120
    assert did(place / "data") == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_nothing_goes_on_after_an_interrupt_or_when_the_parent_is_killed(place, number):
    # One worker is left with work, the other waits for it.
    mode(place, tune_2="hang")
    code = COMMAND.format(data=str(place / "data"), out=str(place / "out"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        _wait_for(lambda: (place / "data" / "started-tune-2").exists() and kept(place) == {"tune-1", "tune-3"})
        if number == signal.SIGINT:
            # A terminal sends it to all of them, and any may be the first to hear it.
            os.kill(log(place / "data")[0]["process"], number)
            time.sleep(0.3)
            os.killpg(process.pid, number)
        else:
            process.kill()
        # Ends when the last of them has closed it.
        err = process.communicate(timeout=60)[1]
        _wait_for(lambda: not _alive(process.pid))
    finally:
        if _alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert err == "linearcore: interrupted; finished parts are saved, run the same command to resume\n"
    assert kept(place) == {"tune-1", "tune-3"}


def _wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class _Stubborn:
    """A process that hears nothing but a kill, and that not at once."""

    def __init__(self) -> None:
        self.asked, self.killed = [], False

    def terminate(self) -> None:
        self.asked.append("terminate")

    def is_alive(self) -> bool:
        return True

    def kill(self) -> None:
        self.killed = True

    def join(self, timeout: float | None = None) -> None:
        assert timeout is not None, "waits for a process that may never end"
        if not self.killed:
            time.sleep(timeout)


def test_a_dozen_stubborn_workers_are_stopped_in_the_time_of_one(monkeypatch):
    monkeypatch.setattr(_workers, "STOP_TIMEOUT_S", 0.2)
    workers = _workers.Workers(WorkerConfig(STUB, Settings(), 12))
    processes = [_Stubborn() for _ in range(12)]
    started = time.monotonic()
    with workers:
        workers._processes = {_workers.get_context("spawn").Pipe()[0]: process for process in processes}
    assert time.monotonic() - started < 1.0
    assert all(process.asked == ["terminate"] and process.killed for process in processes)


UNHEARD = f"""{HEARING}
import threading, time
from linearcore_paper.runner import Settings
from linearcore_paper.runner._workers import WorkerConfig, Workers, get_context
from tests.paper.stub_runs import STUB

def elsewhere():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(60)

threading.Thread(target=elsewhere, daemon=True).start()
workers = Workers(WorkerConfig(STUB, Settings(), 2))
ours, theirs = get_context("spawn").Pipe()
workers._busy[ours] = "a part that takes long"
started = time.monotonic()
try:
    workers.wait()
except KeyboardInterrupt:
    print("heard" if time.monotonic() - started < 10 else "heard late")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_that_does_not_wake_the_main_thread_is_heard():
    """The system may hand it to any thread, and Python raises it in the main one when that next does something."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", UNHEARD], env=environment, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("heard\n", 0), done.stderr
