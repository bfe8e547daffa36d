"""Options of `linearcore suspects`."""

from pathlib import Path
from typing import Annotated

import typer

from linearcore.cleaning import LOSSES, MEASURES, MODELS

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
        help="Write the table with rank, suspicion and suggested label. Parquet if named .parquet, otherwise CSV, "
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
        + ". auto: linear for text; otherwise ensemble, or network if there are many rows and classes.",
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Training loss of the network, one of {', '.join(LOSSES)}; gce by default. robust needs at least three "
        "classes. Definitions: docs/wrong-labels.md; lc-*: docs/which-loss.md.",
    ),
]
Measure = Annotated[str, typer.Option(metavar="NAME", help=f"Measure of suspicion: {' or '.join(MEASURES)}.")]
Folds = Annotated[int, typer.Option(metavar="N", help="Number of cross-validation folds.")]
Epochs = Annotated[int | None, typer.Option(metavar="N", help="Number of training epochs of the network; 30 by default.")]
LearningRate = Annotated[
    float | None, typer.Option(metavar="NUMBER", help="Learning rate of the network; 0.003 by default.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
