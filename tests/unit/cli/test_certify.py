"""`linearcore certify`: the report, JSON, and one line for bad input."""

import json

import pytest

from linearcore.cli import main


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["certify", *words])
    return int(left.value.code or 0)


def test_a_theorem(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--form", "centered", "--sum", "--classes", "4", "--tau", "0.5") == 0
    shown = capsys.readouterr().out
    assert "form Centered(normalize=False) on 4 classes" in shown
    assert "linear bound      proven: regret ≤ 2 × surrogate regret" in shown
    assert run("--form", "centered", "--classes", "4", "--tau", "0.5") == 0
    shown = capsys.readouterr().out
    assert "form centered on 4 classes" in shown and "proven: regret ≤ 6 × surrogate regret" in shown


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--form", "pairwise", "--starts", "30", "--json") == 0
    assert json.loads(capsys.readouterr().out)["linear_bound"]["verdict"] == "refuted"


def test_a_structured_form_names_its_scores(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--form",
        "structured-centered",
        "--classes",
        "2",
        "--length",
        "2",
        "--cost",
        "hamming",
        "--family",
        "unary",
        "--starts",
        "40",
    ]
    assert run(*words) == 0
    out = capsys.readouterr().out
    assert "unary scores" in out and "refuted" in out


BAD = {
    "tau": (("--tau", "-1"), "`tau` must be a positive number"),
    "form": (("--form", "sum"), "`form` must be one of"),
    "sum of one margin": (
        ("--form", "logodds", "--sum"),
        "`--sum` must be used with a form that is a mean over competitors",
    ),
    "sum of a sum": (
        ("--form", "structured-sum", "--sum"),
        "`--sum` must be used with a form that is a mean over competitors",
    ),
    "classes": (("--classes", "1"), "`--classes` must be at least 2"),
    "classical": (("--classical", "huber"), "`--classical` must be one of"),
    "size": (("--classes", "10", "--length", "9"), "`length` must span at most 20000 outputs"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
