"""The command line: `linearcore demo`, `suspects`, `certify`, `reproduce`, `tag`. One file for each command."""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from linearcore.cli._certify import certify
from linearcore.cli._demo import demo
from linearcore.cli._reproduce import reproduce
from linearcore.cli._suspects import suspects
from linearcore.cli._tag import tag
from linearcore.cli._usage import INTERRUPTED, UsageError
from linearcore.runtime import package_version

# Plain help: it is also read in logs and pipes. Tracebacks are Python's own, and only for faults of the library.
app = typer.Typer(name="linearcore", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(demo)
app.command()(suspects)
app.command()(certify)
app.command()(reproduce)
app.add_typer(tag, name="tag")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Linear-Core surrogate losses: convex, smooth, and exactly linear around margin zero.

    \b
    Start with
        linearcore demo                                     nine losses on digits with wrong labels
        linearcore suspects FILE.csv --label COLUMN         rows whose label looks wrong
        linearcore certify --form centered --classes 5      what a loss guarantees
        linearcore reproduce --list                         the paper's figures and tables
        linearcore tag --help                               train taggers, and use them
    """
    if version:
        typer.echo(f"linearcore {package_version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and leaves Python: 0 when it went well, 2 after one line about what to mend, 130 when interrupted.

    Args:
        arguments: the words after `linearcore`; None takes those of the command line.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
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
