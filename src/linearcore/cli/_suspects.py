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

#: The report warns if the networks avoid less than this fraction of the errors of always predicting the majority label.
MIN_ERROR_REDUCTION = 0.1
#: Argument names in messages of the library, and the option names that replace them.
_OPTION_NAMES = {
    "`learning_rate`": "`--lr`",
    "lower the learning rate": "lower the learning rate with --lr",
    **{f"`{name}`": f"`--{name}`" for name in ("loss", "measure", "folds", "epochs", "seed")},
}


def suspects(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV file with a header row. May be compressed (.gz, .xz, .bz2).")
    ],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Name of the label column.")],
    top: Annotated[int, typer.Option(metavar="N", help="Number of rows to show.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the table with rank, suspicion and suggested label. Compressed if named .gz, .xz or .bz2.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column to drop, such as a name. Can be repeated.")
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Numeric column to treat as categorical. Can be repeated.")
    ] = None,
    delimiter: Annotated[str, typer.Option(metavar="CHARACTER", help="Field separator; \\t is a tab.")] = ",",
    loss: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Training loss, one of {', '.join(LOSSES)}. robust needs at least three classes. "
            "Definitions: docs/wrong-labels.md; lc-*: docs/which-loss.md.",
        ),
    ] = "gce",
    measure: Annotated[str, typer.Option(metavar="NAME", help=f"Measure of suspicion: {' or '.join(MEASURES)}.")] = "margin",
    folds: Annotated[int, typer.Option(metavar="N", help="Number of cross-validation folds.")] = 5,
    epochs: Annotated[int, typer.Option(metavar="N", help="Number of training epochs.")] = 30,
    lr: Annotated[float, typer.Option(metavar="NUMBER", help="Learning rate.")] = 0.003,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find rows of a CSV file whose label looks wrong.

    Small networks are trained on the other columns by cross-validation, so each row is scored by a network that was not
    trained on it. Rows are ranked by the margin between the best other label and the given label. Text columns are treated
    as categorical. The input file is not changed.

    \b
    Examples
        linearcore suspects flowers.csv --label species
        linearcore suspects patients.csv --label diagnosis --ignore id --out ranked.csv
        linearcore suspects letter.csv.xz --label lettr --loss lc --json
    """
    from linearcore.runtime import Progress

    # Includes the training, which raises ValueError only for an option, a column, or a learning rate that is too large.
    with usage_errors(), _option_names():
        one_of("--loss", loss, LOSSES)
        if top < 0:
            raise ValueError(f"`--top` must be at least 0, got {top}; pass 20 for example")
        table = read_table(file, delimiter.replace("\\t", "\t"))
        if out is not None:
            _check_out(out, table)
        with Progress() as progress:
            findings = find_wrong_labels(
                table, label, measure=measure, loss=loss, folds=folds, epochs=epochs, learning_rate=lr, seed=seed,
                ignore=tuple(ignore or ()), categorical=tuple(categorical or ()), progress=progress,
            )  # fmt: skip
        if out is not None:
            findings.write(out)
    if as_json:
        settings = {"label": label, "loss": loss, "measure": measure, "folds": folds, "epochs": epochs, "lr": lr}
        settings |= {"seed": seed}
        typer.echo(json.dumps(_to_json(findings, settings, top), ensure_ascii=False))
    else:
        _print_report(findings, top, measure, out)


def _check_out(out: Path, table: Table) -> None:
    """Raises before the training if the output file cannot be written."""
    if out.exists() and out.samefile(table.name):
        raise ValueError(complaint("--out", "be another file than the input file", out, "name a new file"))
    if out.is_dir():
        raise ValueError(complaint("--out", "be a file", f"the folder {out}", "name a file in it"))
    if not out.parent.is_dir():
        raise ValueError(complaint("--out", "be a file in an existing folder", out, "create the folder, or name another"))


@contextmanager
def _option_names() -> Iterator[None]:
    """Context manager that replaces argument names by option names in messages of ValueErrors."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for argument, option in _OPTION_NAMES.items():
            text = text.replace(argument, option)
        raise ValueError(text) from error


def _to_json(findings: Findings, settings: dict[str, object], top: int) -> dict[str, object]:
    """Returns the content of the report as JSON values."""
    return {
        "rows": len(findings.table.rows),
        "features": findings.encoded.features.shape[1],
        "classes": list(findings.encoded.classes),
        "agreement": round(findings.agreement, 6),
        "epoch": findings.out_of_fold.epoch,
        "most_frequent": round(findings.majority[1], 6),
        "num_disagreements": findings.num_disagreements,
        "singleton_labels": [{"label": name, "line": line} for name, line in findings.singleton_labels],
        "settings": settings,
        "suspects": [asdict(suspect) for suspect in findings.most_suspicious(top)],
    }


def _print_report(findings: Findings, top: int, measure: str, out: Path | None) -> None:
    """Prints the table of the most suspicious rows, with an explanation."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    encoded, rows = findings.encoded, len(findings.table.rows)
    columns = _format_count(len(encoded.numbers), "numeric column")
    if encoded.categories:
        columns += f", {_format_count(len(encoded.categories), 'categorical column')}"
    epochs, disagreements = len(findings.out_of_fold.agreement), findings.num_disagreements
    lines_before = [
        f"{rows:,} rows, {len(encoded.classes)} labels; features from {columns}.",
        f"Networks that were not trained on a row agree with {_format_percent(findings.agreement)} of the labels "
        f"(best epoch: {findings.out_of_fold.epoch} of {epochs}).",
    ]
    table = Table(title=f"The {min(top, rows)} most suspicious of {rows:,} rows")
    for head in ("line", "given", "suggested", "suspicion"):
        table.add_column(head, justify="left" if head in ("given", "suggested") else "right", no_wrap=head != "given")
    for suspect in findings.most_suspicious(top):
        labels = Text(suspect.given_label), Text(suspect.suggested_label)
        table.add_row(f"{suspect.line}", *labels, f"{suspect.suspicion:.2f}")
    lines_after = [
        *([f"suspicion: {MEASURES[measure]}."] if top else []),
        f"The networks prefer another label in {disagreements:,} rows ({_format_percent(disagreements / rows)}). This is "
        "not the number of wrong labels, because networks err too. Check rows from the top until most labels are correct.",
    ]
    if findings.out_of_fold.epoch == epochs:
        lines_after.append(f"The last epoch was the best: --epochs {2 * epochs} may find more.")
    label, frequency = findings.majority
    if findings.agreement < frequency + MIN_ERROR_REDUCTION * (1 - frequency):
        lines_after.append(
            f"Warning: always predicting {label!r} would agree with {_format_percent(frequency)}. "
            "The other columns predict the label too poorly for a useful ranking."
        )
    if singletons := findings.singleton_labels:
        names = ", ".join(f"{name!r} in line {line}" for name, line in singletons[:5])
        more = f" and {len(singletons) - 5} more" if len(singletons) > 5 else ""
        lines_after.append(f"Labels that occur only once (possibly typos): {names}{more}.")
    lines_after.append(
        "Pass --out FILE to write all rows with their rank." if out is None else f"All rows with rank: {out}."
    )
    console = Console(highlight=False)
    for part in (*lines_before, *([table] if top else []), *lines_after):
        console.print(part, markup=False, soft_wrap=isinstance(part, str))


def _format_percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
