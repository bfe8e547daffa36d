"""Reads what the experiments left in the output folder, and says which file is broken if one is."""

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
    """What the page says of an experiment before it has results.

    Attributes:
        name: as `linearcore reproduce` knows it, and the name of its folder.
        title: its heading on the page.
        place: where the paper has it.
        question: what it asks, in a sentence.
    """

    name: str
    title: str
    place: str
    question: str


#: In the paper, and not yet here.
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
    """An experiment of the catalogue with what it left behind; one that was not run has no claims and no environment."""

    entry: Entry
    claims: tuple[Claim, ...] = ()
    alt: str = ""
    was_run: bool = False
    command: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each claim; a single "not run" for an experiment without results."""
        return tuple(claim.verdict for claim in self.claims) if self.was_run else ("not run",)


def catalogue() -> tuple[Entry, ...]:
    """All experiments, and those that are planned, in the order of the page."""
    return (*(Entry(item.name, item.title, item.paper, item.question) for item in EXPERIMENTS.values()), *_PLANNED)


def read_experiments(folder: Path) -> tuple[Experiment, ...]:
    """All experiments of the catalogue, in its order, run or not.

    Raises:
        ValueError: if a results.jsonl is there but cannot be read, or results of an earlier version; the message names it.
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
    shown = {"seed": record.get("seed"), **settings} if record.get("seed") is not None else dict(settings)
    for told_elsewhere in ("experiment", "paper"):
        shown.pop(told_elsewhere, None)
    return Experiment(
        entry,
        claims,
        alt or entry.title,
        was_run=True,
        command=str(record.get("command", "")),
        settings={str(key): plain(value) for key, value in shown.items()},
        environment={str(key): plain(value) for key, value in environment.items()},
    )


def _expect(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        must = "be " + {"dict": "an object", "list": "a list", "str": "a text"}[kind.__name__]
        raise ValueError(complaint(name, must, type(value).__name__, _ADVICE))
    return value


def _claim(item: Any) -> Claim:
    fields = _expect(item, dict, "claim")
    missing = {"claim", "paper", "ours", "verdict"} - fields.keys()
    if missing:
        raise ValueError(complaint("claim", "have claim, paper, ours and verdict", f"none of {sorted(missing)}", _ADVICE))
    letter = fields.get("correction")
    return Claim(
        plain(fields["claim"]),
        plain(fields["paper"]),
        plain(fields["ours"]),
        fields["verdict"],
        None if letter is None else str(letter).strip("()").lower(),
    )


def plain(value: Any) -> str:
    """A JSON value as a reader wants it: four significant digits, real minus signs, no brackets around lists."""
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
        return ", ".join(map(plain, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {plain(part)}" for key, part in value.items()) or "none"
    return json.dumps(value)


def number(value: float, digits: int = 4) -> str:
    """A float in `digits` significant digits, with powers of ten where plain decimals would be long."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")
