"""`linearcore suspects`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from linearcore._checks import complaint, one_of
from linearcore.cleaning import LOSSES, MEASURES, Findings, Table, find_wrong_labels, read_table
from linearcore.cli._usage import usage_errors

#: Networks have learned next to nothing if they avoid less than this share of the mistakes that one makes by always saying
#: the most frequent label.
TOO_LITTLE = 0.1
#: How a message of the library says it, and how the command does.
_WORDS = {
    "`learning_rate`": "`--rate`",
    "lower the learning rate": "lower the learning rate with --rate",
    **{f"`{name}`": f"`--{name}`" for name in ("loss", "by", "folds", "epochs", "seed")},
}


def suspects(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV file with a header; plain, or .gz, .xz, .bz2.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The column with the labels.")],
    top: Annotated[int, typer.Option(metavar="N", help="How many rows to show.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the whole file with rank, suspicion and suggested label, which is the given one where the networks "
            "agree with it; packed if the name ends in .gz, .xz, .bz2.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out, such as a name; may be repeated.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of categories that look like numbers; may be repeated."),
    ] = None,
    delimiter: Annotated[str, typer.Option(metavar="CHARACTER", help="What stands between two fields; \\t is a tab.")] = ",",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"One of {', '.join(LOSSES)}; robust needs three labels or more.",
        ),
    ] = "gce",
    by: Annotated[str, typer.Option(metavar="NAME", help=f"Measure of suspicion: {' or '.join(MEASURES)}.")] = "margin",
    folds: Annotated[int, typer.Option(metavar="N", help="Parts; each is scored by a network trained on the others.")] = 5,
    epochs: Annotated[int, typer.Option(metavar="N", help="Passes over the data, at most.")] = 30,
    rate: Annotated[float, typer.Option(metavar="NUMBER", help="Learning rate.")] = 0.003,
    seed: Annotated[int, typer.Option(metavar="N", help="Of parts, starts and order.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Find rows of a CSV file whose label looks wrong.

    Small networks are trained on the other columns, each row is scored by one that did not see it, and rows are ranked by
    how far another label is ahead of the given one. Columns of words become categories. The file itself is not changed.

    \b
    Examples
        linearcore suspects flowers.csv --label species
        linearcore suspects patients.csv --label diagnosis --ignore id --out ranked.csv
        linearcore suspects letter.csv.xz --label lettr --loss lc --json
    """
    from linearcore.runtime import Progress

    # Around the training, too: what it raises is about an option, a column, or a learning rate at which it diverges.
    with usage_errors(), _named_as_options():
        one_of("--loss", loss, LOSSES)
        if top < 0:
            raise ValueError(f"`--top` must be at least 0, got {top}; pass 20 for example")
        table = read_table(file, delimiter.replace("\\t", "\t"))
        if out is not None:
            _check_out(out, table)
        with Progress() as progress:
            found = find_wrong_labels(
                table, label, by=by, loss=loss, folds=folds, epochs=epochs, learning_rate=rate, seed=seed,
                ignore=tuple(ignore or ()), categorical=tuple(categorical or ()), progress=progress,
            )  # fmt: skip
        if out is not None:
            found.write(out)
    if as_json:
        settings = {"label": label, "loss": loss, "by": by, "folds": folds, "epochs": epochs, "rate": rate, "seed": seed}
        typer.echo(json.dumps(_plain(found, settings, top), ensure_ascii=False))
    else:
        _show(found, top, by, out)


def _check_out(out: Path, table: Table) -> None:
    """Raises unless the ranked table can go there: training first and failing then would be a waste."""
    if out.exists() and out.samefile(table.name):
        raise ValueError(complaint("--out", "be another file than the one that is read", out, "name a new file"))
    if out.is_dir():
        raise ValueError(complaint("--out", "be a file", f"the folder {out}", "name a file in it"))
    if not out.parent.is_dir():
        raise ValueError(complaint("--out", "be a file in a folder that is there", out, "make the folder, or name another"))


@contextmanager
def _named_as_options() -> Iterator[None]:
    """Inside, what the library says of its arguments is said of the options of the command."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for argument, option in _WORDS.items():
            text = text.replace(argument, option)
        raise ValueError(text) from error


def _plain(found: Findings, settings: dict[str, object], top: int) -> dict[str, object]:
    """Everything the table says, as JSON values."""
    return {
        "rows": len(found.table.rows),
        "features": found.encoded.features.shape[1],
        "classes": list(found.encoded.classes),
        "agreement": round(found.agreement, 6),
        "epoch": found.out_of_fold.epoch,
        "most_frequent": round(found.majority[1], 6),
        "prefer_another": found.prefer_another,
        "single": [{"label": name, "line": line} for name, line in found.lonely],
        "settings": settings,
        "suspects": [asdict(suspect) for suspect in found.worst(top)],
    }


def _show(found: Findings, top: int, by: str, out: Path | None) -> None:
    """What was learned from, the worst rows, and how to read them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    encoded, rows = found.encoded, len(found.table.rows)
    columns = _counted(len(encoded.numbers), "column of numbers", "columns of numbers")
    if encoded.categories:
        columns += f", {_counted(len(encoded.categories), 'column of categories', 'columns of categories')}"
    epochs = len(found.out_of_fold.agreement)
    lines = [
        f"{rows:,} rows, {len(encoded.classes)} labels; learned from {columns}.",
        f"Networks that did not see a row agree with {_percent(found.agreement)} of the labels "
        f"(after epoch {found.out_of_fold.epoch} of {epochs}).",
    ]
    table = Table(title=f"The {min(top, rows)} most suspicious of {rows:,} rows")
    for head in ("line", "given", "suggested", "suspicion"):
        table.add_column(head, justify="left" if head in ("given", "suggested") else "right", no_wrap=head != "given")
    for suspect in found.worst(top):
        table.add_row(f"{suspect.line}", Text(suspect.given), Text(suspect.suggested), f"{suspect.suspicion:.2f}")
    share = f"{found.prefer_another:,} rows ({_percent(found.prefer_another / rows)})"
    after = [
        *([f"suspicion: {MEASURES[by]}."] if top else []),
        f"Another label is preferred in {share}. That is no estimate of how many are wrong: networks err, too. "
        "Look from the top, and stop where most labels are right.",
    ]
    if found.out_of_fold.epoch == epochs:
        after.append(f"The networks were still getting better when they stopped: --epochs {2 * epochs} may find more.")
    label, frequent = found.majority
    if found.agreement < frequent + TOO_LITTLE * (1 - frequent):
        after.append(
            f"Beware: always saying {label!r} would agree with {_percent(frequent)}. "
            "The other columns tell too little about the label for this list to mean much."
        )
    if found.lonely:
        shown = ", ".join(f"{name!r} in line {line}" for name, line in found.lonely[:5])
        more = f" and {len(found.lonely) - 5} more" if len(found.lonely) > 5 else ""
        after.append(f"Labels of a single row, which may be misspelt: {shown}{more}.")
    after.append("All rows, ranked: pass --out FILE." if out is None else f"All rows, with their rank: {out}.")
    console = Console(highlight=False)
    for part in (*lines, *([table] if top else []), *after):
        console.print(part, markup=False, soft_wrap=isinstance(part, str))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
