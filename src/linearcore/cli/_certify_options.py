"""Options of `linearcore certify`."""

from pathlib import Path
from typing import Annotated

import typer

from linearcore.analysis import STRUCTURED_FORMS
from linearcore.forms import FORMS
from linearcore.structures import COSTS
from linearcore.surrogates import BASES, CLASSICAL

Form = Annotated[str, typer.Option(help=f"Form of the loss: {', '.join((*FORMS, *STRUCTURED_FORMS))}.")]
AsSum = Annotated[bool, typer.Option("--sum", help="Use the sum over competitors, as in the paper, instead of the mean.")]
Classes = Annotated[
    int | None, typer.Option(help="Number of classes, or of tags with --length; default 3, or the classes of --data.")
]
Base = Annotated[str | None, typer.Option(help=f"Base of the linear-core surrogate: {', '.join(BASES)}; default logistic.")]
Tau = Annotated[float | None, typer.Option(help="Margin τ at which the linear core ends; default 1.")]
Sides = Annotated[int | None, typer.Option(help="Number of tails of the surrogate, 1 or 2; default 1.")]
Sharpness = Annotated[float | None, typer.Option(help="Curvature factor of the tail; default 1.")]
Classical = Annotated[str | None, typer.Option(help=f"Use a classical surrogate: {', '.join(CLASSICAL)}.")]
Phi = Annotated[
    str | None,
    typer.Option(
        help='Use your own loss: a formula of the margin u, such as "log1p(exp(-u))". Numbers, + - * / **, '
        "where(u < 1, a, b), max, min, abs, exp, log, log1p, relu, sigmoid, softplus, sqrt, square, tanh and a few more."
    ),
]
PhiFile = Annotated[
    Path | None,
    typer.Option(help="Use your own loss: a Python file that defines phi, a function of a tensor. Its code is run."),
]
Bound = Annotated[
    float | None,
    typer.Option(help="Largest margin of the scores: |h(x)| for two classes, mean minus score for centered."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="CSV file with numeric features; prints the whole bound with its terms estimated. Needs --bound."),
]
Label = Annotated[str | None, typer.Option(help="Label column of --data; default label.")]
Probabilities = Annotated[
    str | None,
    typer.Option(
        help="Columns of --data with label probabilities of a model that was not fitted to these rows: of the second "
        "class, or of all classes, separated by commas."
    ),
]
Confidence = Annotated[float | None, typer.Option(help="Probability with which all limits for --data hold; default 0.95.")]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the loss and its bound into this .png, .pdf or .svg file; needs matplotlib.")
]
Length = Annotated[int, typer.Option(help="Sequence length; the outputs are all sequences of tags.")]
Cost = Annotated[str, typer.Option(help=f"Cost that defines the regret: {', '.join(COSTS)}.")]
Family = Annotated[
    str,
    typer.Option(
        help="Class of score functions: free (any scores), or with --length 2 or more unary (emissions only) or chain "
        "(emissions and transitions)."
    ),
]
Starts = Annotated[
    int | None, typer.Option(help="Number of starting points of the search; default 300. There is no search with --bound.")
]
Seed = Annotated[int | None, typer.Option(help="Random seed of the search, and of the split of --data; default 0.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
