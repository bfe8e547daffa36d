"""Trains several runs at the same time on one device."""

import time
from collections.abc import Sequence
from contextlib import nullcontext

from linearcore.runtime import Interrupt, Progress, ProgressBar, StoppedError, complaint
from linearcore_paper.vision._result import Trained
from linearcore_paper.vision._run import Run


def train_many(runs: Sequence[Run], *, save_every: float = 300.0, progress: Progress | None = None) -> list[Trained]:
    """Trains all `runs`, one step of each in turn.

    Use it for small networks, which leave most of a GPU idle: the steps of several runs overlap, each on its own stream, and
    the host synchronises once per epoch. Runs are independent; on a CPU each gives bitwise the same result as alone. A run
    with a non-finite loss ends with `failed`, and the others continue. Every run writes its result when it finishes.

    Args:
        runs: runs with any recipes and with different folders.
        save_every: save unfinished runs after this many seconds, at the end of an epoch.
        progress: progress display; None makes one.

    Returns:
        The results, in the order of `runs`.

    Raises:
        ValueError: if two runs would write to one folder, or another run is active in one.
        StoppedError: after SIGINT or SIGTERM, when every run that has a folder is saved.
    """
    folders = [run.out.resolve() for run in runs if run.out is not None]
    if len(set(folders)) < len(folders):
        raise ValueError(complaint("runs", "have different folders", "two equal ones", "pass a different `out` for each"))
    try:
        with Progress() if progress is None else nullcontext(progress) as display, Interrupt() as interrupt:
            _train(runs, save_every, display, interrupt)
    finally:
        for run in runs:
            run.close()
    return [run.result() for run in runs]


def _train(runs: Sequence[Run], save_every: float, display: Progress, interrupt: Interrupt) -> None:
    """Trains the runs that are not finished, epoch by epoch."""
    active = [run for run in runs if not run.is_done]
    _resume(active, display)
    steps = sum((run.recipe.epochs - run.state.epoch) * run.steps - run.state.step for run in active)
    last_save = time.monotonic()
    with display.part("training", total=steps) as part:
        while active:
            _steps(active, part, interrupt)
            for run in active:
                run.evaluate()
            for run in active:
                run.finish()
                _report(run, display, part, is_alone=len(runs) == 1)
            active = [run for run in active if not run.is_done]
            if time.monotonic() - last_save >= save_every:
                for run in active:
                    run.save()
                last_save = time.monotonic()
        part.describe("training")


def _resume(runs: Sequence[Run], display: Progress) -> None:
    for run in runs:
        run.prepare()
        if run.resumed is not None:
            display.print(f"{_title(run)}resuming in epoch {run.resumed[0]} after {run.resumed[1]} steps")


def _steps(runs: Sequence[Run], part: ProgressBar, interrupt: Interrupt) -> None:
    """Runs one epoch of each run, or the rest of an epoch."""
    for run in runs:
        run.start()
    pending = [run for run in runs if run.state.step < run.steps]
    while pending:
        for run in pending:
            run.step()
        part.advance(len(pending))
        pending = [run for run in pending if run.state.step < run.steps]
        if interrupt:
            _stop(runs)


def _stop(runs: Sequence[Run]) -> None:
    for run in runs:
        run.save()
    if all(run.out is None for run in runs):
        raise KeyboardInterrupt
    first = runs[0].state
    several = "" if len(runs) == 1 else f" ({len(runs)} runs active)"
    raise StoppedError(
        f"stopped in epoch {first.epoch + 1} after {first.step} steps{several}; run the same command to resume"
    )


def _report(run: Run, display: Progress, part: ProgressBar, *, is_alone: bool) -> None:
    """Prints a line per epoch for a single run, and only for the last epoch with several runs; updates the bar."""
    if run.is_done and run.result().failed is not None:
        display.print(f"{_title(run)}failed: {run.result().failed}")
        return
    row, parts = run.history[-1], []
    for half in ("validation", "test"):
        if row[f"{half}_accuracy"] is not None:
            parts.append(f"  {half} {row[f'{half}_accuracy']:.2f} %")
    line = f"epoch {row['epoch']} of {run.recipe.epochs}  loss {row['loss']:.4f}{''.join(parts)}"
    if is_alone or run.is_done:
        display.print(f"{_title(run)}{line}  {row['seconds']:.1f} s per epoch")
    part.describe(f"{row['epoch']}/{run.recipe.epochs}  loss {row['loss']:.3f}")


def _title(run: Run) -> str:
    return f"{run.name}: " if run.name else ""
