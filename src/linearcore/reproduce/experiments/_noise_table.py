"""The table of `noise`: what its runs come to, a row for each method, law and rate."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from linearcore.reproduce.experiments._noise_methods import Config, Method, ranked

#: The rates of the paper's Table 2, and its test accuracies in per cent. Its GCE has the best q of a grid at every rate.
PAPER_RATES = (0.2, 0.3, 0.4, 0.5, 0.6)
PAPER: Mapping[str, tuple[float, ...]] = {
    "ce": (83.20, 77.83, 72.88, 61.08, 37.50),
    "gce": (83.23, 77.90, 72.93, 61.14, 37.57),
    "lc": (84.24, 80.52, 75.49, 63.57, 39.86),
}


class Column(NamedTuple):
    """A law of wrong labels, a rate, and the seeds that it is run with."""

    law: str
    rate: float
    seeds: tuple[int, ...]

    @property
    def words(self) -> str:
        """Short enough for a sentence."""
        return f"{100 * self.rate:g} %" + ("" if self.law == "instance" else f" {self.law}")


@dataclass(frozen=True)
class Row:
    """One method with one kind of wrong labels.

    Attributes:
        method: its key.
        column: law, rate and seeds.
        runs: results, one for each seed; none if one of them failed.
    """

    method: str
    column: Column
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

    def to_json(self) -> dict[str, Any]:
        """With what follows from it."""
        means = {name: _rounded(self.mean_of(name), digits) for name, digits in _TOLD.items()}
        return {
            "row": self.method,
            "law": self.column.law,
            "rate": self.column.rate,
            "seeds": list(self.column.seeds),
            "mean": _rounded(self.mean, 3),
            "spread": _rounded(self.spread, 3),
            **means,
        }


#: Configurations of a method that are tried at whole length, after all were tried at short length.
WHOLE = 2

#: Numbers of runs whose means stand in the table, and their digits.
_TOLD = {
    "agreement": 2, "auc_loss": 4, "auc_margin": 4, "best_accuracy": 2, "realised_rate": 4, "train_accuracy": 2,
    "wrong_learned": 2,
}  # fmt: skip


def run_name(column: Column, method: str, seed: int) -> str:
    """Of the part that trains."""
    return f"run_{column.law}_{column.rate:g}_{method}_seed{seed}"


def tune_names(method: str, methods: Mapping[str, Method]) -> tuple[str, ...]:
    """Of the short parts that tune, one for each configuration; none if there is no choice."""
    row = methods[method]
    return tuple(f"tune_{method}_{place}" for place in range(len(row.configs))) if row.is_tuned else ()


def whole_names(method: str, methods: Mapping[str, Method]) -> tuple[str, ...]:
    """Of the parts that try the best of those once more, for as many epochs as the runs that count."""
    row = methods[method]
    return tuple(f"tune_{method}_whole{place}" for place in range(min(WHOLE, len(row.configs)))) if row.is_tuned else ()


def short_list(results: Mapping[str, Any], method: str, methods: Mapping[str, Method]) -> list[int]:
    """Places of the configurations that are tried once more."""
    return ranked([results[name] for name in tune_names(method, methods)])[:WHOLE]


def chosen(results: Mapping[str, Any], method: str, methods: Mapping[str, Method]) -> int:
    """The place of the configuration that counts: the best at whole length of those that were best at short length."""
    wholes = [results[name] for name in whole_names(method, methods)]
    return short_list(results, method, methods)[ranked(wholes)[0]] if wholes else 0


def rows_of(results: Mapping[str, Any], columns: Iterable[Column], methods: Iterable[str]) -> list[Row]:
    """All rows, method by method."""
    return [_row(results, column, method) for method in methods for column in columns]


def _row(results: Mapping[str, Any], column: Column, method: str) -> Row:
    runs = tuple(results[run_name(column, method, seed)] for seed in column.seeds)
    return Row(method, column, () if any("failed" in run for run in runs) else runs)


def choices_of(results: Mapping[str, Any], methods: Mapping[str, Method]) -> list[dict[str, Any]]:
    """For every method that was tuned, what was tried and what was chosen."""
    found = []
    for key, method in methods.items():
        names = tune_names(key, methods)
        if names:
            wholes = dict(zip(short_list(results, key, methods), whole_names(key, methods), strict=True))
            tried = [
                _tried(config, results[name], results[wholes[place]] if place in wholes else {})
                for place, (config, name) in enumerate(zip(method.configs, names, strict=True))
            ]
            found.append({"row": key, "chosen": chosen(results, key, methods), "tried": tried})
    return found


def _tried(config: Config, short: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, and how many noisy labels it gave itself; None where it failed or was not tried."""
    told = {"noisy_validation_accuracy": short, "noisy_validation_accuracy_whole": whole}
    return config.to_json() | {name: run.get("noisy_validation_accuracy") for name, run in told.items()}


def at(rows: Sequence[Row], method: str, law: str, rate: float) -> Row | None:
    """The row of a method; None if it was not run."""
    wanted = (method, law, rate)
    return next((row for row in rows if (row.method, row.column.law, row.column.rate) == wanted), None)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
