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
    form: Annotated[str, typer.Option(help=f"{', '.join((*FORMS, *STRUCTURED_FORMS))}.")] = "logodds",
    as_sum: Annotated[
        bool, typer.Option("--sum", help="The sum over competitors, as in the paper, instead of the mean.")
    ] = False,
    classes: Annotated[int, typer.Option(help="Number of classes, or of tags with --length.")] = 3,
    base: Annotated[str, typer.Option(help=f"Base of the linear-core surrogate: {', '.join(BASES)}.")] = "logistic",
    tau: Annotated[float, typer.Option(help="Half-width of the core.")] = 1.0,
    sides: Annotated[int, typer.Option(help="1 or 2.")] = 1,
    sharpness: Annotated[float, typer.Option(help="How fast the tail bends.")] = 1.0,
    classical: Annotated[str, typer.Option(help=f"A classical surrogate instead: {', '.join(CLASSICAL)}.")] = "",
    length: Annotated[int, typer.Option(help="Sites of a sequence, for structured forms.")] = 1,
    cost: Annotated[str, typer.Option(help=f"{', '.join(COSTS)}.")] = "zero-one",
    family: Annotated[str, typer.Option(help="Scores the model can give: free, unary or chain.")] = "free",
    starts: Annotated[int, typer.Option(help="How hard to search where no theorem decides.")] = 300,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the report.")] = False,
) -> None:
    """Say what a loss guarantees: convex? smooth? consistent? is there a linear bound?

    Where a theorem decides, it is named with its constant. Where none does, a search looks for a distribution at which a
    wrong answer costs almost no surrogate regret, solves it to a certificate, and prints it so that anyone can re-check.

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
            raise ValueError(complaint("--classes", "be at least 2", classes, "there is nothing to choose from"))
        outputs = Sequences(classes, length)
        chosen = named_form(form)
        if as_sum:
            mean, chosen = chosen, chosen.normalized(False)
            if chosen == mean:
                advice = "leave it out, or take pairwise, centered, local-pairwise or local-centered"
                raise ValueError(complaint("--sum", "go with a form that is a mean over competitors", form, advice))
        Problem(chosen, outputs, cost, family)
        if starts < 1:
            raise ValueError(f"`--starts` must be at least 1, got {starts}; 300 is the default")
    certificate = run(surrogate, chosen, outputs=outputs, cost=cost, family=family, starts=starts, seed=seed)
    typer.echo(json.dumps(certificate.to_json(), ensure_ascii=False) if as_json else str(certificate))


def _surrogate(classical: str, base: str, tau: float, sides: int, sharpness: float) -> Surrogate:
    core = LinearCore(base, tau=tau, sides=sides, sharpness=sharpness)
    if not classical:
        return core
    if core != LinearCore():
        raise ValueError(
            f"`--classical` must stand alone, got {core} as well; leave out --base, --tau, --sides and --sharpness"
        )
    if classical not in CLASSICAL:
        raise ValueError(f"`--classical` must be one of {', '.join(CLASSICAL)}, got {classical!r}; choose one of these")
    return CLASSICAL[classical]
