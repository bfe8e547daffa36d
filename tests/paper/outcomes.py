"""Outcomes of experiments: computed here without files, or read from and written to a results file."""

from functools import cache
from pathlib import Path
from typing import Any

from linearcore.runtime import environment
from linearcore_paper import experiments
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import Outcome, ResultsFile, Settings

#: Where the committed results lie.
COMMITTED = Path(experiments.__file__).parent


@cache
def outcome(name: str) -> Outcome:
    """What the experiment finds at smoke size. Shared between tests: not to be changed."""
    experiment, settings = EXPERIMENTS[name], Settings()
    return experiment.conclude({key: part() for key, part in experiment.parts(settings).items()}, settings)


def verdicts(name: str) -> list[tuple[str, str | None]]:
    """Verdict and letter of every claim, in order."""
    return [(claim.verdict, claim.correction) for claim in outcome(name).claims]


def conclusion(folder: Path, name: str) -> dict[str, Any]:
    """The conclusion in an experiment's results file."""
    record = ResultsFile(folder, name).conclusion
    assert record is not None
    return record


def write_conclusion(folder: Path, name: str, *, part: str | None = None, **record: Any) -> None:
    """Puts a made-up conclusion, or part, into an experiment's results file."""
    file = ResultsFile(folder, name)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.save({"part": part, "environment": environment(), **record})
