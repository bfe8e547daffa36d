"""The demo's table on the terminal, and the sentence that reads it."""

from typing import TYPE_CHECKING

import numpy as np

from linearcore_paper.demo._compare import Comparison, compare
from linearcore_paper.demo._run import DemoResult

if TYPE_CHECKING:
    from rich.table import Table

# The third is a space that keeps its column: rich drops an ordinary one at the end of a cell.
BEST, TIED, APART = "*", "≈", "\u00a0"


def table(result: DemoResult) -> "Table":
    """Mean ± standard deviation of the accuracy in percent: a row for each loss, a column for each rate."""
    from rich.table import Table

    grid = Table(title="Accuracy on clean test digits, %", title_justify="left")
    grid.add_column("loss")
    for rate in result.settings.rates:
        grid.add_column(f"{100 * rate:g} % wrong", justify="right")
    comparisons = _comparisons(result)
    for index, name in enumerate(result.accuracy):
        cells = []
        for column, comparison in enumerate(comparisons):
            mark = BEST if index == comparison.best else TIED if index in comparison.tied else APART
            cell = f"{_percent(result, name, column)} {mark}"
            cells.append(f"[bold]{cell}[/bold]" if index == comparison.best else cell)
        grid.add_row(name, *cells)
    return grid


def legend(result: DemoResult) -> str:
    """What the marks mean and how the numbers came about."""
    settings = result.settings
    grid = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
    if settings.seeds > 1:
        seeds = f"mean ± standard deviation over {settings.seeds} seeds"
        marks = f"{BEST} best mean, {TIED} not told apart from it (paired t-test over the seeds, 5 % each)"
    else:
        seeds, marks = "one seed, so no spread and no test", f"{BEST} highest"
    return (
        f"{marks}; {seeds}.\n"
        f"Learning rate from {{{grid}}}, chosen for each loss and rate on 300 held-out digits whose labels are as wrong as "
        f"the training labels; {settings.epochs} epochs of Adam, {settings.hidden} hidden units, same for all. The "
        "unhinged loss has no least value, so that its scores are normed over the batch."
    )


def reading(result: DemoResult) -> str:
    """The table in one sentence, whoever wins."""
    names = list(result.accuracy)
    clauses = []
    for column, (rate, comparison) in enumerate(zip(result.settings.rates, _comparisons(result), strict=True)):
        best = names[comparison.best]
        inside = _percent(result, best, column)
        if comparison.tied:
            inside += f"; within noise of it {', '.join(names[index] for index in comparison.tied)}"
        clauses.append(f"at {100 * rate:g} % wrong labels to {best} ({inside})")
    return f"Measured, whoever wins: the best mean belongs {', '.join(clauses)}."


def _comparisons(result: DemoResult) -> list[Comparison]:
    accuracy = np.stack(list(result.accuracy.values()))
    return [compare(accuracy[:, column]) for column in range(accuracy.shape[1])]


def _percent(result: DemoResult, name: str, column: int) -> str:
    mean = f"{100 * result.accuracy[name][column].mean():.1f}"
    return f"{mean} ± {100 * result.spread(name)[column]:.1f}" if result.settings.seeds > 1 else mean
