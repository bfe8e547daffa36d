"""Every benchmark runs from the command line at toy size, writes a record, and refuses bad input in one line.

A Python of its own costs seconds, so `make test` runs one benchmark and asks all of them for their help in this one.
"""

import argparse
import importlib
import json
import lzma
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from linearcore.runtime import _record
from tests.cases import each
from tests.fresh_python import fresh_python
from tests.tagged_text import conllu, sentences

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

#: script: the options that make it finish within seconds.
SCRIPTS = {
    "automata.py": ["--quick"],
    "chain.py": ["--sizes", "12x5x2", "--seconds", "0.1", "--least", "2"],
    "chain_rate.py": ["--quick", "--workers", "2", "--seeds", "1"],
    "chain_variants.py": ["--quick", "--workers", "2"],
    "core_width.py": ["--quick", "--workers", "2", "--seeds", "1"],
    "decoding.py": ["--quick", "--sets", "generated"],
    "dense_loss.py": ["--shapes", "64x10", "--dtypes", "float32", "--seconds", "0.1", "--least", "2", "--no-compile"],
    "estimators.py": [
        *("--tags", "8", "--steps", "2,4", "--samples", "2,4", "--long", "8"),
        *("--runs", "4", "--seconds", "0.05", "--least", "2"),
    ],
    "favourites.py": ["--quick"],
    "fenchel_young.py": ["--classes", "3", "--scales", "1", "--seconds", "0.05"],
    "linear_loss.py": ["--shapes", "64x32x500", "--seconds", "0.05", "--least", "2", "--no-compile"],
    "minimum_risk.py": ["--sentences", "8", "--draws", "2", "--seconds", "0.05", "--least", "1"],
    "proposals.py": ["--quick", "--sets", "chains", "--seeds", "1", "--workers", "2"],
    "sampled.py": [
        "--growth",
        "20,40",
        "--search",
        "30",
        "--classes",
        "200,300",
        "--seconds",
        "0.05",
        "--least",
        "2",
        "--no-compile",
    ],
    "noisy_letters.py": ["--quick", "--workers", "2"],
    "one_line.py": ["--quick", "--sets", "digits,many"],
    "robust_search.py": ["--quick", "--only", "CE;sphere of radius 1", "--epochs", "1"],
    "streaming.py": ["--megabytes", "1"],
    "structured_sampling.py": [
        *("--tags", "5", "--length", "4", "--samples", "400", "--growth", "5,9"),
        *("--seconds", "0.05", "--least", "2"),
    ],
    "tag_predict.py": ["--quick"],
    "which_loss.py": [
        *("--quick", "--sets", "digits", "--losses", "ce", "--noises", "pair flip 40 %", "--optimizers", "adam"),
    ],
    "wrong_labels.py": ["--quick", "--sets", "digits"],
}


@each("script", {script: script for script in SCRIPTS}, ("chain.py",))
def test_it_runs_and_writes_a_record_without_machine_paths(script, tmp_path):
    out = tmp_path / "record.json"
    done = fresh_python(str(BENCHMARKS / script), *SCRIPTS[script], "--out", str(out), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert {"command", "environment", "results", "settings"} <= json.loads(text).keys()
    assert str(tmp_path) not in text and str(BENCHMARKS.parent) not in text


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_every_option_and_an_example(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / script), "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert "--out" in said and "--allow-dirty" in said and f"benchmarks/{script} --" in said


def test_a_record_to_be_committed_is_refused_for_code_that_is_not(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    harness = importlib.import_module("_harness")

    def parsed(*words: str) -> argparse.Namespace:
        monkeypatch.setattr(sys, "argv", ["speed.py", *words])
        parser = argparse.ArgumentParser()
        parser.add_argument("--out", type=Path)
        return harness.parsed(parser)

    monkeypatch.setattr(_record, "_commit", lambda: "0123abcd")
    monkeypatch.setattr(_record, "_changed_files", lambda: ["a.py"])
    assert parsed("--out", str(tmp_path / "a.json")).out == tmp_path / "a.json"
    for words in (
        [],
        ["--out", str(BENCHMARKS / "results" / "a.json")],
        ["--out", str(BENCHMARKS.parent / "docs/results/a")],
    ):
        with pytest.raises(SystemExit) as stop:
            parsed(*words)
        err = capsys.readouterr().err
        assert (
            stop.value.code == 2
            and err.count("\n") == 1
            and "got changes in a.py; commit them, or pass --allow-dirty" in err
        )
        assert parsed(*words, "--allow-dirty").allow_dirty
    monkeypatch.setattr(_record, "_changed_files", list)
    assert not parsed().allow_dirty


@pytest.mark.slow
def test_one_line_says_in_one_line_what_to_do_without_the_data_folder():
    done = fresh_python(str(BENCHMARKS / "one_line.py"), "--quick", "--data", "no-such-folder", "--allow-dirty")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets digits,many" in done.stderr


@pytest.mark.slow
def test_wrong_labels_says_in_one_line_what_to_do_without_the_data_folder():
    done = fresh_python(str(BENCHMARKS / "wrong_labels.py"), "--quick", "--data", "no-such-folder", "--allow-dirty")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets digits" in done.stderr


@pytest.mark.slow
def test_decoding_says_in_one_line_what_to_do_without_the_data_folder():
    done = fresh_python(str(BENCHMARKS / "decoding.py"), "--quick", "--data", "no-such-folder", "--allow-dirty")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets generated" in done.stderr


@pytest.mark.slow
def test_tagging_trains_all_losses_records_each_run_and_does_none_twice(tmp_path):
    (tmp_path / "tagging").mkdir()
    for seed, part in enumerate(("train", "dev", "test")):
        text = conllu(sentences(40, seed)).replace("\t_\tCase", "\tX\tCase")
        (tmp_path / "tagging" / f"en_ewt-{part}.conllu.xz").write_bytes(lzma.compress(text.encode()))
    words = (
        "--data",
        str(tmp_path),
        "--sets",
        "ewt",
        "--losses",
        "lc,ce",
        "--epochs",
        "1",
        "--speed",
        "--limit-words",
        "200",
    )
    words += ("--out", str(tmp_path))
    done = fresh_python(str(BENCHMARKS / "tagging.py"), *words, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "tagging_ewt_200.json").read_text("utf-8")
    results = json.loads(text)["results"]
    assert [(run["loss"], run["seed"]) for run in results["runs"]] == [("lc", 0), ("ce", 0)]
    assert all(run["steps"] > 1 and run["settings"]["epochs"] == 1 for run in results["runs"])
    assert json.loads(text)["settings"]["words"]["train"] <= 200
    assert results["training_words_per_second"].keys() == results["summary"].keys() == {"lc", "ce"}
    assert str(tmp_path) not in text and "--data DIR" in text
    again = fresh_python(str(BENCHMARKS / "tagging.py"), *words, OMP_NUM_THREADS="1")
    assert again.returncode == 0 and "epoch" not in again.stderr
    assert (tmp_path / "tagging_ewt_200.json").read_text("utf-8") == text


@pytest.mark.slow
def test_end_to_end_compares_training_with_two_checkouts(tmp_path):
    data, before, out = tmp_path / "data", tmp_path / "before", tmp_path / "record.json"
    for folder in ("tagging", "tabular"):
        (data / folder).mkdir(parents=True)
    for name, (seed, part) in product(("en_ewt", "la_lasla"), enumerate(("train", "dev", "test"))):
        text = conllu(sentences(30, seed))
        (data / "tagging" / f"{name}-{part}.conllu.xz").write_bytes(lzma.compress(text.encode()))
    rows = [",".join([chr(ord("A") + n % 26), *(str((n * k) % 16) for k in range(1, 17))]) for n in range(11_000)]
    (data / "tabular" / "letter.csv.xz").write_bytes(lzma.compress("\n".join(["head", *rows]).encode()))
    subprocess.run(["git", "clone", "--quiet", str(BENCHMARKS.parent), str(before)], check=True)
    words = ["--quick", "--rounds", "1", "--data", str(data), "--before", str(before), "--out", str(out)]
    done = fresh_python(str(BENCHMARKS / "end_to_end.py"), *words)
    assert done.returncode == 0, done.stderr
    record = json.loads(out.read_text("utf-8"))
    assert str(tmp_path) not in out.read_text("utf-8") and "--before DIR" in record["command"]
    assert len(record["settings"]["before"]) == 40
    assert len(record["results"]) == 3
    for row in record["results"]:
        assert row["before"]["accuracy"] == pytest.approx(row["after"]["accuracy"], abs=1)
        assert row["before"]["seconds"] > 0 < row["after"]["cpu_seconds"]


@pytest.mark.slow
def test_end_to_end_says_in_one_line_what_is_wrong(tmp_path):
    (tmp_path / "tagging").mkdir()
    for words, advice in (
        (["--data", "no-such-folder", "--before", "."], "--data"),
        (["--data", str(tmp_path), "--before", str(tmp_path)], "--before"),
    ):
        done = fresh_python(str(BENCHMARKS / "end_to_end.py"), *words, "--allow-dirty")
        assert done.returncode == 2 and advice in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_core_width_says_in_one_line_what_is_wrong():
    for words, advice in ((["--data", "no-such-folder"], "--quick"), (["--quick", "--seeds", "0"], "positive numbers")):
        done = fresh_python(str(BENCHMARKS / "core_width.py"), *words, "--allow-dirty")
        assert done.returncode == 2 and advice in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_tagging_says_in_one_line_what_to_do_without_the_data_folder():
    for words, advice in ((["--data", "no-such-folder"], "--data DIR"), (["--data", ".", "--sets", "greek"], "known: ewt")):
        done = fresh_python(str(BENCHMARKS / "tagging.py"), *words, "--allow-dirty")
        assert done.returncode == 2 and advice in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_one_line_trains_seeds_side_by_side_as_it_would_one_by_one():
    code = f"""
import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
import one_line
plan, make = one_line.QUICK["digits"], one_line.OPTIMIZERS["sgd"].make
def accuracy(seeds):
    return one_line.train(one_line.digits(), plan, seeds, one_line.LOSSES["logodds"](), make, 0.03)[1]
together, alone = accuracy([0, 1, 2]), [accuracy([seed])[0] for seed in range(3)]
assert max(abs(a - b) for a, b in zip(together, alone)) <= 0.5, (together, alone)
assert len(set(together)) > 1, together
"""
    done = fresh_python("-c", code, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_proposals_says_in_one_line_what_to_do_without_the_data_folder():
    words = ("--quick", "--sets", "turkish", "--data", "no-such-folder", "--allow-dirty")
    done = fresh_python(str(BENCHMARKS / "proposals.py"), *words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--data" in done.stderr and "--sets chains" in done.stderr


@pytest.mark.slow
def test_proposals_refuses_one_file_for_two_records(tmp_path):
    out = str(tmp_path / "record.json")
    done = fresh_python(str(BENCHMARKS / "proposals.py"), "--quick", "--sets", "chains,turkish", "--out", out)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "--out" in done.stderr


def write_treebank(folder: Path, name: str, sentences: int) -> None:
    """Sentence n of a file is NAMEn NAME, with tags A|n%3=1 and B|_, and a range of words that is to be skipped."""
    rest = "\t_" * 4  # The columns after FEATS.
    texts = [
        f"# a comment\n1-2\t_\t_\t_\t_\t_{rest}\n1\t{name}{n}\t_\tA\t_\tn={n % 3}{rest}\n2\t{name}\t_\tB\t_\t_{rest}\n"
        for n in range(1, sentences + 1)
    ]
    (folder / "tagging").mkdir(exist_ok=True)
    with lzma.open(folder / "tagging" / f"{name}.conllu.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(texts))


@pytest.mark.slow
def test_every_ninth_sentence_of_a_turkish_file_is_dev_and_every_tenth_test(tmp_path):
    # 23 and 12 sentences: numbered on from one file to the next the parts would be others.
    write_treebank(tmp_path, "tr_web", 23)
    write_treebank(tmp_path, "tr_wiki", 12)
    code = f"""
import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
from pathlib import Path
from _tagger import turkish
parts = turkish(Path({str(tmp_path)!r}))
first = {{part: [sentence[0][0] for sentence in sentences] for part, sentences in parts.items()}}
assert first["dev"] == ["tr_web9", "tr_web19", "tr_wiki9"], first
assert first["test"] == ["tr_web10", "tr_web20", "tr_wiki10"], first
assert len(first["train"]) == 35 - 6 and first["train"][:2] == ["tr_web1", "tr_web2"], first
assert parts["train"][0] == [("tr_web1", "A|n=1"), ("tr_web", "B|_")], parts["train"][0]
"""
    done = fresh_python("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_interrupted_study_of_proposals_goes_on_from_its_folder(tmp_path):
    write_treebank(tmp_path, "tr_web", 20)
    write_treebank(tmp_path, "tr_wiki", 20)
    found, work = [], tmp_path / "work"
    for attempt in range(2):
        out = tmp_path / f"record{attempt}.json"
        options = [
            "--quick",
            "--sets",
            "turkish",
            "--seeds",
            "2",
            "--data",
            str(tmp_path),
            "--work",
            str(work),
            "--out",
            str(out),
        ]
        done = fresh_python(str(BENCHMARKS / "proposals.py"), *options)
        assert done.returncode == 0, done.stderr
        assert str(tmp_path) not in out.read_text("utf-8")
        found.append(json.loads(out.read_text("utf-8"))["results"])
        if attempt == 0:
            times = {path: path.stat().st_mtime_ns for path in work.glob("*.json")}
            # One run is lost, not one that tunes: made again, it could choose another rate. It alone is made again.
            lost = next(path for path in times if json.loads(path.read_text("utf-8"))["run"]["is_final"])
            lost.unlink()
    assert {path for path in work.glob("*.json") if times.get(path) != path.stat().st_mtime_ns} == {lost}
    rows = found[0]["sets"]["turkish"]["methods"]
    assert len(rows) > 5 and all(len(row["tests"]) == 2 and row["steps"] > 0 for row in rows)


@pytest.mark.slow
def test_a_bias_is_told_from_the_noise_of_its_measurement():
    code = f"""
import sys; sys.path.insert(0, {str(BENCHMARKS)!r})
import torch
from estimators import Measured, relative
stream = torch.Generator().manual_seed(0)
exact = Measured([torch.full((50,), 2.0)])
def found(bias, factor):
    return Measured([factor * (2.0 + bias + 3 * torch.randn(50, generator=stream)) for _ in range(400)])
unbiased, biased = relative(found(0.0, 1), exact, 0.0), relative(found(1.0, 10), exact, torch.tensor(10.0).log().item())
assert unbiased["bias"] < unbiased["resolution"] < 0.2, unbiased
assert abs(biased["bias"] - 0.5) < 0.05 and biased["resolution"] < 0.2, biased
for row in (unbiased, biased):
    assert abs(row["variance"] - 9 / 4) < 0.1, row
"""
    done = fresh_python("-c", code, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_interrupted_variants_of_chains_go_on_from_their_folder(tmp_path):
    work, found = tmp_path / "work", []
    for attempt in range(2):
        out = tmp_path / f"record{attempt}.json"
        options = ["--quick", "--workers", "2", "--work", str(work), "--out", str(out)]
        done = fresh_python(str(BENCHMARKS / "chain_variants.py"), *options, OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        record = json.loads(out.read_text("utf-8"))
        assert record["command"] == "python benchmarks/chain_variants.py --quick --workers 2"
        found.append([(row["name"], row["dev"]) for row in record["results"]])
        if attempt == 0:
            assert found[0][0][0] == "token cross-entropy"
            # A chain without its transitions, and with them: they are put back after each look.
            assert any(dev["0"] != dev["1"] for _, dev in found[0][1:])
            times = {path: path.stat().st_mtime_ns for path in work.glob("*.json")}
            assert len(times) == len(found[0])
            lost = max(times)
            lost.unlink()
        else:
            # One run was lost, and it alone is made again.
            assert [path for path, time in times.items() if path.stat().st_mtime_ns != time] == [lost]
            assert done.stderr.count(": dev ") == 1
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options", "words"),
    [
        ("chain_variants.py", ["--quick", "--seeds", "0"], "--workers and --seeds take positive numbers, got 1 and 0"),
        ("robust_search.py", ["--quick", "--scales", "0,1"], "--scales takes positive numbers, got [0.0, 1.0]"),
    ],
)
def test_nothing_is_written_for_no_runs(script, options, words, tmp_path):
    done = fresh_python(str(BENCHMARKS / script), *options, "--out", str(tmp_path / "record.json"))
    assert done.returncode == 2 and done.stderr == f"{script}: {words}\n" and not list(tmp_path.iterdir())
