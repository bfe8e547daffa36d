"""Runs an experiment in this process, without files."""

from functools import cache

from linearcore_paper.experiments import EXPERIMENTS
from linearcore_paper.runner import Outcome, Settings


@cache
def outcome(name: str) -> Outcome:
    """What the experiment finds at smoke size. Shared between tests: not to be changed."""
    experiment, settings = EXPERIMENTS[name], Settings()
    return experiment.conclude({key: part() for key, part in experiment.parts(settings).items()}, settings)


def verdicts(name: str) -> list[tuple[str, str | None]]:
    """Verdict and letter of every claim, in order."""
    return [(claim.verdict, claim.correction) for claim in outcome(name).claims]
