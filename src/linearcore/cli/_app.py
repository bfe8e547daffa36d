"""The typer application: linearcore's own commands, and those that other distributions add."""

import sys
from importlib.metadata import entry_points
from typing import Annotated, NoReturn

import typer

from linearcore.cli._certify import certify
from linearcore.cli._suspects import suspects
from linearcore.cli._tag import tag
from linearcore.cli._usage import INTERRUPTED, UsageError
from linearcore.runtime import package_version

#: What the help begins with, command by command.
_START = {
    "demo": "linearcore demo                                     eight losses on digits with wrong labels",
    "suspects": "linearcore suspects FILE.csv --label COLUMN         rows whose label looks wrong",
    "certify": "linearcore certify --form centered --classes 5      what a loss guarantees",
    "reproduce": "linearcore reproduce --list                         the paper's figures and tables",
    "tag": "linearcore tag --help                               train taggers, and use them",
}
#: Commands of linearcore-paper.
_OF_PAPER = ("demo", "reproduce")
_PAPER_ADVICE = "run pip install linearcore-paper, or pip install -e paper in a clone"

# Plain help: it is also read in logs and pipes. Tracebacks are Python's own, and only for faults of the library.
app = typer.Typer(name="linearcore", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
#: Commands that cannot be run, with a line that says why.
_missing = {name: f"`linearcore {name}` comes with linearcore-paper; {_PAPER_ADVICE}" for name in _OF_PAPER}
for _entry in entry_points(group="linearcore.commands"):
    try:
        app.command(_entry.name)(_entry.load())
        _missing.pop(_entry.name, None)
    except Exception as _error:  # One broken distribution must not take the other commands away.
        _whose = _entry.dist.name if _entry.dist else "the distribution that brings it"
        _missing[_entry.name] = f"`linearcore {_entry.name}` cannot be loaded ({_error}); install {_whose} again"
app.command()(suspects)
app.command()(certify)
app.add_typer(tag, name="tag")


def _help() -> str:
    lines = [f"    {line}" for name, line in _START.items() if name not in _missing]
    first = "Linear-Core surrogate losses: convex, smooth, and exactly linear around margin zero."
    text = "\n".join([first, "", "\b", "Start with", *lines])
    if _missing.keys() & set(_OF_PAPER):
        text += "\n\n\b\ndemo and reproduce come with linearcore-paper (pip install linearcore-paper)."
    return text


@app.callback(invoke_without_command=True, help=_help())
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """`linearcore` without a command."""
    if version:
        typer.echo(f"linearcore {package_version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(words: list[str]) -> NoReturn:
    """Runs the command that `words` name, and leaves Python; see `linearcore.cli.main`."""
    try:
        command = next((word for word in words if not word.startswith("-")), "")
        if command in _missing:
            raise UsageError(_missing[command])
        code = app(words, prog_name="linearcore", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        message = _message(error)
        if message is None:
            raise
        _say(message)
        sys.exit(2)
    # Some versions of typer turn an interrupt into this code, others let it through.
    if code == INTERRUPTED:
        _say("interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str | None:
    """The line for an error that the user can mend; None for one that is ours."""
    if isinstance(error, UsageError):
        return str(error)
    # typer's errors about options have moved between packages; all of them have `format_message`.
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    command = "linearcore" if context is None else context.command_path
    return f"{describe().rstrip('.')}; `{command} --help` shows what there is"


def _say(message: str) -> None:
    # One line, whatever the message was.
    print("linearcore:", " ".join(message.split()), file=sys.stderr)
