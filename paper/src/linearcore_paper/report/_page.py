"""Writes the report: reads results, computes evidence, renders the template with styles and scripts inline."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from linearcore.runtime import complaint, environment, write_atomically
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.report._evidence import LIVE
from linearcore_paper.report._evidence_table import Evidence
from linearcore_paper.report._facts import ASSETS, CLASSES, asset, explorer_facts
from linearcore_paper.report._figures import figure_markup
from linearcore_paper.report._item_rows import item_rows
from linearcore_paper.report._results import Experiment, Tally, format_value, read_experiments, tally
from linearcore_paper.report.corrections import CORRECTIONS, Correction
from linearcore_paper.runner import Claim, Verdict

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE = "report.html"

#: In a result with more characters, all but the first sentence is collapsed.
MAX_SHOWN = 400
#: A small run may leave these; they are no evidence for or against a correction.
_NO_VERDICT: tuple[Verdict, ...] = ("not judged", "not run")
#: Icons of the verdicts.
_ICONS: dict[Verdict, str] = {
    "holds": "holds",
    "holds with a correction": "corrected",
    "does not hold": "fails",
    "not judged": "not-run",
    "not run": "not-run",
}


@dataclass(frozen=True)
class _Section:
    """An experiment with its figure. Claims of the paper and our own are in separate tables and tallies."""

    experiment: Experiment
    figure: str | None

    @property
    def groups(self) -> list[tuple[str, list[tuple[None, Claim]], Tally]]:
        """Heading, rows and tally of the paper's claims and of our own; the rows are below their experiment's heading."""
        both = (("Claims of the paper", False), ("Our own claims", True))
        found = [(heading, self.experiment.claims_of(ours)) for heading, ours in both]
        return [(heading, [(None, claim) for claim in claims], tally(claims)) for heading, claims in found if claims]

    @property
    def tally(self) -> Tally:
        """Verdicts on the claims of the paper."""
        return tally(self.experiment.claims_of(ours=False)) if self.experiment.was_run else (("not run", 1),)

    @property
    def small_rows(self) -> list[tuple[None, Claim]]:
        """Claims of the run at smoke scale, if the section shows the shipped record."""
        small = self.experiment.small
        return [(None, claim) for claim in small.claims] if small else []

    @property
    def agreement(self) -> str:
        """How many verdicts of the run at smoke scale are those of the shipped record, claim by claim."""
        pairs = [
            (claim.verdict, shipped.verdict)
            for (_, claim), shipped in zip(self.small_rows, self.experiment.claims, strict=False)
        ]
        judged = [pair for pair in pairs if pair[0] not in _NO_VERDICT]
        waits = len(pairs) - len(judged)
        same = f"{sum(ours == theirs for ours, theirs in judged)} of {len(judged)} verdicts are the same"
        return ", ".join(([same] if judged else []) + ([f"{waits} claims need scale paper"] if waits else []))


@dataclass(frozen=True)
class _CorrectionView:
    """A correction with its evidence: claims of experiments, a computed table, and experiments that were not run."""

    correction: Correction
    rows: tuple[tuple[str, Claim], ...]
    table: Evidence | None
    missing: tuple[str, ...]


@dataclass(frozen=True)
class _Machine:
    """An environment and the experiments that ran in it."""

    names: tuple[str, ...]
    facts: dict[str, str]


def write_report(out_dir: Path) -> Path:
    """Writes OUT/report.html from the results in OUT, and returns its path.

    Where OUT has no run at paper scale, the page shows the record that the package ships, and a run at smoke scale below
    it. The page is self-contained: it loads no other files, and its content security policy forbids it.

    Args:
        out_dir: the folder of `linearcore reproduce --out`.

    Raises:
        ValueError: if the folder does not exist, or a file in it is damaged; the message names it.
        OSError: if the page cannot be written.

    Cost: a second or two, to compute evidence.
    """
    if not out_dir.is_dir():
        raise ValueError(complaint("out_dir", "be a folder with results", out_dir, "run `linearcore reproduce` first"))
    experiments = read_experiments(out_dir)
    sections = tuple(_Section(experiment, _figure(experiment)) for experiment in experiments)
    page = out_dir / PAGE
    write_atomically(page, _render(sections))
    return page


def _figure(experiment: Experiment) -> str | None:
    return figure_markup(experiment.folder, experiment.entry.name, experiment.alt) if experiment.folder else None


def _render(sections: tuple[_Section, ...]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader(ASSETS, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    jinja.filters |= {"prose": _prose, "split_long": _split_long}
    experiments = tuple(section.experiment for section in sections)
    facts = explorer_facts()
    bases = "".join(["window.linearcoreBases = {};\n", *(asset(f"bases/{name}.js") for name in facts["bases"])])
    return jinja.get_template("report.html.j2").render(
        style=asset("report.css"),
        scripts=[bases, *(asset(f"{name}.js") for name in ("page", "surrogate", "plot", "explorer"))],
        sections=sections,
        tallies=[
            (heading, tally(claim for experiment in experiments for claim in experiment.claims_of(ours)))
            for heading, ours in (("Claims of the paper", False), ("Our own claims", True))
        ],
        items=item_rows(experiments),
        ran=sum(experiment.was_run and not experiment.is_shipped for experiment in experiments),
        shipped=sum(experiment.is_shipped for experiment in experiments),
        titles={experiment.entry.name: experiment.entry.title for experiment in experiments},
        corrections=[_correction_view(correction, experiments) for correction in CORRECTIONS],
        machines=_machines(experiments),
        facts=facts,
        classes=CLASSES,
        icon_of=_ICONS,
        available=tuple(EXPERIMENTS),
    )


def _prose(text: str) -> "Markup":
    """Converts text to HTML: formulas such as τ < 1 are not broken across lines, and text in backticks is code."""
    from markupsafe import Markup, escape

    unbroken = re.sub(r" ([=<>≤≥→·×+−]) ", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", text)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(unbroken))))


def _split_long(text: str) -> tuple[str, str]:
    """Splits a long text into its first sentence and the rest; a short text is not split.

    Example:
        >>> _split_long("Twice as fast. In detail: …")
        ('Twice as fast. In detail: …', '')
    """
    first, _, others = text.partition(". ")
    return (f"{first}.", others) if others and len(text) > MAX_SHOWN else (text, "")


def _correction_view(correction: Correction, experiments: tuple[Experiment, ...]) -> _CorrectionView:
    rows = tuple(
        (experiment.entry.name, claim)
        for experiment in experiments
        for claim in experiment.claims
        if claim.correction == correction.letter and claim.verdict not in _NO_VERDICT
    )
    was_run = {experiment.entry.name: experiment.was_run for experiment in experiments}
    compute_table = LIVE.get(correction.letter)
    missing = tuple(name for name in correction.experiments if not was_run[name])
    return _CorrectionView(correction, rows, compute_table() if compute_table else None, missing)


def _machines(experiments: tuple[Experiment, ...]) -> list[_Machine]:
    """Groups experiments by environment; returns the current environment if nothing was run."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for experiment in experiments:
        if experiment.was_run:
            groups.setdefault(tuple(experiment.environment.items()), []).append(experiment.entry.name)
    if not groups:
        return [_Machine((), {key: format_value(value) for key, value in environment().items()})]
    return [_Machine(tuple(names), dict(facts)) for facts, names in groups.items()]
