"""Options of `linearcore suspects`."""

from pathlib import Path
from typing import Annotated

import typer

from linearcore.cleaning import ADDED_COLUMNS, LOSSES, MODELS

#: Number of rows of the HTML page, if --top is not greater.
PAGE_ROWS = 100

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="CSV file with a header row, possibly compressed (.gz, .xz, .bz2), or Parquet file."
    ),
]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="Name of the label column.")]
Top = Annotated[int, typer.Option(metavar="N", help="Number of rows to show.")]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"Write all rows with the new columns {', '.join(ADDED_COLUMNS)}. Parquet if named .parquet, otherwise CSV, "
        "compressed if named .gz, .xz or .bz2.",
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=f"Write a page with the {PAGE_ROWS} most suspicious rows (more with --top)."),
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to drop, such as a name. Can be repeated.")]
Categorical = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Numeric column to treat as categorical. Can be repeated.")
]
Text = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to treat as text. Can be repeated.")]
Delimiter = Annotated[str, typer.Option(metavar="CHARACTER", help="Field separator of CSV; \\t is a tab.")]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, "
        + "; ".join(f"{name} ({model.description})" for name, model in MODELS.items())
        + ". auto: linear for text and for more than 67 million rows × features, network if rows × classes > 1.5 million, "
        "otherwise ensemble.",
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Training loss of the network: {', '.join(LOSSES)}. Default: gce. lc is the same as lc-logodds. "
        "robust needs at least three classes. Definitions: linearcore.losses.baselines, linearcore.robust_loss, and "
        "linearcore.multiclass_loss for lc.",
    ),
]
Measure = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Measure of suspicion: margin (best other score minus score of the given label) or log_odds (log-odds against "
        "the given label).",
    ),
]
Folds = Annotated[int, typer.Option(metavar="N", help="Number of cross-validation folds.")]
Epochs = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Number of training epochs of the network; the scores of the best epoch are used. Default: 30."
    ),
]
LearningRate = Annotated[float | None, typer.Option(metavar="NUMBER", help="Learning rate of the network. Default: 0.003.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
