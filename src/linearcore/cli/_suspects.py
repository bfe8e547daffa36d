"""`linearcore suspects`."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from linearcore._checks import complaint, one_of
from linearcore._extras import require
from linearcore.cleaning import LOSSES, find_wrong_labels
from linearcore.cli import _suspects_options as options
from linearcore.cli._suspects_report import print_report, to_json
from linearcore.cli._usage import usage_errors
from linearcore.tables import Table, is_parquet, read_table

#: Argument names in messages of the library, and the option names that replace them.
_OPTION_NAMES = {
    "`learning_rate`": "`--lr`",
    "lower the learning rate": "lower the learning rate with --lr",
    **{f"`{name}`": f"`--{name}`" for name in ("loss", "measure", "model", "folds", "epochs", "seed")},
}
#: ignore=['name'] in messages of the library, which is --ignore 'name' here.
_COLUMN_ARGUMENT = re.compile(r"\b(ignore|categorical|text)=\[('[^']*'|\"[^\"]*\")\]")


def suspects(
    file: options.File,
    label: options.Label,
    top: options.Top = 20,
    out: options.Out = None,
    html: options.Html = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    text: options.Text = None,
    delimiter: options.Delimiter = ",",
    model: options.Model = "auto",
    loss: options.Loss = None,
    measure: options.Measure = "margin",
    folds: options.Folds = 5,
    epochs: options.Epochs = None,
    lr: options.LearningRate = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Find rows of a table whose label looks wrong.

    A model is trained on the other columns by cross-validation, so each row is scored by a model that was not trained on
    it. Rows are ranked by the margin between the best other label and the given label, and the number of wrong labels is
    estimated. Columns may hold numbers, categories and text, with missing values. The input file is not changed.

    \b
    Examples
        linearcore suspects flowers.csv --label species
        linearcore suspects patients.parquet --label diagnosis --ignore id --out ranked.parquet
        linearcore suspects reviews.csv --label stars --html suspects.html
    """
    from linearcore.runtime import Progress

    # Includes the training, which raises ValueError only for an option, a column, or a learning rate that is too large.
    with usage_errors(), _option_names():
        if loss is not None:
            one_of("--loss", loss, LOSSES)
        if top < 0:
            raise ValueError(f"`--top` must be at least 0, got {top}; pass 20 for example")
        table = read_table(file, delimiter.replace("\\t", "\t"))
        for option, path in (("--out", out), ("--html", html)):
            if path is not None:
                _check_output(option, path, table)
        if out is not None and html is not None and out.resolve() == html.resolve():
            raise ValueError(complaint("--html", "be another file than `--out`", html, "name two files"))
        with Progress() as progress:
            findings = find_wrong_labels(
                table, label, model=model, measure=measure, loss=loss, folds=folds, epochs=epochs, learning_rate=lr,
                seed=seed, ignore=ignore or (), categorical=categorical or (), text=text or (), progress=progress,
            )  # fmt: skip
    failure: OSError | None = None
    try:
        if out is not None:
            findings.write(out)
        if html is not None:
            findings.write_page(html, max(top, options.PAGE_ROWS))
    except OSError as error:  # The ranking must not be lost.
        failure, out, html = error, None, None
    if as_json:
        settings: dict[str, object] = {"label": label, "model": model, "loss": loss, "measure": measure, "folds": folds}
        settings |= {"epochs": epochs, "lr": lr, "seed": seed}
        typer.echo(json.dumps(to_json(findings, settings, top), ensure_ascii=False, default=str))
    else:
        print_report(findings, top, measure, out, html)
    if failure is not None:
        with usage_errors():
            raise failure


#: Endings of formats that are not written.
_OTHER_FORMATS = {".xlsx", ".xls", ".ods", ".json", ".jsonl", ".html", ".feather", ".arrow", ".pkl"}


def _check_output(option: str, path: Path, table: Table) -> None:
    """Raises before the training if an output file cannot be written."""
    if path.exists() and path.samefile(table.name):
        raise ValueError(complaint(option, "be another file than the input file", path, "name a new file"))
    if path.is_dir():
        raise ValueError(complaint(option, "be a file", f"the folder {path}", "name a file in it"))
    if option == "--out" and path.suffix.lower() in _OTHER_FORMATS:
        raise ValueError(complaint(option, "be a CSV or Parquet file", path, "use the ending .csv or .parquet"))
    if is_parquet(path) and option == "--out":
        require("pyarrow", extra="tables")
    if not path.parent.is_dir():
        raise ValueError(complaint(option, "be a file in an existing folder", path, "create the folder, or name another"))


@contextmanager
def _option_names() -> Iterator[None]:
    """Context manager that replaces argument names by option names in messages of ValueErrors."""
    try:
        yield
    except ValueError as error:
        text = str(error)
        for argument, option in _OPTION_NAMES.items():
            text = text.replace(argument, option)
        text = _COLUMN_ARGUMENT.sub(r"--\1 \2", text)
        raise ValueError(text) from error
