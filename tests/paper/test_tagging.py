"""`tagging` through the command line: 4000 tags at the paper's size, 40 of a made-up text here."""

import re

import pytest

from linearcore.cli import main
from linearcore_paper.experiments import tagging
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.text import read_text
from linearcore_paper.runner import After, RecordedRun, ResultsFile, Settings
from tests.paper.outcomes import conclusion

SMOKE = ("crf", "ce", "lc", "lc-rank", "lc-sampled", "ssvm")


def call(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "tagging", *words])
    return stop.value.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One run at smoke size."""
    out = tmp_path_factory.mktemp("tagging")
    assert call("--out", str(out), "--report") == 0
    return out / "tagging"


@pytest.fixture(scope="module")
def results(folder) -> dict:
    return conclusion(folder.parent, "tagging")["results"]


def test_record_figures_and_page(folder):
    assert {path.name for path in folder.iterdir()} == {"results.jsonl", "tagging.png", "tagging.svg"}
    assert (folder / "tagging.png").read_bytes().startswith(b"\x89PNG")
    assert "Tagging with 4,000 tags" in (folder.parent / "report.html").read_text("utf-8")
    record = conclusion(folder.parent, "tagging")
    assert record["settings"]["scale"] == "smoke" and record["command"].startswith("linearcore reproduce tagging")
    assert str(folder) not in (folder / "results.jsonl").read_text("utf-8")


def test_made_up_text_judges_nothing(results):
    wanted = ["not judged", "not run", "not judged", "not judged", "not run", "not run"]
    assert [claim["verdict"] for claim in results["claims"]] == wanted
    for claim in results["claims"]:
        assert (claim["ours"] == "not run: only with --scale paper") == (claim["verdict"] == "not run")
    assert "made-up text, BiLSTM, Adam, seconds to 83 %: broadcast CRF " in results["alt"]


def test_every_method_learns_and_is_timed(results):
    rows = {row["method"]: row for row in results["data"]["rows"]}
    assert list(rows) == ["broadcast", *SMOKE] and set(results["data"]["labels"]) == set(METHODS)
    for row in rows.values():
        assert row["accuracy"] > 85 and row["seconds"] > 0 and row["step_seconds"] > 0 and row["curve"]
        assert row["reached"] != [None] and row["tags"] == 40
        assert [seconds for seconds, _ in row["curve"]] == sorted(seconds for seconds, _ in row["curve"])
    # What a tag tells about its neighbour is what tokens by themselves cannot know.
    assert rows["lc-rank"]["accuracy"] > rows["ce"]["accuracy"] + 1 and rows["crf"]["accuracy"] > rows["ce"]["accuracy"] + 1
    assert rows["broadcast"]["test"] == rows["crf"]["test"] and rows["broadcast"]["reached"] == rows["crf"]["reached"]
    assert results["data"]["memory"] == {}


def test_parts_are_records_of_their_own(folder):
    data = read_text("made", None).hash
    parts = ResultsFile(folder.parent, "tagging").parts
    where = "made_bilstm-adam"
    assert set(parts) == {
        *(f"tune_{where}_{method}_{rate}" for method in SMOKE for rate in ("0.02", "0.04")),
        *(f"run_{where}_{method}_seed1" for method in SMOKE),
        *(f"pace_{where}_{method}" for method in (*SMOKE, "broadcast")),
    }
    for name, record in parts.items():
        settings = record["settings"]
        assert settings["data"] == data and "device" not in settings and settings["tags"] == 40
        assert record["seed"] == settings["seed"] == (1 if name.startswith("run_") else 0)
        assert "torch" in record["environment"] and record["command"].endswith(f"--parts {name}")
        assert f"{where}_{settings['method']}" in name
        # Whoever tunes leaves the test part alone.
        assert ("test_accuracy" in record["results"]) == name.startswith("run_") == settings.get("tests", False)


def test_final_runs_have_the_rate_that_dev_chose(folder, results):
    parts = ResultsFile(folder.parent, "tagging").parts
    for row in results["data"]["rows"][1:]:
        tuned = {rate: parts[f"tune_made_bilstm-adam_{row['method']}_{rate:g}"]["results"] for rate in (0.02, 0.04)}
        best = max(tuned, key=lambda rate: tuned[rate]["dev_accuracy"])
        final = parts[f"run_made_bilstm-adam_{row['method']}_seed1"]
        assert row["rate"] == best == final["settings"]["rate"]


def test_resuming_does_nothing_again(folder, capsys, monkeypatch):
    def fail(*words, **named):
        raise AssertionError("a part that is there was done again")

    for name in ("train_run", "pace"):
        monkeypatch.setattr(tagging, name, fail)
    before = ResultsFile(folder.parent, "tagging")
    capsys.readouterr()
    assert call("--out", str(folder.parent)) == 0
    assert "25 of 25 parts were finished before and reused" in capsys.readouterr().out
    after = ResultsFile(folder.parent, "tagging")
    assert after.parts == before.parts and list(after.parts) == list(before.parts)
    assert after.conclusion["results"] == before.conclusion["results"]


def test_missing_data_are_one_line(tmp_path, capsys):
    assert call("--scale", "paper", "--allow-dirty", "--out", str(tmp_path / "out"), "--data", str(tmp_path)) == 2
    err = capsys.readouterr().err
    assert err.startswith("linearcore: ") and err.count("\n") == 1 and "tagging/ptb_sample.zip" in err


@pytest.fixture
def paper(monkeypatch):
    """Settings at the paper's size, with the made-up text in the place of all data sets."""
    monkeypatch.setattr(tagging, "check_data", lambda folder, names: None)
    monkeypatch.setattr(tagging, "read_text", lambda name, folder: read_text("made", None))
    monkeypatch.setattr(tagging, "has_bert", lambda: True)
    return Settings(scale="paper", device="cuda")


def test_parts_at_the_papers_size(paper, monkeypatch):
    names = list(tagging.parts(paper))
    count = {kind: sum(name.startswith(kind) for name in names) for kind in ("tune", "run", "pace", "memory", "peak")}
    # Five methods in seven cases and the SSVM in one: grids of 4, 4, 3, 4, 4, 3, 4 rates, three seeds, a broadcast CRF each.
    assert count == {"tune": 5 * 26 + 4, "run": 36 * 3, "pace": 36 + 7, "memory": 5, "peak": 7}
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)
    monkeypatch.setattr(tagging, "has_bert", lambda: False)
    assert not [name for name in tagging.parts(paper) if "bert" in name]


def test_timings_are_alone_and_runs_are_not(paper):
    for name, part in tagging.parts(paper).items():
        if isinstance(part, RecordedRun):
            assert part.alone == name.startswith(("pace", "memory", "peak")) and part.settings["hidden"] == 256
        else:
            assert isinstance(part, After) and name.startswith("run")


def test_memory_is_looked_at_where_the_paper_is(paper):
    for name, part in tagging.parts(paper).items():
        kind, _, method = name.partition("_")
        if kind in ("memory", "peak"):
            assert part.compute.func is {"memory": tagging.largest_batches, "peak": tagging.step_memory}[kind]
            told = part.settings
            assert (told["source"], told["encoding"], told["method"]) == ("ewt", "bilstm-adam", method)


def test_records_of_a_gpu_are_found_without_one_and_memory_takes_one(paper):
    elsewhere, here = (tagging.parts(Settings(scale="paper", device=device)) for device in ("cuda", "cpu"))
    assert list(elsewhere) == list(here)
    runs = [(elsewhere[name], part) for name, part in here.items() if isinstance(part, RecordedRun)]
    assert runs and all(theirs.settings == ours.settings for theirs, ours in runs)
    for name in ("memory_lc", "peak_lc"):
        assert here[name].compute()["failed"] == "needs a GPU"


def test_final_run_takes_the_best_rate_and_a_seed_that_tuned_nothing(paper):
    part = tagging.parts(paper)["run_ewt_bilstm-sgd_lc_seed2"]
    needs = {f"tune_ewt_bilstm-sgd_lc_{rate}": {"dev_accuracy": value} for rate, value in
             (("0.3", 70.0), ("1", 90.0), ("3", 90.0), ("10", 80.0))}  # fmt: skip
    assert isinstance(part, After) and list(part.needs) == list(needs)
    run = part.make(needs)
    assert (run.settings["rate"], run.seed, run.settings["tests"]) == (1.0, 2, True)
    # Where the whole grid has failed, a run that will fail too says so.
    assert part.make({name: {"failed": "no number"} for name in needs}).settings["rate"] == 0.3
