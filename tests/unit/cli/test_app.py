"""The command line without extras, without linearcore-paper, and with a distribution that cannot be loaded."""

import importlib.metadata
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint

import pytest

from linearcore.cli import main
from tests.cases import each
from tests.fresh_python import fresh_python

WITHOUT = """
import sys
sys.modules[{missing!r}] = None
from linearcore.cli import main
main(sys.argv[1:])
"""
WORDS = ("", "--help", "certify", "reproduce --list")
BROKEN = EntryPoint("reproduce", "linearcore_nowhere:reproduce", "linearcore.commands")


@pytest.fixture
def linearcore(monkeypatch, capsys):
    """Runs the command line anew with the given commands of other distributions; returns exit code, output and errors."""
    import linearcore.cli._app as loaded  # Put back after the test.

    installed = importlib.metadata.entry_points  # torch asks for others

    def run(*words: str, commands: Sequence[EntryPoint] = ()) -> tuple[object, str, str]:
        def entry_points(*, group: str) -> Sequence[EntryPoint]:
            return commands if group == "linearcore.commands" else installed(group=group)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        monkeypatch.setattr("linearcore.cli._app", loaded)
        monkeypatch.delitem(sys.modules, loaded.__name__)
        with pytest.raises(SystemExit) as stopped:
            main(words)
        return stopped.value.code, *capsys.readouterr()

    return run


@each(
    ("words", "missing"),
    {f"{words} without {name}": (words.split(), name) for name in ("typer", "rich") for words in WORDS},
    ("certify without rich",),
)
def test_without_the_extra_one_line_says_what_to_install(words, missing):
    run = fresh_python("-c", WITHOUT.format(missing=missing), *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"linearcore: {missing} not installed; run pip install 'linearcore[cli]'\n"


@pytest.mark.parametrize("words", ("reproduce", "reproduce --all", "demo --help"))
def test_without_the_paper_its_commands_say_what_to_install(linearcore, words):
    code, said, error = linearcore(*words.split())
    assert (code, said) == (2, "")
    assert error.count("\n") == 1 and f"`linearcore {words.split()[0]}` is part of linearcore-paper" in error
    assert "pip install" in error


def test_without_the_paper_help_lists_the_others(linearcore):
    code, said, error = linearcore("--help")
    assert (code, error) == (0, "")
    listed = [line.split()[0] for line in said.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == ["suspects", "certify", "tag"]
    assert [line for line in said.splitlines() if "linearcore-paper" in line and "demo" in line and "reproduce" in line]
    assert "linearcore demo " not in said and "linearcore reproduce " not in said


def test_with_the_paper_help_lists_all(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    said = capsys.readouterr().out
    listed = {line.split()[0] for line in said.partition("Commands:")[2].splitlines() if line.strip()}
    assert (stopped.value.code, listed) == (0, {"demo", "reproduce", "suspects", "certify", "tag"})
    assert "linearcore-paper" not in said and "linearcore demo " in said


def test_a_distribution_that_cannot_be_loaded_takes_no_other_command_away(linearcore):
    code, _, error = linearcore("certify", "--classes", "2", commands=[BROKEN])
    assert (code, error) == (0, "")
    code, said, error = linearcore("reproduce", commands=[BROKEN])
    assert (code, said) == (2, "")
    assert error.count("\n") == 1 and "linearcore_nowhere" in error and "Traceback" not in error
