"""`linearcore certify`."""

import json
from typing import TYPE_CHECKING, Any

import typer

from linearcore._checks import complaint, positive
from linearcore.cli import _certify_options as options
from linearcore.cli._usage import UsageError, usage_errors

if TYPE_CHECKING:
    from linearcore.analysis import Certificate, Local, SampleBound
    from linearcore.cli._certify_inputs import SampleFile
    from linearcore.forms import Form
    from linearcore.structured import StructuredForm


def certify(
    form: options.Form = "logodds",
    as_sum: options.AsSum = False,
    classes: options.Classes = None,
    base: options.Base = "logistic",
    tau: options.Tau = 1.0,
    sides: options.Sides = 1,
    sharpness: options.Sharpness = 1.0,
    classical: options.Classical = "",
    phi: options.Phi = "",
    phi_file: options.PhiFile = None,
    bound: options.Bound = None,
    data: options.Data = None,
    label: options.Label = "label",
    probabilities: options.Probabilities = "",
    confidence: options.Confidence = 0.95,
    plot: options.Plot = None,
    length: options.Length = 1,
    cost: options.Cost = "zero-one",
    family: options.Family = "free",
    starts: options.Starts = 300,
    seed: options.Seed = 0,
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
        linearcore certify --form pairwise --bound 2.0 --data FILE.csv --label COLUMN
    """
    from linearcore.analysis import Problem
    from linearcore.analysis import certify as run
    from linearcore.cli._certify_inputs import SurrogateOptions, read_sample
    from linearcore.cli._certify_plot import check_plot, save_plot
    from linearcore.structures import Sequences

    with usage_errors():
        surrogate = SurrogateOptions(base, tau, sides, sharpness, classical, phi, phi_file).surrogate()
        check_plot(plot)
        _check_numbers(bound, data is not None, length, starts)
        sample = None if data is None else read_sample(data, label, probabilities)
        if classes is None:
            classes = 3 if sample is None else len(sample.classes)
        if classes < 2:
            raise ValueError(complaint("--classes", "be at least 2", classes, "pass the number of classes"))
        outputs = Sequences(classes, length)
        form_object = _form(form, as_sum)
        Problem(form_object, outputs, cost, family)
    certificate = run(
        surrogate, form_object, outputs=outputs, cost=cost, family=family, bound=bound, starts=starts, seed=seed
    )
    report: dict[str, Any] = certificate.to_json()
    text = str(certificate)
    if sample is not None:
        found = _estimate(certificate, sample, classes, confidence, seed)
        report, text = report | {"sample": found.to_json()}, f"{text}\n{found}"
    if plot is not None:
        with usage_errors():
            save_plot(certificate, plot)
    typer.echo(json.dumps(report, ensure_ascii=False) if as_json else text)


def _check_numbers(bound: float | None, has_data: bool, length: int, starts: int) -> None:
    if bound is not None:
        positive("--bound", bound, "pass the largest margin, such as 2.0")
    elif has_data:
        raise ValueError(complaint("--bound", "be given with --data", "none", "pass the largest margin, such as 2.0"))
    if has_data and length != 1:
        raise ValueError(complaint("--length", "be 1 with --data", length, "a table has one label for each row"))
    if starts < 1:
        raise ValueError(complaint("--starts", "be at least 1", starts, "300 is the default"))


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
