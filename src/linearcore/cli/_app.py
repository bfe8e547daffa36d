"""The typer application, with the commands of linearcore and of installed plug-ins."""

import os
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Annotated, NoReturn

import typer

from linearcore.cli._certify import certify
from linearcore.cli._suspects import suspects
from linearcore.cli._tag_eval import evaluate
from linearcore.cli._tag_export import export
from linearcore.cli._tag_predict import predict
from linearcore.cli._tag_train import train
from linearcore.cli._usage import INTERRUPTED, UsageError, disk_full_message
from linearcore.runtime import package_version

#: Examples in the help text, by command.
_EXAMPLES = {
    "demo": "linearcore demo                                     step times of taggers, accuracy with wrong labels",
    "suspects": "linearcore suspects FILE.csv --label COLUMN         find rows whose label looks wrong",
    "certify": "linearcore certify --form centered --classes 5      check the guarantees of a loss",
    "reproduce": "linearcore reproduce --list                         list the paper's experiments",
    "tag": "linearcore tag --help                               train and use sequence taggers",
}
#: Commands of linearcore-paper.
_PAPER_COMMANDS = ("demo", "reproduce")
_PAPER_ADVICE = "run pip install linearcore-paper, or pip install -e paper in a clone"

# No rich markup, because help is also read in logs and pipes. Only bugs of the library print a traceback.
app = typer.Typer(
    name="linearcore",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 120},  # Examples are up to 118 wide. A narrower terminal counts.
)
#: Commands that cannot be run, with the error message.
_missing = {name: f"`linearcore {name}` is part of linearcore-paper; {_PAPER_ADVICE}" for name in _PAPER_COMMANDS}
for _entry in entry_points(group="linearcore.commands"):
    try:
        app.command(_entry.name)(_entry.load())
        _missing.pop(_entry.name, None)
    except Exception as _error:  # A broken plug-in must not disable the other commands.
        _package = _entry.dist.name if _entry.dist else "its package"
        _missing[_entry.name] = f"`linearcore {_entry.name}` cannot be loaded ({_error}); install {_package} again"
app.command()(suspects)
app.command()(certify)
tag = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
tag.command()(train)
tag.command()(predict)
tag.command(name="eval")(evaluate)
tag.command()(export)
app.add_typer(tag, name="tag")


def _help() -> str:
    lines = [f"    {line}" for name, line in _EXAMPLES.items() if name not in _missing]
    summary = "Linear-Core surrogate losses: convex, smooth, and linear for margins near zero."
    text = "\n".join([summary, "", "\b", "Examples", *lines])
    if _missing.keys() & set(_PAPER_COMMANDS):
        text += "\n\n\b\nThe commands demo and reproduce need linearcore-paper (pip install linearcore-paper)."
    return text


@app.callback(invoke_without_command=True, help=_help())
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Runs `linearcore` without a command."""
    if version:
        typer.echo(f"linearcore {package_version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@tag.callback(invoke_without_command=True)
def tag_root(context: typer.Context) -> None:
    """Train and use sequence taggers.

    \b
    Start with
        linearcore tag train --train train.conllu --dev dev.conllu --tag upos --out model
        linearcore tag eval model test.conllu
        linearcore tag predict model new.conllu > tagged.conllu
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(words: list[str]) -> NoReturn:
    """Runs the command in `words` and exits Python; see `linearcore.cli.main`."""
    code, message = _outcome(words)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()  # Now, because at the end of Python an error would be a traceback.
    except OSError as error:
        _discard_output()
        if not message and not isinstance(error, BrokenPipeError):
            code, message = 2, disk_full_message(error) or f"cannot write standard output: {(error.strerror or '').lower()}"
    if message:
        _print_error(message)
    sys.exit(code)


def _outcome(words: list[str]) -> tuple[int, str]:
    """Runs the command in `words`; returns the exit code, and an error message or an empty string."""
    try:
        command = next((word for word in words if not word.startswith("-")), "")
        if command in _missing:
            raise UsageError(_missing[command])
        code = app(words, prog_name="linearcore", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as left:
        # As Python does it: None is 0, and a text is an error message with code 1.
        return (left.code or 0, "") if isinstance(left.code, int | None) else (1, str(left.code))
    except Exception as error:
        message = _message(error)
        if message is None:
            raise
        return 2, message
    # Some versions of typer return this code after an interrupt, others raise.
    return (code if isinstance(code, int) else 0), ("interrupted" if code == INTERRUPTED else "")


def _discard_output() -> None:
    """Sends what is left of standard output nowhere, so Python does not try to write it again when it exits."""
    with suppress(OSError, ValueError):  # Standard output may be an object without a file.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _message(error: Exception) -> str | None:
    """Returns the message for a usage error, or None for a bug of the library."""
    if isinstance(error, UsageError):
        return str(error)
    disk_full = disk_full_message(error)
    if disk_full is not None:
        return disk_full
    # The module of typer's usage errors depends on its version; all of them have `format_message`.
    format_message = getattr(error, "format_message", None)
    if format_message is None:
        return None
    context = getattr(error, "ctx", None)
    command = "linearcore" if context is None else context.command_path
    return f"{format_message().rstrip('.')}; see `{command} --help`"


def _print_error(message: str) -> None:
    # Joins the lines of the message.
    print("linearcore:", " ".join(message.split()), file=sys.stderr)
