"""The table of `noise`: what its runs come to, a row for each method, law and rate."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from linearcore_paper.experiments.noise.methods import Config, Method, best_of

#: The rates of the paper's Table 2, and its test accuracies in per cent. Its GCE has the best q of a grid at every rate.
PAPER_RATES = (0.2, 0.3, 0.4, 0.5, 0.6)
PAPER: Mapping[str, tuple[float, ...]] = {
    "ce": (83.20, 77.83, 72.88, 61.08, 37.50),
    "gce": (83.23, 77.90, 72.93, 61.14, 37.57),
    "lc": (84.24, 80.52, 75.49, 63.57, 39.86),
}


class Column(NamedTuple):
    """A law of wrong labels, a rate, and the seeds that it is run with; fewer for methods that stand beside."""

    law: str
    rate: float
    seeds: tuple[int, ...]

    @property
    def words(self) -> str:
        """Short enough for a sentence."""
        return f"{100 * self.rate:g} %" + ("" if self.law == "instance" else f" {self.law}")

    def seeds_of(self, method: Method) -> tuple[int, ...]:
        """Those that a method is run with."""
        return self.seeds[:1] if method.is_beside else self.seeds


@dataclass(frozen=True)
class Row:
    """One method with one kind of wrong labels.

    Attributes:
        method: its key.
        column: law and rate.
        seeds: of its runs.
        runs: results, one for each seed; none if one of them failed.
    """

    method: str
    column: Column
    seeds: tuple[int, ...]
    runs: tuple[Mapping[str, Any], ...]

    @property
    def mean(self) -> float | None:
        """Of the test accuracies after the last epoch."""
        return self.mean_of("test_accuracy")

    @property
    def spread(self) -> float | None:
        """Their standard deviation; None with one seed."""
        return statistics.stdev(run["test_accuracy"] for run in self.runs) if len(self.runs) > 1 else None

    def mean_of(self, name: str) -> float | None:
        """The mean of one of the numbers that runs tell; None if it is not there."""
        values = [run[name] for run in self.runs]
        return statistics.mean(values) if values and None not in values else None

    def mean_with(self, seeds: Sequence[int]) -> float:
        """The mean over some of the seeds, to be compared with a row that has only these; 0 if a run failed."""
        values = [run["test_accuracy"] for seed, run in zip(self.seeds, self.runs, strict=False) if seed in seeds]
        return statistics.mean(values) if values else 0.0

    def to_json(self) -> dict[str, Any]:
        """With what follows from it."""
        # Two digits more than are printed: of one less, a half could be rounded the other way than in a claim.
        means = {name: _rounded(self.mean_of(name)) for name in _TOLD}
        return {
            "row": self.method,
            "law": self.column.law,
            "rate": self.column.rate,
            "seeds": list(self.seeds),
            "noisy_labels": [run["noisy_labels"] for run in self.runs],
            "mean": _rounded(self.mean),
            "spread": _rounded(self.spread),
            **means,
        }


#: Numbers of runs whose means stand in the table.
_TOLD = ("agreement", "auc_loss", "auc_margin", "best_accuracy", "realised_rate", "train_accuracy", "wrong_learned")


def run_name(column: Column, method: str, seed: int) -> str:
    """Of the part that trains."""
    return f"run_{column.law}_{column.rate:g}_{method}_seed{seed}"


def tune_names(method: str, methods: Mapping[str, Method]) -> tuple[str, ...]:
    """Of the parts that tune, one for each configuration; none if there is no choice."""
    row = methods[method]
    return tuple(f"tune_{method}_{place}" for place in range(len(row.configs))) if row.is_tuned else ()


def chosen(results: Mapping[str, Any], method: str, methods: Mapping[str, Method]) -> int:
    """The place of the configuration that counts."""
    names = tune_names(method, methods)
    return best_of([results[name] for name in names]) if names else 0


def rows_of(results: Mapping[str, Any], columns: Sequence[Column], methods: Mapping[str, Method]) -> list[Row]:
    """All rows, method by method."""
    return [_row(results, column, key, column.seeds_of(method)) for key, method in methods.items() for column in columns]


def _row(results: Mapping[str, Any], column: Column, method: str, seeds: tuple[int, ...]) -> Row:
    runs = tuple(results[run_name(column, method, seed)] for seed in seeds)
    return Row(method, column, seeds, () if any("failed" in run for run in runs) else runs)


def choices_of(results: Mapping[str, Any], methods: Mapping[str, Method]) -> list[dict[str, Any]]:
    """For every method that was tuned, what was tried and what was chosen."""
    found = []
    for key, method in methods.items():
        names = tune_names(key, methods)
        if names:
            tried = [_tried(config, results[name]) for config, name in zip(method.configs, names, strict=True)]
            found.append({"row": key, "chosen": chosen(results, key, methods), "tried": tried})
    return found


def _tried(config: Config, run: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, and with how many noisy labels it agreed; None where it failed."""
    return config.to_json() | {"noisy_validation_accuracy": run.get("noisy_validation_accuracy")}


def at(rows: Sequence[Row], method: str, law: str, rate: float) -> Row | None:
    """The row of a method; None if it was not run."""
    wanted = (method, law, rate)
    return next((row for row in rows if (row.method, row.column.law, row.column.rate) == wanted), None)


def _rounded(value: float | None, digits: int = 5) -> float | None:
    return None if value is None else round(value, digits)
