"""Options and errors of the input files, shared by the `linearcore tag` commands."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from linearcore.cli._usage import UsageError
from linearcore.structures import COST_NAMES
from linearcore.tagging.readers import FORMATS

FILE = "May be compressed (.xz, .gz, .zip); - is standard input."
FORMAT = f"File format: {', '.join(FORMATS)}."
DECODE_FOR = f"Minimum Bayes risk decoding for this metric: {', '.join(COST_NAMES)}. Slower. Default: by score."

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder written by `tag train`.")]
Device = Annotated[str, typer.Option(help="Torch device, for example cpu or cuda:1.")]
CheckIds = Annotated[bool, typer.Option(help="Require consecutive CoNLL-U ids.")]
Comments = Annotated[
    bool | None,
    typer.Option(
        help="Column files: treat lines that start with `# ` as comments or as tokens. Default: as comments, but raise an "
        "error if such a line has as many columns as a token."
    ),
]
Temperature = Annotated[
    float | None, typer.Option(help="With --decode-for: temperature of the model's distribution. Default: 1.")
]
Candidates = Annotated[
    int | None, typer.Option(help="With --decode-for: number of best tag sequences to choose from. Default: 16.")
]


def file_name(file: str) -> str:
    """Returns the name of a file in messages."""
    return "standard input" if file == "-" else Path(file).name


@contextmanager
def reader_errors() -> Iterator[None]:
    """Reports errors of the input file, which is read while it is tagged, and exits quietly if the output is closed."""
    try:
        yield
    # Includes ReaderError, and tags that do not fit into the file's columns.
    except ValueError as error:
        sys.stdout.flush()
        raise UsageError(str(error)) from error
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed it.
        sys.stderr.close()
        sys.exit(0)
