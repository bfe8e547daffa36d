"""`linearcore certify`."""

import json
from typing import TYPE_CHECKING, Any

import typer

from linearcore._checks import complaint, positive
from linearcore.cli import _certify_options as options
from linearcore.cli._usage import UsageError, usage_errors

if TYPE_CHECKING:
    from linearcore.analysis import Certificate, Local, Problem, SampleBound
    from linearcore.cli._certify_inputs import SampleFile
    from linearcore.forms import Form
    from linearcore.structured import StructuredForm


def certify(
    form: options.Form = "logodds",
    as_sum: options.AsSum = False,
    classes: options.Classes = None,
    base: options.Base = None,
    tau: options.Tau = None,
    sides: options.Sides = None,
    sharpness: options.Sharpness = None,
    classical: options.Classical = None,
    phi: options.Phi = None,
    phi_file: options.PhiFile = None,
    bound: options.Bound = None,
    data: options.Data = None,
    label: options.Label = None,
    probabilities: options.Probabilities = None,
    confidence: options.Confidence = None,
    plot: options.Plot = None,
    length: options.Length = 1,
    cost: options.Cost = "zero-one",
    family: options.Family = "free",
    starts: options.Starts = None,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
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
        linearcore certify --phi "log1p(exp(-u))" --classes 2 --plot certificate.png
        linearcore certify --form centered --bound 2.0 --data FILE.csv --label COLUMN
    """
    from linearcore.analysis import Problem
    from linearcore.analysis import certify as run
    from linearcore.cli._certify_inputs import SurrogateOptions, read_sample
    from linearcore.cli._certify_plot import check_plot, save_plot
    from linearcore.structures import Sequences

    with usage_errors():
        surrogate = SurrogateOptions(base, tau, sides, sharpness, classical, phi, phi_file).surrogate()
        check_plot(plot)
        _refuse(data is None, "be used with --data", label=label, probabilities=probabilities, confidence=confidence)
        _refuse(bound is not None, "be used without --bound, with which there is no search", starts=starts)
        _refuse(bound is not None and data is None, "be used with --data or without --bound", seed=seed)
        starts, seed = 300 if starts is None else starts, seed or 0
        _check_values(bound, data is not None, length, cost, starts)
        sample = None if data is None else read_sample(data, "label" if label is None else label, probabilities)
        if classes is None:
            classes = 3 if sample is None else len(sample.classes)
        if classes < 2:
            raise ValueError(complaint("--classes", "be at least 2", classes, "pass the number of classes"))
        outputs = Sequences(classes, length)
        form_object = _form(form, as_sum)
        _check_one_tag(Problem(form_object, outputs, cost, family), cost, family)
    certificate = run(
        surrogate, form_object, outputs=outputs, cost=cost, family=family, bound=bound, starts=starts, seed=seed
    )
    report: dict[str, Any] = certificate.to_json()
    text = str(certificate)
    if sample is not None:
        estimates = _estimate(certificate, sample, classes, 0.95 if confidence is None else confidence, seed)
        report, text = report | {"sample": estimates.to_json()}, f"{text}\n{estimates}"
    if plot is not None:
        with usage_errors():
            save_plot(certificate, plot)
    typer.echo(json.dumps(report, ensure_ascii=False) if as_json else text)


def _refuse(is_unused: bool, must: str, **passed: object) -> None:
    """Raises if one of the options was passed although it would not be used."""
    for name, value in passed.items():
        if is_unused and value is not None:
            raise ValueError(complaint(f"--{name}", must, value, "omit it otherwise"))


def _check_values(bound: float | None, has_data: bool, length: int, cost: str, starts: int) -> None:
    if bound is not None:
        positive("--bound", bound, "pass the bound of the scores, such as 2.0")
    elif has_data:
        raise ValueError(complaint("--bound", "be given with --data", "none", "pass the bound of the scores, such as 2.0"))
    if has_data and length != 1:
        raise ValueError(complaint("--length", "be 1 with --data", length, "a table has one label for each row"))
    if has_data and cost != "zero-one":
        raise ValueError(complaint("--cost", "be zero-one with --data", cost, "the sample bound is for the 0-1 loss"))
    if starts < 1:
        raise ValueError(complaint("--starts", "be at least 1", starts, "300 is the default"))


def _check_one_tag(problem: "Problem", cost: str, family: str) -> None:
    """Raises for a cost or a family that the problem replaced by an equal one, because outputs have one tag."""
    for option, passed, used in (("--cost", cost, problem.cost), ("--family", family, problem.family)):
        if passed != used:
            advice = f"for one tag they are the same; omit {option}, or pass a longer --length"
            raise ValueError(complaint(option, f"be {used} with --length 1", passed, advice))


def _estimate(certificate: "Certificate", sample: "SampleFile", classes: int, confidence: float, seed: int) -> "SampleBound":
    from linearcore.analysis import NotSolvedError, sample_bound

    form, bound = certificate.problem.multiclass_form, certificate.bound
    assert bound is not None
    try:
        with usage_errors():
            if form is None:
                got, advice = certificate.problem.form_name, "use pairwise, centered or logodds"
                raise ValueError(complaint("--form", "be a multi-class form with --data", got, advice))
            return sample_bound(
                certificate.surrogate,
                form,
                sample.features,
                sample.labels,
                bound=bound,
                probabilities=sample.probabilities,
                num_classes=classes,
                confidence=confidence,
                seed=seed,
            )
    except NotSolvedError as error:
        raise UsageError(f"{error}; use fewer features, or a smoother loss") from error


def _form(name: str, as_sum: bool) -> "Form | Local | StructuredForm":
    """Returns the form, with the sum over competitors if `as_sum`."""
    from linearcore.analysis import named_form

    form = named_form(name)
    if not as_sum:
        return form
    summed = form.normalized(False)
    if summed == form:
        advice = "omit it, or use pairwise, centered, local-pairwise or local-centered"
        raise ValueError(complaint("--sum", "be used with a form that is a mean over competitors", name, advice))
    return summed
