"""Reads the results of the experiments; an error names the damaged file."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linearcore.runtime import complaint
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import Claim, ResultsFile, Verdict


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


#: Experiments of the paper that are not implemented.
_PLANNED = (
    Entry(
        "ngram",
        "Training for n‑gram overlap",
        "appendix K",
        "Does training for a target beat training for Hamming cost on that target?",
    ),
)

_ADVICE = "run the experiment again, or delete its folder"


@dataclass(frozen=True)
class Experiment:
    """An experiment with its results; one that was not run has no claims and no environment."""

    entry: Entry
    claims: tuple[Claim, ...] = ()
    alt: str = ""
    was_run: bool = False
    command: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict of each claim; a single "not run" for an experiment without results."""
        return tuple(claim.verdict for claim in self.claims) if self.was_run else ("not run",)


def catalogue() -> tuple[Entry, ...]:
    """Returns all experiments, then the planned ones, in the order of the report."""
    return (*(Entry(item.name, item.title, item.paper, item.question) for item in EXPERIMENTS.values()), *_PLANNED)


def read_experiments(folder: Path) -> tuple[Experiment, ...]:
    """Reads all experiments of the catalogue, in its order.

    Raises:
        ValueError: if a results.jsonl is damaged, or results are of an earlier version; the message names the file.
    """
    return tuple(_read(ResultsFile(folder, entry.name), entry) for entry in catalogue())


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
        was_run=True,
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
