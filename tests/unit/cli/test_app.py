"""The command line without extras, without linearcore-paper, and with a distribution that cannot be loaded."""

import pytest

from tests.fresh_python import fresh_python

WITHOUT = """
import importlib.metadata, sys
sys.modules.update(dict.fromkeys({missing!r}))
installed = importlib.metadata.entry_points  # torch asks for others
importlib.metadata.entry_points = lambda group: {commands} if group == "linearcore.commands" else installed(group=group)
from linearcore.cli import main
main(sys.argv[1:])
"""
BROKEN = "[importlib.metadata.EntryPoint('reproduce', 'linearcore_nowhere:reproduce', 'linearcore.commands')]"


def linearcore(*words: str, missing: tuple[str, ...] = (), commands: str = "[]"):
    return fresh_python("-c", WITHOUT.format(missing=missing, commands=commands), *words)


@pytest.mark.parametrize("words", [(), ("--help",), ("certify",), ("reproduce", "--list")])
@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_line_says_what_to_install(words, missing):
    run = linearcore(*words, missing=(missing,))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"linearcore: {missing} not installed; run pip install 'linearcore[cli]'\n"


@pytest.mark.parametrize("words", [("reproduce",), ("reproduce", "--all"), ("demo", "--help")])
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


def test_with_the_paper_help_lists_all():
    run = fresh_python("-m", "linearcore", "--help")
    listed = {line.split()[0] for line in run.stdout.partition("Commands:")[2].splitlines() if line.strip()}
    assert (run.returncode, listed) == (0, {"demo", "reproduce", "suspects", "certify", "tag"})
    assert "linearcore-paper" not in run.stdout and "linearcore demo " in run.stdout


def test_a_distribution_that_cannot_be_loaded_takes_no_other_command_away():
    run = linearcore("certify", "--classes", "2", commands=BROKEN)
    assert (run.returncode, run.stderr) == (0, "")
    run = linearcore("reproduce", commands=BROKEN)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1 and "linearcore_nowhere" in run.stderr and "Traceback" not in run.stderr
