"""`linearcore suspects`: from a CSV file to its worst labels, and one line for whatever is wrong."""

import csv
import errno
import gzip
import json

import pandas as pd
import pytest
import torch

from linearcore import _atomic
from linearcore.cleaning import LOSSES, _folds, find_wrong_labels, read_table
from linearcore.cli import main

#: Rows whose label is wrong, counted from 0; the header is line 1.
WRONG = (3, 40, 77, 100)
QUICK = ("--model", "network", "--epochs", "25", "--lr", "0.01")


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["suspects", *map(str, words)])
    return int(left.value.code or 0)


@pytest.fixture
def file(tmp_path):
    stream = torch.Generator().manual_seed(0)
    rows = []
    for number in range(120):
        kind = number % 2
        a, b = (torch.randn(2, generator=stream) + 5 * kind).tolist()
        label = ("cat", "dog")[kind if number not in WRONG else 1 - kind]
        rows.append([f"{a:.3f}", f"{b:.3f}", f"it's, {'big' if kind else 'small'}", f"id{number}", label])
    path = tmp_path / "pets.csv"
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([["a", "b", "size", "id", "kind"], *rows])
    return path


def test_the_table(file, capsys):
    assert run(file, "--label", "kind", "--ignore", "id", "--top", "4", *QUICK) == 0
    out, err = capsys.readouterr()
    assert "120 rows, 2 labels; features from 2 numeric columns, 1 categorical column." in out
    assert (
        "Models (network)" in out and "agree with 96.7 % of the labels" in out and "The 4 most suspicious of 120 rows" in out
    )
    first = out.partition("Suspicious labels by class")[0]
    shown = {
        int(cells[1]): cells[2:4] for line in first.splitlines() if len(cells := [c.strip() for c in line.split("│")]) == 6
    }
    assert shown == {row + 2: ["dog", "cat"] if row % 2 == 0 else ["cat", "dog"] for row in WRONG}
    assert "prefer another label in 4 rows (3.3 %)" in out and "--out FILE" in out
    assert "labels are wrong (" in out and "95 % interval" in out and "Suspicious labels by class" in out
    assert "5 networks: 25 epochs" in err and "Warning" not in out and "only once" not in out


def test_json_says_the_same(file, capsys):
    words = (
        file,
        "--label",
        "kind",
        "--ignore",
        "id",
        "--top",
        "5",
        "--loss",
        "ce",
        "--measure",
        "log_odds",
        "--seed",
        "3",
        "--json",
    )
    assert run(*words, *QUICK) == 0
    report = json.loads(capsys.readouterr().out)
    found = find_wrong_labels(
        read_table(file), "kind", measure="log_odds", loss="ce", seed=3, epochs=25, learning_rate=0.01, ignore=("id",),
        model="network",
    )  # fmt: skip
    assert [row["line"] for row in report["suspects"]] == [one.row for one in found.most_suspicious(5)]
    assert {row["line"] for row in report["suspects"][:4]} == {row + 2 for row in WRONG}
    assert [row["suggested_label"] != row["given_label"] for row in report["suspects"]] == [True] * 4 + [False]
    assert report["suspects"][0]["suspicion"] == found.most_suspicious(1)[0].suspicion
    assert (report["rows"], report["features"], report["classes"]) == (120, 4, ["cat", "dog"])
    assert report["settings"]["loss"] == "ce" and report["model"] == "network"
    assert report["estimate"]["disagreements"] == 4 and report["estimate"]["count"] == found.estimate.count
    assert sum(row["suspicious"] for row in report["by_class"]) == found.estimate.count
    assert report["repeated_rows"] == 0 and report["conflicting_groups"] == []


def test_out_has_every_row_in_its_place_and_four_more_columns(file, tmp_path, capsys):
    out = tmp_path / "ranked.csv"
    assert run(file, "--label", "kind", "--ignore", "id", "--out", out, *QUICK) == 0
    assert f"All rows with rank: {out}." in capsys.readouterr().out.replace("\n", "")
    with open(file, newline="") as before, open(out, newline="") as after:
        old, new = list(csv.reader(before)), list(csv.reader(after))
    assert [row[:5] for row in new] == old
    assert new[0][5:] == ["suspicion_rank", "suspicion", "suggested_label", "is_suspicious"]
    assert sorted(int(row[5]) for row in new[1:]) == list(range(1, 121))
    assert {row for row in range(120) if int(new[row + 1][5]) <= 4} == set(WRONG)
    ranked = sorted(new[1:], key=lambda row: int(row[5]))
    assert [float(row[6]) for row in ranked] == sorted((float(row[6]) for row in ranked), reverse=True)
    assert {row for row in range(120) if new[row + 1][7] != new[row + 1][4]} == set(WRONG)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets.csv", "ranked.csv"]


def test_labels_of_a_single_row_are_named(file, capsys):
    text = file.read_text().replace("id5,dog", "id5,[red]dgo[/]")
    file.write_text(text.replace("id8,cat", "id8,cow").replace("id10,cat", "id10,cow"))  # two rows: no single one
    assert run(file, "--label", "kind", "--ignore", "id", "--top", "5", *QUICK) == 0
    out = capsys.readouterr().out
    assert ": '[red]dgo[/]' in line 7." in out and "│ [red]dgo[/] │" in out


def test_networks_that_were_still_getting_better_are_told_of(file, capsys):
    words = (file, "--label", "kind", "--ignore", "id", "--top", "1", "--model", "network")
    for epochs, is_told in ((1, True), (25, False)):
        assert run(*words, "--epochs", epochs, "--lr", "0.01") == 0
        assert (f"--epochs {2 * epochs} may find more" in capsys.readouterr().out) == is_told


def test_columns_that_say_nothing_are_told_of(tmp_path, capsys):
    stream = torch.Generator().manual_seed(0)
    rows = [f"{torch.randn((), generator=stream):.4f},{'ab'[number % 3 > 0]}" for number in range(90)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]))
    assert run(tmp_path / "t.csv", "--label", "y", "--top", "0", "--model", "linear") == 0
    out = capsys.readouterr().out
    assert (
        "Warning: always predicting 'b' would agree with 66.7 %." in out
        and "most suspicious" not in out
        and "suspicion:" not in out
    )


BAD = {
    "file": (("nowhere.csv", "--label", "kind"), "nowhere.csv: there is no such file; check the path"),
    "no label": (("pets.csv",), "Missing option '--label'"),
    "label": (("pets.csv", "--label", "kin"), "'kin'; there are a, b, size, id, kind; did you mean 'kind'?"),
    "Label": (
        ("pets.csv", "--label", "Kind"),
        "there is no column 'Kind'; there are a, b, size, id, kind; did you mean 'kind'?",
    ),
    "id": (("pets.csv", "--label", "kind"), "pets.csv: column 'id' has 120 distinct values"),
    "loss": (("pets.csv", "--label", "kind", "--ignore", "id", "--loss", "mse"), "`--loss` must be one of 'lc'"),
    "robust": (
        ("pets.csv", "--label", "kind", "--ignore", "id", "--loss", "robust"),
        "`--loss` must support 2 classes, got 'robust', which needs 3",
    ),
    "by": (
        ("pets.csv", "--label", "kind", "--measure", "loss"),
        "`--measure` must be one of 'margin', 'log_odds', got 'loss'",
    ),
    "folds": (("pets.csv", "--label", "kind", "--ignore", "id", "--folds", "1"), "`--folds` must be an integer from 2"),
    "rate": (("pets.csv", "--label", "kind", "--ignore", "id", "--lr", "1e30"), "lower the learning rate with --lr"),
    "negative rate": (
        ("pets.csv", "--label", "kind", "--ignore", "id", "--lr", "-1"),
        "`--lr` must be a positive number, got -1.0",
    ),
    "model": (("pets.csv", "--label", "kind", "--ignore", "id", "--model", "x"), "`--model` must be one of 'auto'"),
    "loss of no network": (
        ("pets.csv", "--label", "kind", "--ignore", "id", "--model", "linear", "--loss", "ce"),
        "`--model` must be a model with a network, because options of the network are given, got 'linear'; choose network",
    ),
    "page is out": (
        ("pets.csv", "--label", "kind", "--out", "x.csv", "--html", "x.csv"),
        "`--html` must be another file than `--out`",
    ),
    "page is in": (("pets.csv", "--label", "kind", "--html", "pets.csv"), "`--html` must be another file than the input"),
    "top": (("pets.csv", "--label", "kind", "--top", "-1"), "`--top` must be at least 0, got -1"),
    "out is in": (("pets.csv", "--label", "kind", "--out", "pets.csv"), "`--out` must be another file than the input"),
    "out is folder": (
        ("pets.csv", "--label", "kind", "--out", "."),
        "`--out` must be a file, got the folder .; name a file in it",
    ),
    "no folder": (("pets.csv", "--label", "kind", "--out", "no/x.csv"), "`--out` must be a file in an existing folder"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line(file, words, message, capsys, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith("linearcore: ") and message in error and error.count("\n") == 1
    assert [path.name for path in file.parent.iterdir()] == ["pets.csv"]


def test_functions_are_offered_to_python_only(file, capsys):
    assert run(file, "--label", "kind", "--loss", "mse") == 2
    assert "function" not in capsys.readouterr().err


def test_decimal_commas_are_told_of_with_their_line(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x;y", *(f"{number},{number % 7};{'ab'[number % 2]}" for number in range(5, 25))]))
    assert run(path, "--label", "y", "--delimiter", ";") == 2
    wrong = "column 'x' has '5,5', a number with a decimal comma; write 5.5, or pass --categorical 'x'"
    assert capsys.readouterr().err == f"linearcore: {path}:2: {wrong}\n"
    assert run(path, "--label", "y", "--delimiter", ";", "--categorical", "x", "--model", "linear") == 0


def test_out_is_packed_as_its_name_says(file, tmp_path, capsys):
    out = tmp_path / "ranked.csv.gz"
    assert run(file, "--label", "kind", "--ignore", "id", "--model", "linear", "--out", out) == 0
    with gzip.open(out, "rt") as stream:
        assert len(list(csv.reader(stream))) == 121


def test_help_speaks_of_files_and_columns(capsys):
    assert run("--help") == 0
    out = " ".join(capsys.readouterr().out.split())
    # Some versions of typer put braces around what must be there.
    assert "suspects [OPTIONS] FILE" in out.replace("{FILE}", "FILE") and "--out FILE" in out
    assert "--label COLUMN" in out and "--ignore COLUMN" in out and "--categorical COLUMN" in out and "list[" not in out
    assert all(name in out.replace("- ", "-") for name in LOSSES)  # Lines may break after a hyphen.


def test_its_own_output_is_refused(file, capsys):
    file.write_text(file.read_text().replace("size", "suggested_label", 1))
    assert run(file, "--label", "kind", "--ignore", "id") == 2
    assert "already has the output column 'suggested_label'" in capsys.readouterr().err


def test_a_tab_can_be_typed(file, capsys):
    with open(file, newline="") as stream:
        rows = list(csv.reader(stream))
    with open(file, "w", newline="") as stream:
        csv.writer(stream, delimiter="\t").writerows(rows)
    assert run(file, "--label", "kind", "--ignore", "id", "--delimiter", "\\t", "--model", "linear") == 0


def test_an_interrupt_leaves_no_file(file, tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    words = (file, "--label", "kind", "--ignore", "id", "--epochs", "1", "--model", "network")
    words += ("--out", tmp_path / "ranked.csv")
    for module, name in ((_folds, "_held_out"), (_atomic.os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, interrupted)
            assert run(*words) == 130
        assert capsys.readouterr().err.endswith("linearcore: interrupted\n")
        assert [path.name for path in tmp_path.iterdir()] == ["pets.csv"]


def test_text_gaps_and_duplicates_of_a_parquet_file(tmp_path, capsys):
    stream = torch.Generator().manual_seed(0)
    topics = ("engine wheel brake road", "ball goal team score")
    rows = []
    for number in range(80):
        words = topics[number % 2].split()
        order = torch.randperm(4, generator=stream).tolist()
        label = ("car", "sport")[1 - number % 2 if number in WRONG else number % 2]
        text = " ".join([*(words[place] for place in order), f"number{number // 2}"])
        rows.append({"text": text, "length": None if number == 7 else 1.0, "kind": label})
    rows += [rows[10], rows[11] | {"kind": "car"}]
    path, out, page = tmp_path / "t.parquet", tmp_path / "ranked.parquet", tmp_path / "page.html"
    pd.DataFrame(rows).to_parquet(path)
    assert run(path, "--label", "kind", "--top", "4", "--out", out, "--html", page, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["model"] == "linear" and report["missing_values"] == 1 and report["repeated_rows"] == 2
    assert report["conflicting_groups"] == [[11, 81]]
    assert {row["row"] for row in report["suspects"]} <= {*WRONG, 11, 81}
    written = pd.read_parquet(out)
    pd.testing.assert_frame_equal(written.iloc[:, :3], pd.DataFrame(rows))
    assert written.suspicion_rank.min() == 1 and written.is_suspicious.sum() == report["estimate"]["count"]
    assert "<!doctype html>" in page.read_text("utf-8")
    assert run(path, "--label", "kind", "--top", "0") == 0
    out = capsys.readouterr().out
    assert "1 numeric column, 1 text column (1 missing number)" in out
    assert "Duplicates: 2 rows" in out and "Duplicates with different labels, rows: 11, 81." in out


def test_the_ranking_is_printed_though_the_file_cannot_be_written(file, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "ranked.csv")

    monkeypatch.setattr(_atomic.os, "replace", full)
    words = (file, "--label", "kind", "--ignore", "id", "--model", "linear", "--out", tmp_path / "ranked.csv")
    assert run(*words) == 2
    out, err = capsys.readouterr()
    assert "The 20 most suspicious of 120 rows" in out and "All rows with rank" not in out
    assert err.splitlines()[-1].startswith("linearcore: cannot write ranked.csv: no space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["pets.csv"]


def test_parquet_without_pyarrow_is_refused_before_the_training(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None if name == "pyarrow" else True)
    assert run(file, "--label", "kind", "--ignore", "id", "--out", tmp_path / "x.parquet") == 2
    assert "pip install 'linearcore[tables]'" in capsys.readouterr().err
