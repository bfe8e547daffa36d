"""`linearcore certify`."""

import json
from typing import Annotated

import typer

from linearcore._checks import complaint
from linearcore.analysis import STRUCTURED_FORMS
from linearcore.cli._usage import usage_errors
from linearcore.forms import FORMS
from linearcore.structures import COSTS
from linearcore.surrogates import BASES, CLASSICAL, LinearCore, Surrogate


def certify(
    form: Annotated[str, typer.Option(help=f"Form of the loss: {', '.join((*FORMS, *STRUCTURED_FORMS))}.")] = "logodds",
    as_sum: Annotated[
        bool, typer.Option("--sum", help="Use the sum over competitors, as in the paper, instead of the mean.")
    ] = False,
    classes: Annotated[int, typer.Option(help="Number of classes, or of tags with --length.")] = 3,
    base: Annotated[str, typer.Option(help=f"Base of the linear-core surrogate: {', '.join(BASES)}.")] = "logistic",
    tau: Annotated[float, typer.Option(help="Margin τ at which the linear core ends.")] = 1.0,
    sides: Annotated[int, typer.Option(help="Number of tails of the surrogate, 1 or 2.")] = 1,
    sharpness: Annotated[float, typer.Option(help="Curvature factor of the tail.")] = 1.0,
    classical: Annotated[str, typer.Option(help=f"Use a classical surrogate: {', '.join(CLASSICAL)}.")] = "",
    length: Annotated[int, typer.Option(help="Sequence length, for structured forms.")] = 1,
    cost: Annotated[str, typer.Option(help=f"Cost that defines the regret: {', '.join(COSTS)}.")] = "zero-one",
    family: Annotated[
        str,
        typer.Option(
            help="Class of score functions: free (any scores), unary (emissions only) or chain (emissions and transitions)."
        ),
    ] = "free",
    starts: Annotated[int, typer.Option(help="Number of starting points of the search.")] = 300,
    seed: Annotated[int, typer.Option(help="Random seed of the search.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report convexity, smoothness, consistency and linear regret bound of a loss.

    If a theorem applies, its constant is printed. Otherwise a numerical search looks for a counterexample, a distribution at
    which a wrong prediction has almost no surrogate regret, and prints the worst distribution found.

    \b
    Examples
        linearcore certify --form pairwise --classes 3
        linearcore certify --form centered --sum --classes 5 --tau 0.5
        linearcore certify --form structured-centered --classes 2 --length 2 --cost hamming --family unary
        linearcore certify --classical hinge --form pairwise --json
    """
    from linearcore.analysis import Problem, named_form
    from linearcore.analysis import certify as run
    from linearcore.structures import Sequences

    with usage_errors():
        surrogate = _surrogate(classical, base, tau, sides, sharpness)
        if classes < 2:
            raise ValueError(complaint("--classes", "be at least 2", classes, "pass the number of classes"))
        outputs = Sequences(classes, length)
        form_object = named_form(form)
        if as_sum:
            mean, form_object = form_object, form_object.normalized(False)
            if form_object == mean:
                advice = "omit it, or use pairwise, centered, local-pairwise or local-centered"
                raise ValueError(complaint("--sum", "be used with a form that is a mean over competitors", form, advice))
        Problem(form_object, outputs, cost, family)
        if starts < 1:
            raise ValueError(f"`--starts` must be at least 1, got {starts}; 300 is the default")
    certificate = run(surrogate, form_object, outputs=outputs, cost=cost, family=family, starts=starts, seed=seed)
    typer.echo(json.dumps(certificate.to_json(), ensure_ascii=False) if as_json else str(certificate))


def _surrogate(classical: str, base: str, tau: float, sides: int, sharpness: float) -> Surrogate:
    core = LinearCore(base, tau=tau, sides=sides, sharpness=sharpness)
    if not classical:
        return core
    if core != LinearCore():
        raise ValueError(f"`--classical` must not be combined with {core}; omit --base, --tau, --sides and --sharpness")
    if classical not in CLASSICAL:
        raise ValueError(f"`--classical` must be one of {', '.join(CLASSICAL)}, got {classical!r}; choose one of these")
    return CLASSICAL[classical]
