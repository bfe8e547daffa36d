"""Recorded runs in one process: found again by settings and seed, done after what they need, and one by one if asked."""

import json
from dataclasses import replace

import pytest

from linearcore.cli import main
from linearcore.runtime import Progress
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report import write_report
from linearcore_paper.runner import ResultsFile, Settings, _compute, _run, prepare, run_experiment
from tests.paper.stub_runs import NAMES, STUB, did


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A folder with data for the stub, which the command line knows."""
    monkeypatch.setattr(_run, "save_figure", lambda *figure: None)
    monkeypatch.setitem(EXPERIMENTS, "stub", STUB)
    (tmp_path / "data").mkdir()
    return tmp_path


def go(place, *, only=(), fresh=False, **settings):
    """Runs the stub and gives what was done, and how it went."""
    before = len(did(place / "data"))
    [job] = prepare([STUB], Settings(data=place / "data", **settings), place / "out", only)
    finished = run_experiment(job, Progress(), fresh=fresh)
    return did(place / "data")[before:], finished


def records(place) -> ResultsFile:
    return ResultsFile(place / "out", "stub")


def call(place, *words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "stub", "--data", str(place / "data"), "--out", str(place / "out"), *words])
    return stop.value.code


def test_parts_are_done_after_what_they_need_and_told_in_their_own_order(place):
    done, finished = go(place)
    assert sorted(done) == sorted(NAMES) and done.index("final") > done.index("tune-3")
    assert done.index("check") > done.index("final")
    assert (finished.num_parts, finished.num_available, finished.num_reused) == (7, 7, 0)
    data = finished.record["results"]["data"]
    assert {name: data[name]["score"] for name in ("final", "check")} == {"final": 3, "check": 30}
    assert go(place)[0] == []


def test_results_have_the_order_of_the_parts_whether_done_or_kept(place, monkeypatch):
    seen = []
    monkeypatch.setattr(_run, "_write", lambda job, outcome, origin: seen.append((json.dumps(outcome.data), origin)))
    go(place)
    go(place)
    (text, origin), kept = seen
    assert list(json.loads(text)) == NAMES and kept == (text, origin)
    assert len(origin["runs_on"]) == 1 and ", torch 2" in origin["runs_on"][0]


def test_the_record_says_what_was_run_where_and_nothing_of_the_machine(place):
    go(place, seed=5)
    file = records(place)
    text, record = file.path.read_text("utf-8"), file.parts["final"]
    assert set(record) == {"part", "command", "environment", "format", "results", "seconds", "seed", "settings"}
    assert record["command"] == "linearcore reproduce stub --scale smoke --seed 5 --device cpu --parts final"
    assert record["seed"] == 5 and record["settings"] == {"data": "0123abcd", "rate": 3, "sizes": [1, 2]}
    assert record["results"] == {"name": "final", "score": 3}
    assert record["environment"]["workers"] == 1 and "torch" in record["environment"]
    assert str(place) not in text and text.endswith("}\n") and len(text.splitlines()) == len(NAMES) + 1
    assert [json.loads(line)["part"] for line in text.splitlines()] == [*NAMES, None]


def test_a_run_outlives_changes_of_source_and_torch_but_a_plain_part_does_not(place, monkeypatch):
    go(place)
    monkeypatch.setattr(_compute, "_sources", lambda name: {})
    monkeypatch.setattr(_compute.torch, "__version__", "99")
    assert go(place)[0] == ["plain"]


def test_a_run_does_not_care_about_scale_device_or_folder(place):
    """Whatever of them decides the result stands in its settings."""
    go(place)
    (place / "moved").mkdir()
    for name in ("data", "out"):
        (place / name).rename(place / "moved" / name)
    assert go(place / "moved", scale="paper", device="meta")[0] == ["plain"]


def test_another_seed_is_another_run(place):
    go(place)
    assert sorted(go(place, seed=1)[0]) == sorted(NAMES)


@pytest.mark.parametrize("key", ["settings", "seed", "results"])
def test_a_record_of_something_else_is_done_again(place, key):
    go(place)
    record = records(place).parts["tune-2"]
    other = {"settings": record["settings"] | {"rate": 7}, "seed": 8}
    record.pop(key)
    records(place).save(record | ({key: other[key]} if key in other else {}))
    assert go(place)[0] == ["tune-2"]
    assert records(place).parts["tune-2"]["results"]["score"] == 2


def test_what_depends_on_a_result_is_done_again_when_that_changes_it(place):
    go(place)
    records(place).save(records(place).parts["tune-3"] | {"results": {"score": 9, "name": "tune-3"}})
    done, finished = go(place)
    assert done == ["final", "check"] and finished.num_reused == 5
    assert finished.record["results"]["data"]["check"]["score"] == 90


def test_a_part_that_fails_leaves_what_is_finished(place):
    (place / "data" / "mode.json").write_text('{"final": "fail"}')
    with pytest.raises(ValueError, match="a bug in final"):
        go(place)
    (place / "data" / "mode.json").unlink()
    assert go(place)[0] == ["final", "timing", "check", "plain"]


def test_fresh_does_all_again_or_what_was_chosen(place):
    go(place)
    assert sorted(go(place, fresh=True)[0]) == sorted(NAMES)
    assert go(place, fresh=True, only=["final", "plain"])[0] == ["final", "plain"]


def test_only_some_parts_and_what_they_need(place):
    done, finished = go(place, only=["tune-1", "tim*"])
    assert done == ["tune-1", "timing"]
    assert (finished.record, finished.num_parts, finished.num_available, finished.num_reused) == (None, 7, 2, 0)
    done, finished = go(place, only=["check"])
    assert done == ["tune-2", "tune-3", "final", "check"] and finished.num_available == 6 and finished.num_reused == 1
    assert records(place).conclusion is None
    done, finished = go(place, only=["plain"])
    assert done == ["plain"] and finished.record is not None
    assert records(place).conclusion == finished.record


def test_the_command_says_what_is_there_and_how_to_do_the_rest(place, capsys):
    assert call(place, "--parts", "tune-*", "--parts", "timing") == 0
    out = capsys.readouterr().out
    rest = f"linearcore reproduce stub --scale smoke --seed 0 --device cpu --data {place / 'data'} --out {place / 'out'}"
    assert out == f"stub: 4 of 7 parts are finished; run the rest with: {rest}\n"
    assert call(place, "--parts", "final", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"records": {}, "incomplete": {"stub": [5, 7]}, "report": None}
    assert call(place) == 0
    assert "stub  (5 of 7 parts were finished before and reused)" in capsys.readouterr().out
    assert call(place, "--fresh") == 0
    assert "reused" not in capsys.readouterr().out


def test_with_all_experiments_a_glob_needs_one_match_only(place, capsys):
    assert call(place, "surfaces", "--parts", "tune-*") == 0
    out, err = capsys.readouterr()
    assert "stub: 3 of 7" in out and "surfaces" not in out + err


def test_the_report_reads_results_of_recorded_runs(place):
    assert call(place) == 0
    (place / "out" / "stub").rename(place / "out" / "rates")
    page = write_report(place / "out").read_text("utf-8")
    assert "it tunes" in page and "torch 2" in page
    (place / "out" / "rates" / "results.jsonl").unlink()
    write_report(place / "out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "0"], "`--workers` must be at least 1, got 0; pass 1"),
        (["--parts", "tune-*", "--parts", "nope*"], "`--parts` must match a part, got 'nope*'; parts are final, tune-1, "),
    ],
)
def test_errors_are_one_line(place, words, message, capsys):
    assert call(place, *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("linearcore: ") and err.count("\n") == 1 and message in err
    assert not (place / "out").exists()


def test_data_that_cannot_be_read_is_one_line_about_data(place, monkeypatch, capsys):
    def parts(settings):
        raise FileNotFoundError(2, "No such file or directory", "words.txt")

    monkeypatch.setitem(EXPERIMENTS, "stub", replace(STUB, parts=parts))
    assert call(place) == 2
    line = "linearcore: stub cannot read words.txt: No such file or directory; pass the folder of its data with --data\n"
    assert capsys.readouterr().err == line


def test_days_of_a_cpu_are_told_before_they_begin(place, monkeypatch, capsys):
    line = "linearcore: stub takes 0 s, and days on a CPU; stop it and pass --device cuda if you have a GPU\n"
    cases = [
        (False, ["--scale", "paper"], False),
        (True, ["--scale", "smoke"], False),
        (True, ["--scale", "paper"], True),
        # All parts are there now, and have to be done again only if asked to.
        (True, ["--scale", "paper"], False),
        (True, ["--scale", "paper", "--fresh"], True),
    ]
    for needs_gpu, words, is_told in cases:
        monkeypatch.setitem(EXPERIMENTS, "stub", replace(STUB, needs_gpu=needs_gpu))
        assert call(place, "--allow-dirty", *words) == 0
        assert (line in capsys.readouterr().err) == is_told
        if "smoke" in words:
            records(place).path.unlink()


def test_experiments_that_need_a_gpu_say_so():
    assert {name for name, experiment in EXPERIMENTS.items() if experiment.needs_gpu} == {
        name for name, experiment in EXPERIMENTS.items() if "a GPU" in experiment.needs
    }


def test_workers_are_checked(place):
    [job] = prepare([STUB], Settings(), place / "out")
    with pytest.raises(ValueError, match="`workers` must be at least 1"):
        run_experiment(job, Progress(), workers=0)


def test_parts_that_cannot_be_done_are_found_before_the_work(place):
    broken = replace(STUB, parts=lambda settings: {"a/b": dict})
    with pytest.raises(ValueError, match="`part` must be letters, digits"):
        prepare([broken], Settings(), place / "out")
    assert not (place / "out").exists()
