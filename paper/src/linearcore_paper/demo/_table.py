"""The demo's two tables on the terminal, and how to read them."""

from typing import TYPE_CHECKING

import numpy as np

from linearcore_paper.demo._compare import compare
from linearcore_paper.demo._run import DemoResult
from linearcore_paper.demo._steps import BATCH, HIDDEN, LENGTH

if TYPE_CHECKING:
    from rich.table import Table

# The third is a space that keeps its column: rich drops an ordinary one at the end of a cell.
BEST, TIED, NEITHER = "*", "≈", "\u00a0"


def print_result(result: DemoResult) -> None:
    """Prints both tables with their legends to stdout."""
    from rich.console import Console

    console = Console(highlight=False)
    for table, legend in ((_step_table(result), step_legend()), (_accuracy_table(result), accuracy_legend(result))):
        console.print(table)
        console.print(f"{legend}\n", markup=False, soft_wrap=True)


def _step_table(result: DemoResult) -> "Table":
    from rich.table import Table

    grid = Table(title="CPU time of a training step, ms", title_justify="left", box=None, pad_edge=False)
    grid.add_column("loss")
    for size in result.settings.tags:
        grid.add_column(f"{size:,} tags", justify="right")
    for name in result.steps:
        grid.add_row(name, *[f"{median:.{1 if median < 100 else 0}f}" for median in result.medians(name)])
    return grid


def step_legend() -> str:
    """What a step is and how it was timed."""
    return (
        f"Medians of interleaved runs on one core. A step: {BATCH} sentences of {LENGTH} words, linear layer from "
        f"{HIDDEN} hidden units, loss, backward pass; no encoder, no optimiser."
    )


def _accuracy_table(result: DemoResult) -> "Table":
    """Mean ± standard deviation: a row for each loss, a column for each rate."""
    from rich.table import Table

    grid = Table(title="Accuracy on clean test digits, %", title_justify="left", box=None, pad_edge=False)
    grid.add_column("loss")
    for rate in result.settings.noise_rates:
        grid.add_column(f"{100 * rate:g} % wrong", justify="right")
    accuracy = np.stack(list(result.accuracy.values()))
    comparisons = [compare(accuracy[:, column]) for column in range(accuracy.shape[1])]
    for index, name in enumerate(result.accuracy):
        cells = []
        for column, comparison in enumerate(comparisons):
            mark = BEST if index == comparison.best else TIED if index in comparison.tied else NEITHER
            mean = f"{100 * accuracy[index, column].mean():.1f}"
            spread = f" ± {100 * result.spread(name)[column]:.1f}" if result.settings.seeds > 1 else ""
            cells.append(f"{mean}{spread}{mark}")
        grid.add_row(name, *cells)
    return grid


def accuracy_legend(result: DemoResult) -> str:
    """What the marks mean and how the numbers were made."""
    settings = result.settings
    grid = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    if settings.seeds > 1:
        marks = f"{BEST} best mean, {TIED} not significantly different from it (paired t-test, 5 % level)"
        seeds = f"mean ± standard deviation over {settings.seeds} seeds"
    else:
        marks, seeds = f"{BEST} best", "one seed, so no standard deviation and no test"
    return (
        f"{marks}; {seeds}.\n"
        f"The learning rate was chosen from {grid} for each loss and share of wrong labels, on 300 validation digits whose "
        f"labels are as wrong as the training labels. Every loss gets {settings.epochs} epochs of Adam and "
        f"{settings.hidden} hidden units."
    )
