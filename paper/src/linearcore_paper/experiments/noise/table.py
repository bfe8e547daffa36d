"""The table of `noise`: results of its runs, one row for each method, kind of noise and noise rate."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from linearcore_paper.experiments.noise.methods import Config, Method, best_of

#: Noise rates and test accuracies (per cent) of the paper's Table 2. Its GCE uses the best q of a grid at every rate.
PAPER_RATES = (0.2, 0.3, 0.4, 0.5, 0.6)
PAPER: Mapping[str, tuple[float, ...]] = {
    "ce": (83.20, 77.83, 72.88, 61.08, 37.50),
    "gce": (83.23, 77.90, 72.93, 61.14, 37.57),
    "lc": (84.24, 80.52, 75.49, 63.57, 39.86),
}


class Column(NamedTuple):
    """A kind of noise, a noise rate, and the seeds of its runs; secondary methods use the first seed only."""

    law: str
    rate: float
    seeds: tuple[int, ...]

    @property
    def words(self) -> str:
        """Short text for a sentence."""
        return f"{100 * self.rate:g} %" + ("" if self.law == "instance" else f" {self.law}")

    def seeds_of(self, method: Method) -> tuple[int, ...]:
        """Returns the seeds of a method's runs."""
        return self.seeds[:1] if method.is_secondary else self.seeds


@dataclass(frozen=True)
class Row:
    """One method with one kind of wrong labels.

    Attributes:
        method: key of the method.
        column: kind of noise and noise rate.
        seeds: seeds of the runs.
        runs: results, one for each seed; empty if a run failed.
    """

    method: str
    column: Column
    seeds: tuple[int, ...]
    runs: tuple[Mapping[str, Any], ...]

    @property
    def mean(self) -> float | None:
        """Mean test accuracy after the last epoch; None if a run failed."""
        return self.mean_of("test_accuracy")

    @property
    def spread(self) -> float | None:
        """Standard deviation of the test accuracies; None with one seed."""
        return statistics.stdev(run["test_accuracy"] for run in self.runs) if len(self.runs) > 1 else None

    def mean_of(self, name: str) -> float | None:
        """Returns the mean of a result over the runs; None if a value is missing."""
        values = [run[name] for run in self.runs]
        return statistics.mean(values) if values and None not in values else None

    def mean_with(self, seeds: Sequence[int]) -> float:
        """Returns the mean over some seeds, for comparison with a row that has only these; 0 if a run failed."""
        values = [run["test_accuracy"] for seed, run in zip(self.seeds, self.runs, strict=False) if seed in seeds]
        return statistics.mean(values) if values else 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values, including means."""
        # Keep extra digits, so that a printed value rounds as in a claim.
        means = {name: _rounded(self.mean_of(name)) for name in _MEANS}
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


#: Results of runs whose means are in the table.
_MEANS = ("agreement", "auc_loss", "auc_margin", "best_accuracy", "realised_rate", "train_accuracy", "wrong_learned")


def run_name(column: Column, method: str, seed: int) -> str:
    """Returns the name of the part of a final run."""
    return f"run_{column.law}_{column.rate:g}_{method}_seed{seed}"


def tune_names(method: str, methods: Mapping[str, Method]) -> tuple[str, ...]:
    """Returns the names of the tuning parts, one for each configuration; empty if there is only one."""
    row = methods[method]
    return tuple(f"tune_{method}_{index}" for index in range(len(row.configs))) if row.is_tuned else ()


def chosen(results: Mapping[str, Any], method: str, methods: Mapping[str, Method]) -> int:
    """Returns the index of the configuration that is used."""
    names = tune_names(method, methods)
    return best_of([results[name] for name in names]) if names else 0


def rows_of(results: Mapping[str, Any], columns: Sequence[Column], methods: Mapping[str, Method]) -> list[Row]:
    """Returns all rows, method by method."""
    return [_row(results, column, key, column.seeds_of(method)) for key, method in methods.items() for column in columns]


def _row(results: Mapping[str, Any], column: Column, method: str, seeds: tuple[int, ...]) -> Row:
    runs = tuple(results[run_name(column, method, seed)] for seed in seeds)
    return Row(method, column, seeds, () if any("failed" in run for run in runs) else runs)


def choices_of(results: Mapping[str, Any], methods: Mapping[str, Method]) -> list[dict[str, Any]]:
    """Returns the configurations tried and the one chosen, for every tuned method."""
    choices = []
    for key, method in methods.items():
        names = tune_names(key, methods)
        if names:
            tried = [_tried(config, results[name]) for config, name in zip(method.configs, names, strict=True)]
            choices.append({"row": key, "chosen": chosen(results, key, methods), "tried": tried})
    return choices


def _tried(config: Config, run: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration with its accuracy on held-out noisy labels; None if its run failed."""
    return config.to_json() | {"noisy_validation_accuracy": run.get("noisy_validation_accuracy")}


def find_row(rows: Sequence[Row], method: str, law: str, rate: float) -> Row | None:
    """Returns the row of a method; None if it was not run."""
    key = (method, law, rate)
    return next((row for row in rows if (row.method, row.column.law, row.column.rate) == key), None)


def _rounded(value: float | None, digits: int = 5) -> float | None:
    return None if value is None else round(value, digits)
