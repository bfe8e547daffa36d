"""Options of `linearcore certify`."""

from pathlib import Path
from typing import Annotated

import typer

from linearcore.analysis import STRUCTURED_FORMS
from linearcore.forms import FORMS
from linearcore.structures import COSTS
from linearcore.surrogates import BASES, CLASSICAL

Form = Annotated[
    str,
    typer.Option(
        help=f"Form of the loss: {', '.join((*FORMS, *STRUCTURED_FORMS))}. structured-*: over whole outputs, weighted by "
        "--cost; local-*: over outputs that differ at one position."
    ),
]
AsSum = Annotated[
    bool,
    typer.Option(
        "--sum",
        help="With pairwise, centered and their local forms: use the sum over competing classes, as in the paper, "
        "instead of the mean.",
    ),
]
Classes = Annotated[
    int | None, typer.Option(help="Number of classes, or of tags with --length. Default: 3, or the classes of --data.")
]
Base = Annotated[str | None, typer.Option(help=f"Base of the linear-core surrogate: {', '.join(BASES)}. Default: logistic.")]
Tau = Annotated[float | None, typer.Option(help="Margin τ at which the linear core ends. Default: 1.")]
Sides = Annotated[int | None, typer.Option(help="Number of tails of the surrogate, 1 or 2. Default: 1.")]
Sharpness = Annotated[
    float | None,
    typer.Option(
        help="Factor of the curvature of the tail; with larger values the loss falls to 0 faster beyond τ. Default: 1."
    ),
]
Classical = Annotated[str | None, typer.Option(help=f"Use a classical surrogate instead: {', '.join(CLASSICAL)}.")]
Phi = Annotated[
    str | None,
    typer.Option(
        help='Your own surrogate φ(u), a formula of the margin u such as "log1p(exp(-u))": numbers, + - * / **, '
        "where(u < 1, a, b), max, min, abs, exp, log, log1p, relu, sigmoid, softplus, sqrt, square, tanh and a few more. "
        "Only one of --base, --classical, --phi and --phi-file."
    ),
]
PhiFile = Annotated[
    Path | None,
    typer.Option(help="Your own surrogate: a Python file that defines phi, a function of a tensor. Its code is run."),
]
Bound = Annotated[
    float | None,
    typer.Option(
        help="An assumption on the scores, not the regret bound: |h(x)| ≤ Λ for two classes, score ≥ mean score − Λ for "
        "--form centered. There is no theorem for other forms with three or more classes."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="CSV file with numeric features; prints the regret bound with all its terms estimated. Needs --bound."
    ),
]
Label = Annotated[str | None, typer.Option(help='Name of the label column of --data. Default: "label".')]
Probabilities = Annotated[
    str | None,
    typer.Option(
        help="Columns of --data with label probabilities of a model that was not fitted to these rows: of the second "
        "class, or of all classes, separated by commas."
    ),
]
Confidence = Annotated[
    float | None, typer.Option(help="Confidence level of the regret bound that --data estimates. Default: 0.95.")
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw the surrogate and its regret bound into this .png, .pdf or .svg file; needs matplotlib."),
]
Length = Annotated[int, typer.Option(help="Sequence length; the outputs are all sequences of tags.")]
Cost = Annotated[str, typer.Option(help=f"Cost that defines the regret: {', '.join(COSTS)}.")]
Family = Annotated[
    str,
    typer.Option(
        help="Class of score functions: free (any scores). With --length of 2 or more also unary (emissions only) and chain "
        "(emissions and transitions)."
    ),
]
Starts = Annotated[
    int | None, typer.Option(help="Number of starting points of the numerical search. Default: 300. Not with --bound.")
]
Seed = Annotated[int | None, typer.Option(help="Random seed of the search, and of the split of --data. Default: 0.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
