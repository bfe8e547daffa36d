"""The runner: finished parts are kept, and only those that are still true."""

import pytest
from matplotlib.figure import Figure

from linearcore.runtime import Progress
from linearcore_paper.runner import (
    Claim,
    Experiment,
    Outcome,
    RecordedRun,
    ResultsFile,
    Settings,
    _compute,
    _run,
    prepare,
    run_experiment,
)


class Counted:
    """An experiment of four parts that counts its work and can be interrupted."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.stop_at: str | None = None

    def experiment(self) -> Experiment:
        return Experiment(
            "counted", "Counting", "Does it count?", "counts", "nowhere", "nothing", {"smoke": "0 s", "paper": "0 s"},
            self.parts, self.conclude, Figure,
        )  # fmt: skip

    def parts(self, settings: Settings):
        def part(name: str):
            def compute():
                if name == self.stop_at:
                    raise KeyboardInterrupt
                self.done.append(name)
                return {"seed": settings.seed, "name": name}

            return compute

        return {name: part(name) for name in "abcd"}

    def conclude(self, results, settings: Settings) -> Outcome:
        return Outcome([Claim("it counts", "4", str(len(results)), "holds")], results, "four parts")


@pytest.fixture
def counted(monkeypatch) -> Counted:
    monkeypatch.setattr(_run, "save_figure", lambda *figure: None)
    return Counted()


def go(counted: Counted, folder, **settings):
    [job] = prepare([counted.experiment()], Settings(**settings), folder)
    return run_experiment(job, Progress())


def test_interrupted_run_goes_on_where_it_stopped(counted, tmp_path):
    counted.stop_at = "c"
    with pytest.raises(KeyboardInterrupt):
        go(counted, tmp_path)
    assert counted.done == ["a", "b"]
    file = ResultsFile(tmp_path, "counted")
    assert list(file.parts) == ["a", "b"] and file.conclusion is None
    counted.stop_at = None
    finished = go(counted, tmp_path)
    assert counted.done == ["a", "b", "c", "d"]
    assert (finished.num_parts, finished.num_reused) == (4, 2)
    assert finished.record["results"]["data"]["a"] == {"seed": 0, "name": "a"}
    assert ResultsFile(tmp_path, "counted").conclusion == finished.record


def test_nothing_is_done_twice(counted, tmp_path):
    go(counted, tmp_path)
    assert go(counted, tmp_path).num_reused == 4
    assert counted.done == list("abcd")


@pytest.mark.parametrize("other", [{"seed": 1}, {"scale": "paper"}, {"device": "meta"}, {"data": "somewhere"}])
def test_other_settings_are_done_anew(counted, tmp_path, other):
    go(counted, tmp_path)
    finished = go(counted, tmp_path, **other)
    assert finished.num_reused == 0 and counted.done == list("abcd") * 2
    assert finished.record["results"]["data"]["a"]["seed"] == other.get("seed", 0)


def test_other_code_is_done_anew(counted, tmp_path, monkeypatch):
    source = tmp_path / "source.py"
    source.write_text("one = 1")
    monkeypatch.setattr(_compute, "_sources", lambda name: {"source.py": source})
    go(counted, tmp_path)
    assert go(counted, tmp_path).num_reused == 4
    source.write_text("one = 2")
    assert go(counted, tmp_path).num_reused == 0


@pytest.mark.parametrize("key", ["key", "results", "seconds"])
def test_a_part_that_lacks_something_is_done_again(counted, tmp_path, key):
    go(counted, tmp_path)
    file = ResultsFile(tmp_path, "counted")
    file.save({name: value for name, value in file.parts["b"].items() if name != key})
    assert go(counted, tmp_path).num_reused == 3
    assert counted.done == [*"abcd", "b"]


@pytest.mark.parametrize(("result", "kind"), [(float("nan"), ValueError), (object(), TypeError)])
@pytest.mark.parametrize("wrap", [lambda compute: compute, lambda compute: RecordedRun({}, 0, compute)])
def test_a_result_that_is_no_json_is_refused_and_leaves_nothing(counted, tmp_path, monkeypatch, result, kind, wrap):
    monkeypatch.setattr(counted, "parts", lambda settings: {"part": wrap(lambda: result)})
    with pytest.raises(kind, match="JSON"):
        go(counted, tmp_path)
    assert list((tmp_path / "counted").iterdir()) == []


def test_a_log_says_what_was_kept(counted, tmp_path, capsys):
    [job] = prepare([counted.experiment()], Settings(), tmp_path)
    for expected in ("counted: 4 steps", "counted (4 of 4 parts reused): 4 steps"):
        with Progress() as progress:
            run_experiment(job, progress)
        assert capsys.readouterr().err.startswith(expected)


def test_sources_are_what_can_change_a_number():
    sources = set(_compute._sources("vanishing-core"))
    assert {
        "linearcore/surrogates/_linear_core.py",
        "linearcore/analysis/_transform.py",
        "linearcore_paper/runner/_experiment.py",
        "linearcore_paper/experiments/_coin.py",
        "linearcore_paper/experiments/vanishing_core/__init__.py",
    } <= sources
    aside = (
        "linearcore/cli/",
        "linearcore_paper/cli/",
        "linearcore_paper/demo/",
        "linearcore_paper/drawing.py",
        "linearcore_paper/report/",
        "linearcore_paper/experiments/rates/",
        "linearcore_paper/experiments/__init__",
        "linearcore_paper/experiments/vanishing_core/figure",
    )
    assert not [path for path in sources if path.startswith(aside)]


def test_sources_include_other_experiments_that_are_used():
    assert "linearcore_paper/experiments/noise/training.py" in _compute._sources("gradient-histogram")
    assert "linearcore_paper/experiments/gradient_histogram/gradients.py" not in _compute._sources("noise")


@pytest.mark.parametrize("wrong", [{"scale": "huge"}, {"seed": -1}, {"seed": 2**31}])
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match="must be"):
        Settings(**wrong)


def test_verdicts_are_four():
    with pytest.raises(ValueError, match="`verdict` must be one of"):
        Claim("a", "b", "c", "maybe")
