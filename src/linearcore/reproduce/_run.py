"""Runs experiments: part by part, keeping what is finished, then the verdicts, the record and the figures."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linearcore._progress import Progress
from linearcore._record import write_record
from linearcore.reproduce._experiment import Experiment, Outcome, Settings
from linearcore.reproduce._folder import make_writable
from linearcore.reproduce._parts import PartStore, part_key
from linearcore.reproduce.figures import save_figure


@dataclass(frozen=True)
class Finished:
    """An experiment that was run.

    Attributes:
        name: of the experiment.
        record: what lies in OUT/NAME/results.json.
        parts: how many parts it has.
        kept: how many of them were finished before and not done again.
    """

    name: str
    record: dict[str, Any]
    parts: int
    kept: int


def prepare(experiments: Sequence[Experiment], out: Path) -> None:
    """Makes the experiments' folders in `out`, and finds out whether they can be written to.

    Raises:
        OSError: if one cannot be made or written to.
    """
    for experiment in experiments:
        make_writable(_parts_folder(experiment, out))


def run_experiment(experiment: Experiment, settings: Settings, out: Path, progress: Progress) -> Finished:
    """Does what is left to do of an experiment and writes OUT/NAME/results.json, NAME.svg and NAME.png.

    Args:
        experiment: what to run.
        settings: with what.
        out: a folder on which `prepare` was called.
        progress: where to show how far it is.

    Raises:
        OSError: if a file cannot be written.
    """
    store = PartStore(_parts_folder(experiment, out), part_key(experiment, settings))
    results, kept = _do_parts(experiment, settings, store, progress)
    outcome = experiment.conclude(results, settings)
    record = _write(experiment, settings, outcome, out)
    return Finished(experiment.name, record, len(results), kept)


def _do_parts(
    experiment: Experiment, settings: Settings, store: PartStore, progress: Progress
) -> tuple[dict[str, Any], int]:
    """The results of all parts by name, and how many were there already."""
    parts = experiment.parts(settings)
    results: dict[str, Any] = {}
    kept = 0
    with progress.part(experiment.name, len(parts)) as bar:
        for name, compute in parts.items():
            bar.describe(f"{experiment.name}: {name}")
            is_done, result = store.load(name)
            if is_done:
                kept += 1
            else:
                started = time.perf_counter()
                result = compute()
                result = store.save(name, result, time.perf_counter() - started)
            results[name] = result
            bar.advance()
        bar.describe(f"{experiment.name} ({kept} of {len(parts)} parts kept)" if kept else experiment.name)
    return results, kept


def _write(experiment: Experiment, settings: Settings, outcome: Outcome, out: Path) -> dict[str, Any]:
    folder = out / experiment.name
    results = outcome.as_json()
    # Where data lie is the reader's own matter; the record is for everyone.
    told = {"device": settings.device, "experiment": experiment.name, "paper": experiment.paper, "scale": settings.scale}
    command = f"linearcore reproduce {experiment.name} --scale {settings.scale} --seed {settings.seed}"
    path = folder / "results.json"
    record = write_record(path, command=command, settings=told, results=results, seed=settings.seed)
    save_figure(experiment.name, results["data"], folder)
    return record


def _parts_folder(experiment: Experiment, out: Path) -> Path:
    return out / experiment.name / "parts"
