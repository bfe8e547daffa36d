"""Outcomes of experiments, computed without files or read from and written to a results file."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linearcore.runtime import environment
from linearcore_paper import experiments
from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import Outcome, ResultsFile, Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Folder of the committed results.
COMMITTED = Path(experiments.__file__).parent


@cache
def outcome(name: str) -> Outcome:
    """Returns the outcome at smoke scale. It is shared between tests and must not be modified."""
    experiment, settings = EXPERIMENTS[name], Settings()
    return experiment.conclude({key: part() for key, part in experiment.parts(settings).items()}, settings)


def drawn(name: str) -> "Figure":
    """Returns the figure of the outcome at smoke scale, drawn from data that were written as JSON and read again."""
    return EXPERIMENTS[name].draw(json.loads(json.dumps(outcome(name).data, allow_nan=False)))


def verdicts(name: str) -> list[tuple[str, str | None]]:
    """Returns verdict and correction letter of every claim, in order."""
    return [(claim.verdict, claim.correction) for claim in outcome(name).claims]


def conclusion(folder: Path, name: str) -> dict[str, Any]:
    """Returns the conclusion in an experiment's results file."""
    record = ResultsFile(folder, name).conclusion
    assert record is not None
    return record


def write_conclusion(folder: Path, name: str, *, part: str | None = None, **record: Any) -> None:
    """Writes a fake conclusion or part to an experiment's results file."""
    file = ResultsFile(folder, name)
    file.path.parent.mkdir(parents=True, exist_ok=True)
    file.save({"part": part, "environment": environment(), **record})
