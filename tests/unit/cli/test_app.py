"""The command line without extras, without linearcore-paper, and with a distribution that cannot be loaded."""

import pytest

from linearcore.cli import main
from tests.cases import each
from tests.fresh_python import fresh_python

WITHOUT = """
import importlib.metadata, sys
sys.modules.update(dict.fromkeys({missing!r}))
installed = importlib.metadata.entry_points  # torch asks for others
importlib.metadata.entry_points = lambda group: {commands} if group == "linearcore.commands" else installed(group=group)
from linearcore.cli import main
main(sys.argv[1:])
"""
WORDS = ("", "--help", "certify", "reproduce --list")
BROKEN = "[importlib.metadata.EntryPoint('reproduce', 'linearcore_nowhere:reproduce', 'linearcore.commands')]"


def linearcore(*words: str, missing: tuple[str, ...] = (), commands: str = "[]"):
    return fresh_python("-c", WITHOUT.format(missing=missing, commands=commands), *words)


@each(
    ("words", "missing"),
    {f"{words} without {name}": (words.split(), name) for name in ("typer", "rich") for words in WORDS},
    (" without typer", "certify without rich"),
)
def test_without_the_extra_one_line_says_what_to_install(words, missing):
    run = linearcore(*words, missing=(missing,))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"linearcore: {missing} not installed; run pip install 'linearcore[cli]'\n"


@each("words", {words: words.split() for words in ("reproduce", "reproduce --all", "demo --help")}, ("demo --help",))
def test_without_the_paper_its_commands_say_what_to_install(words):
    run = linearcore(*words)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1 and f"`linearcore {words[0]}` is part of linearcore-paper" in run.stderr
    assert "pip install" in run.stderr


def test_without_the_paper_help_lists_the_others():
    run = linearcore("--help")
    assert (run.returncode, run.stderr) == (0, "")
    listed = [line.split()[0] for line in run.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == ["suspects", "certify", "tag"]
    assert [
        line for line in run.stdout.splitlines() if "linearcore-paper" in line and "demo" in line and "reproduce" in line
    ]
    assert "linearcore demo " not in run.stdout and "linearcore reproduce " not in run.stdout


def test_with_the_paper_help_lists_all(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    said = capsys.readouterr().out
    listed = {line.split()[0] for line in said.partition("Commands:")[2].splitlines() if line.strip()}
    assert (stopped.value.code, listed) == (0, {"demo", "reproduce", "suspects", "certify", "tag"})
    assert "linearcore-paper" not in said and "linearcore demo " in said


def test_a_distribution_that_cannot_be_loaded_takes_no_other_command_away():
    run = linearcore("certify", "--classes", "2", commands=BROKEN)
    assert (run.returncode, run.stderr) == (0, "")
    run = linearcore("reproduce", commands=BROKEN)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1 and "linearcore_nowhere" in run.stderr and "Traceback" not in run.stderr
