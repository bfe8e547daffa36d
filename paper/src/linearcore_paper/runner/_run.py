"""Runs experiments: part by part, keeping what is finished, then the verdicts, the record and the figures."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from linearcore.runtime import Part as Bar
from linearcore.runtime import Progress, complaint, environment
from linearcore_paper.drawing import save_figure
from linearcore_paper.runner._compute import Work, compute
from linearcore_paper.runner._experiment import Outcome, RecordedRun
from linearcore_paper.runner._job import Job, with_needs
from linearcore_paper.runner._ledger import Ledger
from linearcore_paper.runner._workers import Order, Workers


@dataclass(frozen=True)
class Finished:
    """An experiment that was run.

    Attributes:
        name: of the experiment.
        record: the conclusion in OUT/NAME/results.jsonl; None while parts are missing.
        parts: how many parts it has.
        there: how many of them are there now.
        kept: how many of those that were asked for were finished before and not done again.
    """

    name: str
    record: dict[str, Any] | None
    parts: int
    there: int
    kept: int


def run_experiment(job: Job, progress: Progress, *, workers: int = 1, fresh: bool = False) -> Finished:
    """Does what is left to do of an experiment; when all parts are there, writes the conclusion, NAME.svg and .png.

    Args:
        job: what to run.
        progress: where to show how far it is.
        workers: how many processes do recorded runs side by side. Plain functions and runs that say so are done alone.
        fresh: whether to do the chosen parts again even if they are there. Those that they need are kept.

    Raises:
        OSError: if a file cannot be written.
        DeadWorkerError: if a worker ended without a result.
        ValueError: if `workers` is no positive number.
    """
    if workers < 1:
        raise ValueError(complaint("workers", "be at least 1", workers, "pass 1 to do one part after the other"))
    name = job.experiment.name
    wanted = with_needs(job.parts, job.chosen)
    with progress.part(name, len(wanted)) as bar:
        ledger = Ledger(job, wanted, job.chosen if fresh else frozenset(), bar.advance)
        _do_parts(job, ledger, bar, workers)
        bar.describe(f"{name} ({ledger.kept} of {len(wanted)} parts kept)" if ledger.kept else name)
    results = ledger.results
    record = None
    if len(results) == len(job.parts):
        record = _write(job, job.experiment.conclude(results, job.settings), ledger.origin)
    return Finished(name, record, len(job.parts), len(results), ledger.kept)


def _do_parts(job: Job, ledger: Ledger, bar: Bar, workers: int) -> None:
    """Does all that is left. What must be alone waits until no worker has work and none can be given any."""
    here = cache(environment)
    taken: dict[str, Work] = {}
    with Workers(Order(job.experiment, job.settings, workers)) as team:
        while ledger.todo or taken:
            for name in [name for name, work in ledger.todo.items() if isinstance(work, RecordedRun) and not work.alone]:
                if team.has_room:
                    taken[name] = ledger.todo.pop(name)
                    team.start(name, ledger.results_for(name))
            if taken:
                bar.describe(f"{job.experiment.name}: {', '.join(taken)}")
                name, done = team.wait()
            else:
                name = next(iter(ledger.todo))
                taken[name] = ledger.todo.pop(name)
                bar.describe(f"{job.experiment.name}: {name}")
                done = compute(taken[name], here() | {"workers": 1})
            ledger.finish(name, taken.pop(name), done)


def _write(job: Job, outcome: Outcome, origin: dict[str, Any]) -> dict[str, Any]:
    """Writes the conclusion and the figures. Recorded runs may come from elsewhere, which the conclusion then says."""
    experiment, settings, results = job.experiment, job.settings, outcome.as_json()
    # Where data lie is the reader's own matter; the record is for everyone.
    told = {"device": settings.device, "experiment": experiment.name, "paper": experiment.paper, "scale": settings.scale}
    record = job.file.save(
        {
            "command": job.command,
            "environment": environment(),
            "part": None,
            "results": json.loads(json.dumps(results, allow_nan=False, sort_keys=True)),
            "seed": settings.seed,
            "settings": told | origin,
        }
    )
    job.file.sort(job.parts)
    save_figure(experiment.name, experiment.draw, results["data"], job.file.path.parent)
    return record
