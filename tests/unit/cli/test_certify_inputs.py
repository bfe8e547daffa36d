"""`linearcore certify` with one's own loss, bounded scores and a sample."""

import importlib.util
import json
import random
from pathlib import Path

import pytest

from linearcore.analysis import sample_bound
from linearcore.cli._certify_inputs import read_sample
from linearcore.surrogates import LinearCore
from tests.unit.cli.test_certify import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    stream = random.Random(0)
    lines = ["height,width,kind,model"]
    for _ in range(80):
        height, width = stream.randint(-2, 2), stream.randint(0, 3)
        chance = 0.15 if height < 0 else 0.8
        lines.append(f"{height},{width},{'yes' if stream.random() < chance else 'no'},{chance}")
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_formula(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plot = tmp_path / "loss.png"
    assert run("--phi", "max(0, 1 - u)", "--classes", "2", "--plot", str(plot), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facts"] == "supported numerically"
    assert found["linear_bound"]["verdict"] == "supported" and found["worst_case"]["constant"] == 1
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("from torch.nn import functional as F\n\n\ndef phi(u):\n    return F.softplus(-u)\n", encoding="utf-8")
    assert run("--phi-file", str(file), "--classes", "2", "--bound", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bound"] == 1 and found["worst_case"]["exponent"] == 0.5
    file.write_text("from linearcore import Hinge\n\nphi = Hinge()\n", encoding="utf-8")
    assert run("--phi-file", str(file), "--classes", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["facts"] == "proven"


def test_a_sample(capsys: pytest.CaptureFixture[str], table: Path) -> None:
    words = ("--form", "pairwise", "--bound", "2.0", "--data", str(table), "--label", "kind", "--probabilities", "model")
    assert run(*words, "--json") == 0
    found = json.loads(capsys.readouterr().out)["sample"]
    sample = read_sample(table, "kind", "model")
    assert sample.classes == ["no", "yes"] and sample.features.shape == (80, 2)
    expected = sample_bound(
        LinearCore(), "pairwise", sample.features, sample.labels, bound=2.0, probabilities=sample.probabilities
    )
    assert found == json.loads(json.dumps(expected.to_json()))
    assert run(*words) == 0
    out = capsys.readouterr().out
    for number in (expected.surrogate_gap.high, expected.zero_one_gap.estimate, *expected.observed, expected.guarantee):
        assert f"{number:.4f}" in out


BAD = {
    "attribute": (("--phi", "u.__class__"), "`phi` must consist of numbers"),
    "call": (("--phi", "__import__('os')"), "`phi` must call"),
    "not convex": (("--phi", "1/(1+exp(u))"), "`phi` must be convex"),
    "two losses": (("--phi", "exp(-u)", "--classical", "hinge"), "`certify` must have one surrogate"),
    "core of a formula": (("--phi", "exp(-u)", "--tau", "1"), "`certify` must have one surrogate, got --tau and --phi"),
    "core of a file": (
        ("--phi-file", "own.py", "--sides", "1"),
        "`certify` must have one surrogate, got --sides and --phi-file",
    ),
    "core of a name": (("--classical", "hinge", "--base", "logistic"), "got --base and --classical"),
    "sharpness of a name": (("--classical", "hinge", "--sharpness", "1"), "got --sharpness and --classical"),
    "empty formula": (("--phi", ""), "`phi` must be a formula"),
    "empty name": (("--classical", ""), "`--classical` must be one of"),
    "label without data": (("--label", "kind"), "`--label` must be used with --data"),
    "probabilities without data": (("--probabilities", "p"), "`--probabilities` must be used with --data"),
    "confidence without data": (("--confidence", "0.95"), "`--confidence` must be used with --data"),
    "confidence a word": (("--confidence", "high"), "'--confidence'"),
    "starts without a search": (("--bound", "1", "--starts", "300"), "`--starts` must be used without --bound"),
    "seed without a search": (("--bound", "1", "--seed", "0"), "`--seed` must be used with --data or without --bound"),
    "cost of a sample": (("--data", "rows.csv", "--bound", "1", "--cost", "edit"), "`--cost` must be zero-one with --data"),
    "cost of one tag": (("--cost", "hamming"), "`--cost` must be zero-one with --length 1"),
    "family of one tag": (("--family", "chain"), "`--family` must be free with --length 1"),
    "no file": (("--phi-file", "missing.py"), "`--phi-file` must be a file"),
    "bound": (("--bound", "0"), "`--bound` must be a positive number"),
    "no bound": (("--data", "rows.csv"), "`--bound` must be given with --data"),
    "no table": (("--data", "missing.csv", "--bound", "1"), "missing.csv: there is no such file"),
    "length": (("--data", "rows.csv", "--bound", "1", "--length", "2"), "`--length` must be 1 with --data"),
    "plot": (("--plot", "loss.txt"), "`--plot` must be a file"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_bad_tables_and_files_are_one_line(capsys: pytest.CaptureFixture[str], table: Path, tmp_path: Path) -> None:
    def error(*words: str) -> str:
        assert run("--bound", "1", *words) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        return message

    assert "`--label` must name a column" in error("--data", str(table))
    assert "is not a finite number" in error("--data", str(table), "--label", "height")
    assert "`--probabilities` must name a column" in error("--data", str(table), "--label", "kind", "--probabilities", "p")
    assert "`--probabilities` must name a column" in error("--data", str(table), "--label", "kind", "--probabilities", ",")
    assert "`--form` must be a multi-class form" in error("--data", str(table), "--label", "kind", "--form", "local-logodds")
    for confidence in ("7", "nan", "-1", "inf"):
        words = ("--data", str(table), "--label", "kind", "--confidence", confidence)
        assert "`confidence` must be a number in" in error(*words)
    three = tmp_path / "three.csv"
    three.write_text("x,label\n" + "\n".join(f"{x},{x % 3}" for x in range(9)) + "\n", encoding="utf-8")
    assert "`form` must be a multi-class form with margins that are linear" in error("--data", str(three))
    broken = tmp_path / "broken.py"
    broken.write_text("1/0\n", encoding="utf-8")
    assert "`--phi-file` must run without an error" in error("--phi-file", str(broken))
    broken.write_text("psi = 1\n", encoding="utf-8")
    assert "`--phi-file` must define `phi`" in error("--phi-file", str(broken))


def test_without_matplotlib_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    assert run("--plot", str(tmp_path / "loss.png")) == 2
    assert "pip install matplotlib" in capsys.readouterr().err
