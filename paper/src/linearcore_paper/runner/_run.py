"""Runs an experiment: computes the missing parts, then writes the conclusion and the figures.

An experiment consists of parts, for example one training run each.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from linearcore.runtime import Progress, ProgressBar, complaint, environment
from linearcore_paper.drawing import save_figure
from linearcore_paper.runner._compute import Work, compute
from linearcore_paper.runner._experiment import Outcome, RecordedRun
from linearcore_paper.runner._job import Job, with_dependencies
from linearcore_paper.runner._tracker import PartTracker
from linearcore_paper.runner._workers import WorkerConfig, Workers


@dataclass(frozen=True)
class RunStatus:
    """The state of an experiment after a run.

    Attributes:
        name: name of the experiment.
        record: the conclusion in OUT/NAME/results.jsonl; None if parts are missing.
        num_parts: number of parts of the experiment.
        num_available: number of finished parts.
        num_reused: number of selected parts and dependencies that were already finished before this run.
    """

    name: str
    record: dict[str, Any] | None
    num_parts: int
    num_available: int
    num_reused: int


def run_experiment(job: Job, progress: Progress, *, workers: int = 1, fresh: bool = False) -> RunStatus:
    """Runs the missing parts. If all parts are available, writes the conclusion, NAME.svg and NAME.png.

    Args:
        job: the experiment to run.
        progress: progress display.
        workers: number of processes for parts of type `RecordedRun`. Parts that are functions, and those with `alone=True`,
            run one at a time.
        fresh: run the selected parts again even if they are finished. Their dependencies are reused.

    Raises:
        OSError: if a file cannot be written.
        WorkerDiedError: if a worker ended without a result.
        ValueError: if `workers` is not positive.
    """
    if workers < 1:
        raise ValueError(complaint("workers", "be at least 1", workers, "pass 1 to run one part at a time"))
    name = job.experiment.name
    required = with_dependencies(job.parts, job.selected)
    with progress.part(name, len(required)) as bar:
        tracker = PartTracker(job, required, job.selected if fresh else frozenset(), bar.advance)
        _run_parts(job, tracker, bar, workers)
        bar.describe(f"{name} ({tracker.num_reused} of {len(required)} parts reused)" if tracker.num_reused else name)
    results = tracker.results
    record = None
    if len(results) == len(job.parts):
        record = _write(job, job.experiment.conclude(results, job.settings), tracker.origin)
    return RunStatus(name, record, len(job.parts), len(results), tracker.num_reused)


def _run_parts(job: Job, tracker: PartTracker, bar: ProgressBar, workers: int) -> None:
    """Runs all required parts. Parts that must run alone start when all workers are idle."""
    get_environment = cache(environment)
    running: dict[str, Work] = {}
    with Workers(WorkerConfig(job.experiment, job.settings, workers)) as pool:
        while tracker.ready or running:
            for name in [name for name, work in tracker.ready.items() if isinstance(work, RecordedRun) and not work.alone]:
                if pool.has_idle_worker:
                    running[name] = tracker.ready.pop(name)
                    pool.start(name, tracker.results_for(name))
            if running:
                bar.describe(f"{job.experiment.name}: {', '.join(running)}")
                name, result = pool.wait()
            else:
                name = next(iter(tracker.ready))
                running[name] = tracker.ready.pop(name)
                bar.describe(f"{job.experiment.name}: {name}")
                result = compute(running[name], get_environment() | {"workers": 1})
            tracker.finish(name, running.pop(name), result)


def _write(job: Job, outcome: Outcome, origin: dict[str, Any]) -> dict[str, Any]:
    """Writes the conclusion and the figures. The conclusion lists the machines of the recorded runs."""
    experiment, settings, results = job.experiment, job.settings, outcome.as_json()
    # Without the data folder, which depends on the machine.
    metadata = {"device": settings.device, "experiment": experiment.name, "paper": experiment.paper, "scale": settings.scale}
    record = job.file.save(
        {
            "command": job.command,
            "environment": environment(),
            "part": None,
            "results": json.loads(json.dumps(results, allow_nan=False, sort_keys=True)),
            "seed": settings.seed,
            "settings": metadata | origin,
        }
    )
    job.file.sort(job.parts)
    save_figure(experiment.name, experiment.draw, results["data"], job.file.path.parent)
    return record
