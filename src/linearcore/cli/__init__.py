"""The command line. `main` is the console script; `_app` has the commands, one file for each.

Nothing here needs an extra: `main` says what to install where typer is missing. Other distributions add commands through the
entry point group `linearcore.commands`, and end them early with `UsageError`, as linearcore's own do.
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

from linearcore._extras import MissingExtraError, require
from linearcore.cli._usage import INTERRUPTED, UsageError, check_device, usage_errors

__all__ = ["INTERRUPTED", "UsageError", "check_device", "main", "usage_errors"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs a command and exits with code 0 (success), 2 (after a one-line error message) or 130 (interrupted).

    Args:
        arguments: the words after `linearcore`; None takes those of the command line.
    """
    try:
        require("typer", "rich", extra="cli")
    except MissingExtraError as error:
        print("linearcore:", error, file=sys.stderr)
        sys.exit(2)
    from linearcore.cli._app import run

    run(list(sys.argv[1:] if arguments is None else arguments))
