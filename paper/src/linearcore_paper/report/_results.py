"""Reads the results of the experiments; an error names the damaged file.

A run at paper scale in the given folder is shown first, then the record that the package ships, which is at paper scale as
well, then a run at smoke scale. Verdicts of a small run never replace those of a full one.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from linearcore.runtime import complaint
from linearcore_paper import experiments
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import VERDICTS, Claim, ResultsFile, Verdict

#: Folder of the records that the package ships.
SHIPPED = Path(experiments.__file__).parent


@dataclass(frozen=True)
class Entry:
    """The description of an experiment in the report.

    Attributes:
        name: name in `linearcore reproduce`.
        title: heading in the report.
        place: place in the paper.
        question: the question that it answers, as a sentence.
    """

    name: str
    title: str
    place: str
    question: str


_ADVICE = "run the experiment again, or delete its folder"


@dataclass(frozen=True)
class Experiment:
    """An experiment with its results; one that was not run has no claims and no environment.

    Attributes:
        entry: its description.
        claims: its claims.
        alt: alternative text of its figure.
        folder: folder of its results file and figure; None if it was not run.
        command, settings, environment: of the run.
        small: the run at smoke scale in the given folder, if the results come from the package.
    """

    entry: Entry
    claims: tuple[Claim, ...] = ()
    alt: str = ""
    folder: Path | None = None
    command: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    small: "Experiment | None" = None

    @property
    def was_run(self) -> bool:
        """Whether there are results."""
        return self.folder is not None

    @property
    def is_shipped(self) -> bool:
        """Whether the results are those of the package."""
        return self.folder is not None and self.folder.parent == SHIPPED

    @property
    def scale(self) -> str:
        """Scale of the run."""
        return self.settings.get("scale", "")

    def claims_of(self, ours: bool) -> tuple[Claim, ...]:
        """Returns our own claims, or those of the paper."""
        return tuple(claim for claim in self.claims if claim.is_ours == ours)


#: Verdicts with their numbers, in the order of `VERDICTS`, without those that do not occur.
Tally = tuple[tuple[Verdict, int], ...]


def tally(claims: Iterable[Claim]) -> Tally:
    """Counts verdicts."""
    counts = Counter(claim.verdict for claim in claims)
    return tuple((verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict])


def catalogue() -> tuple[Entry, ...]:
    """Returns all experiments, in the order of the report."""
    return tuple(Entry(item.name, item.title, item.paper, item.question) for item in EXPERIMENTS.values())


def read_experiments(folder: Path) -> tuple[Experiment, ...]:
    """Reads all experiments of the catalogue, in its order, from `folder` and from the package.

    Raises:
        ValueError: if a results.jsonl is damaged, or results are of an earlier version; the message names the file.
    """
    return tuple(_choose(folder, entry) for entry in catalogue())


def _choose(folder: Path, entry: Entry) -> Experiment:
    """Returns the run in `folder`, or the shipped record if that run is smaller or missing."""
    own = _read(ResultsFile(folder, entry.name), entry)
    if own.scale == "paper":
        return own
    shipped = _read(ResultsFile(SHIPPED, entry.name), entry)
    if not shipped.was_run:
        return own
    return replace(shipped, small=own if own.was_run else None)


def _read(file: ResultsFile, entry: Entry) -> Experiment:
    record = file.conclusion
    if record is None:
        if (old := file.old_folder / "results.json").exists():
            raise ValueError(f"cannot read {old}, of an earlier version; `linearcore reproduce {entry.name}` converts it")
        return Experiment(entry)
    try:
        results = _expect(record.get("results"), dict, "results")
        claims = tuple(_claim(item) for item in _expect(results.get("claims"), list, "results.claims"))
        settings = _expect(record.get("settings"), dict, "settings")
        environment = _expect(record.get("environment"), dict, "environment")
        alt = _expect(results.get("alt", ""), str, "results.alt")
    except ValueError as error:
        raise ValueError(f"cannot read {file.path}: {error}") from error
    settings_rows = {"seed": record.get("seed"), **settings} if record.get("seed") is not None else dict(settings)
    # The report shows these two in the heading.
    for key in ("experiment", "paper"):
        settings_rows.pop(key, None)
    return Experiment(
        entry,
        claims,
        alt or entry.title,
        file.path.parent,
        command=str(record.get("command", "")),
        settings={str(key): format_value(value) for key, value in settings_rows.items()},
        environment={str(key): format_value(value) for key, value in environment.items()},
    )


def _expect(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        must = "be " + {"dict": "an object", "list": "a list", "str": "a string"}[kind.__name__]
        raise ValueError(complaint(name, must, type(value).__name__, _ADVICE))
    return value


def _claim(item: Any) -> Claim:
    fields = _expect(item, dict, "claim")
    missing = {"claim", "paper", "ours", "verdict"} - fields.keys()
    if missing:
        raise ValueError(
            complaint("claim", "have claim, paper, ours and verdict", f"no {', '.join(sorted(missing))}", _ADVICE)
        )
    letter = fields.get("correction")
    return Claim(
        format_value(fields["claim"]),
        format_value(fields["paper"]),
        format_value(fields["ours"]),
        fields["verdict"],
        None if letter is None else str(letter).strip("()").lower(),
    )


def format_value(value: Any) -> str:
    """Formats a JSON value: four significant digits, minus signs instead of hyphens, no brackets around lists."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        return str(value).replace("-", "−")
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(format_value, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {format_value(part)}" for key, part in value.items()) or "none"
    return json.dumps(value)


def number(value: float, digits: int = 4) -> str:
    """Formats a float with `digits` significant digits; very large and very small numbers get an exponent."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")
