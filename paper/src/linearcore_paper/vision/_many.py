"""Several runs side by side on one device."""

import time
from collections.abc import Sequence
from contextlib import nullcontext

from linearcore.runtime import Interrupt, Progress, ProgressBar, StoppedError, complaint
from linearcore_paper.vision._result import Trained
from linearcore_paper.vision._run import Run


def train_many(runs: Sequence[Run], *, save_every: float = 300.0, progress: Progress | None = None) -> list[Trained]:
    """Trains all `runs` to their ends, one step of each in turn.

    A small network leaves most of a GPU idle: there the steps of several runs overlap, each on its own stream, and nobody
    waits before the end of an epoch. No run sees anything of the others; on a CPU each gives the bits that it gives alone.
    A run whose loss is not finite ends with `failed`, and the others go on. Every run writes its result as soon as it has
    one.

    Args:
        runs: of any recipes, with different folders.
        save_every: seconds after which unfinished runs are saved at the end of an epoch.
        progress: an open one that shows how far it is; None opens its own.

    Returns:
        What came of each, in the order of `runs`.

    Raises:
        ValueError: if two runs would write to one folder.
        StoppedError: after SIGINT or SIGTERM, when every run that has a folder is saved.
    """
    folders = [run.out.resolve() for run in runs if run.out is not None]
    if len(set(folders)) < len(folders):
        raise ValueError(complaint("runs", "have different folders", "two of one", "give each an `out` of its own"))
    with Progress() if progress is None else nullcontext(progress) as shown, Interrupt() as interrupt:
        waiting = [run for run in runs if not run.is_done]
        _take_up(waiting, shown)
        steps = sum((run.recipe.epochs - run.state.epoch) * run.steps - run.state.step for run in waiting)
        saved_at = time.monotonic()
        with shown.part("training", total=steps) as part:
            while waiting:
                _steps(waiting, part, interrupt)
                for run in waiting:
                    run.look()
                for run in waiting:
                    run.finish()
                    _tell(run, shown, part, is_alone=len(runs) == 1)
                waiting = [run for run in waiting if not run.is_done]
                if time.monotonic() - saved_at >= save_every:
                    for run in waiting:
                        run.save()
                    saved_at = time.monotonic()
            part.describe("training")
    return [run.result() for run in runs]


def _take_up(runs: Sequence[Run], shown: Progress) -> None:
    for run in runs:
        run.prepare()
        if run.resumed is not None:
            shown.print(f"{_title(run)}going on in epoch {run.resumed[0]} after {run.resumed[1]} steps")


def _steps(runs: Sequence[Run], part: ProgressBar, interrupt: Interrupt) -> None:
    """An epoch of each, or the rest of one."""
    for run in runs:
        run.start()
    left = [run for run in runs if run.state.step < run.steps]
    while left:
        for run in left:
            run.step()
        part.advance(len(left))
        left = [run for run in left if run.state.step < run.steps]
        if interrupt:
            _stop(runs)


def _stop(runs: Sequence[Run]) -> None:
    for run in runs:
        run.save()
    if all(run.out is None for run in runs):
        raise KeyboardInterrupt
    first = runs[0].state
    several = "" if len(runs) == 1 else f" ({len(runs)} runs at work)"
    raise StoppedError(
        f"stopped in epoch {first.epoch + 1} after {first.step} steps{several}; the same command goes on from there"
    )


def _tell(run: Run, shown: Progress, part: ProgressBar, *, is_alone: bool) -> None:
    """A line for each epoch of a single run, and for the last of one among many; the last news stand beside the bar."""
    if run.is_done and run.result().failed is not None:
        shown.print(f"{_title(run)}failed: {run.result().failed}")
        return
    row, parts = run.history[-1], []
    for half in ("validation", "test"):
        if row[f"{half}_accuracy"] is not None:
            parts.append(f"  {half} {row[f'{half}_accuracy']:.2f} %")
    line = f"epoch {row['epoch']} of {run.recipe.epochs}  loss {row['loss']:.4f}{''.join(parts)}"
    if is_alone or run.is_done:
        shown.print(f"{_title(run)}{line}  {row['seconds']:.1f} s an epoch")
    part.describe(f"{row['epoch']}/{run.recipe.epochs}  loss {row['loss']:.3f}")


def _title(run: Run) -> str:
    return f"{run.name}: " if run.name else ""
