"""`linearcore reproduce` through the command line, every experiment at smoke size."""

import json
import re
import time

import pytest
import torch

from linearcore.cli import main
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import VERDICTS, results_folder
from tests.cases import each
from tests.paper.outcomes import conclusion

ORDER = [
    "surrogates",
    "rates",
    "thresholds",
    "vanishing-core",
    "surfaces",
    "gradients",
    "counterexample",
    "noise",
    "gradient-histogram",
    "optimization",
    "convergence",
    "scalability",
    "tagging",
    "variance",
    "ngram",
]
#: Those whose parts are records, which may come from other machines.
RECORDED = {"noise", "gradient-histogram", "tagging", "ngram"}


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *words])
    return stop.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of some experiments; a test that wants others runs them there."""
    folder = tmp_path_factory.mktemp("reproduce") / "new" / "folder"
    assert call("rates", "gradients", "--out", str(folder)) == 0
    return folder


def test_experiments_are_known_in_the_papers_order():
    assert [name for name in EXPERIMENTS if name in ORDER] == ORDER


# Those that take longest are run by tests of their own, and here with the slow ones.
LONG = RECORDED | {"convergence", "optimization", "scalability", "surrogates", "vanishing-core", "variance"}


@each("name", {name: name for name in ORDER}, set(ORDER) - LONG)
def test_every_experiment_writes_record_and_figures(folder, name):
    out, folder = folder, results_folder(folder, name)
    if not folder.exists():
        assert call(name, "--out", str(out)) == 0
    assert {path.name for path in folder.iterdir()} == {"results.jsonl", f"{name}.svg", f"{name}.png"}
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    svg = (folder / f"{name}.svg").read_text("utf-8")
    assert "<svg" in svg and "dc:date" not in svg
    record = conclusion(out, name)
    record["settings"].pop("runs_with_uncommitted_changes", None)
    recorded = {"runs_on": [f"cpu, torch {torch.__version__}"]} if name in RECORDED else {}
    assert record["settings"] == {
        "device": "cpu",
        "experiment": name,
        "paper": EXPERIMENTS[name].paper,
        "scale": "smoke",
        **recorded,
    }
    assert record["seed"] == 0 and "torch" in record["environment"] and name in record["command"]
    assert set(record["results"]) == {"alt", "claims", "data"}
    assert len(record["results"]["alt"]) > 100
    for claim in record["results"]["claims"]:
        assert set(claim) == {"claim", "paper", "ours", "verdict", "correction"}
        assert claim["verdict"] in VERDICTS and claim["correction"] in {None, *"abcdefghijklmnopqrstuvw"}
    assert str(out) not in (folder / "results.jsonl").read_text("utf-8")


@pytest.mark.slow
def test_all_at_smoke_scale_take_less_than_a_minute(tmp_path):
    started = time.process_time()
    assert call("--all", "--out", str(tmp_path)) == 0
    assert time.process_time() - started < 60
    assert all(results_folder(tmp_path, name).exists() for name in ORDER)


def test_second_run_keeps_everything_and_gives_the_same_files(folder, capsys):
    before = {path: path.read_bytes() for path in folder.rglob("*.svg")}
    assert call("rates", "gradients", "--out", str(folder)) == 0
    out, err = capsys.readouterr()
    assert "rates  (4 of 4 parts were finished before and reused)" in out
    assert "gradients (6 of 6 parts reused)" in err
    assert before == {path: path.read_bytes() for path in folder.rglob("*.svg")}


def test_words_are_the_verdicts(folder, capsys):
    assert call("rates", "--out", str(folder)) == 0
    out = capsys.readouterr().out
    assert "holds with a correction (l)" in out and "paper: slope about 1" in out and "ours:  local slope 0.999" in out
    assert str(folder) in out


def test_json_is_the_records_and_nothing_else(folder, capsys):
    assert call("gradients", "rates", "rates", "--json", "--out", str(folder)) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["records"]) == ["rates", "gradients"] and told["report"] is None
    assert told["records"]["rates"] == conclusion(folder, "rates")


def test_report_is_asked_for_the_folder(folder, capsys, monkeypatch):
    asked = []

    def write_report(where):
        asked.append(where)
        return where / "report.html"

    monkeypatch.setattr("linearcore_paper.report.write_report", write_report)
    assert call("--report", "--out", str(folder)) == 0
    assert asked == [folder]
    assert capsys.readouterr().out == f"Report: {folder / 'report.html'}\n"


def test_list_says_what_there_is(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("--list") == 0
    out = capsys.readouterr().out
    for experiment in EXPERIMENTS.values():
        assert experiment.name in out and experiment.shows in out and experiment.paper in out
        assert f"takes {experiment.cost['smoke']} (smoke) or {experiment.cost['paper']} (paper)" in out
    assert list(tmp_path.iterdir()) == []
    assert call("--list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(EXPERIMENTS)
    assert set(rows[0]) == {"name", "shows", "paper", "needs", "cost", "records", "with_uncommitted_changes"}


def test_list_of_some(capsys):
    assert call("thresholds", "rates", "--list", "--json") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["rates", "thresholds"]
    assert call("rate", "--list") == 2
    assert "unknown experiment rate" in capsys.readouterr().err


def test_letters_are_explained_where_there_are_any(folder, capsys):
    for name in ("rates", "gradients"):
        assert call(name, "--out", str(folder)) == 0
        out = capsys.readouterr().out
        has_letters = bool(re.search(r"^  [a-z ]+ \([a-z]\): ", out, re.MULTILINE))
        assert ("docs/reading-the-paper-with-care.md" in out) == has_letters


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope"], "unknown experiment nope; known: surrogates, statements, rates"),
        (["rates", "nope", "neither"], "unknown experiment nope, neither; known: "),
        ([], "name an experiment or pass --all; known: surrogates"),
        (["rates", "--scale", "huge"], "`scale` must be one of 'smoke', 'paper', got 'huge'"),
        (["rates", "--seed", "-1"], "`seed` must be a non-negative integer"),
        (["rates", "--device", "abacus"], "`--device` must be a torch device, got 'abacus'"),
        (["rates", "--device", "cuda:99"], "`--device` must be available, got 'cuda:99'"),
        (["rates", "--out", "FILE"], "; pass a writable folder to --out"),
        (["rates", "--out", "FILE/below"], "; pass a writable folder to --out"),
    ],
)
def test_errors_are_one_line(words, message, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    words = [word.replace("FILE", str(tmp_path / "file")) for word in words]
    assert call("--out", str(tmp_path / "out"), *words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("linearcore: ") and err.count("\n") == 1
    assert message in err


def test_interrupt_says_how_to_go_on(monkeypatch, tmp_path, capsys):
    from linearcore_paper.experiments import rates

    coin, calls = rates.coin, []

    def interrupted(phi):
        calls.append(phi)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return coin(phi)

    monkeypatch.setattr(rates, "coin", interrupted)
    assert call("rates", "--out", str(tmp_path)) == 130
    line = "linearcore: interrupted; finished parts are saved, run the same command to resume\n"
    assert capsys.readouterr().err == line
    assert call("rates", "--out", str(tmp_path)) == 0
    assert "2 of 4 parts were finished before" in capsys.readouterr().out
    assert len(calls) == 5


def test_fault_of_ours_keeps_its_traceback(monkeypatch, tmp_path):
    def fail(phi):
        raise ValueError("a bug")

    monkeypatch.setattr("linearcore_paper.experiments.rates.coin", fail)
    with pytest.raises(ValueError, match="a bug"):
        main(["reproduce", "rates", "--out", str(tmp_path)])


def test_help_shows_examples(capsys):
    assert call("--help") == 0
    assert "linearcore reproduce --all --scale paper --report" in capsys.readouterr().out
