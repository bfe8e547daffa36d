"""Means and intervals over seeds."""

import math
from collections.abc import Sequence
from statistics import mean, median, stdev
from typing import Any

from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.ngram.training import METHODS

#: 97.5 % quantiles of Student's t, by the number of runs.
QUANTILES = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Returns the mean, the half-width of its 95 % interval, and the values.

    Example:
        >>> interval([1.0, 2.0, 3.0])["half_width"]
        2.484
    """
    half_width = QUANTILES[len(values)] * stdev(values) / math.sqrt(len(values))
    return {
        "mean": round_values(mean(values), 6),
        "half_width": round_values(half_width, 4),
        "values": [round_values(value, 6) for value in values],
    }


def rows_of(task: str, method: str, steps: int, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one row for each metric of the runs of a method, one run for each seed."""
    rows = []
    for metric in runs[0]["metrics"]:
        found = [run["metrics"][metric] for run in runs]
        rows.append(
            {
                "task": task,
                "metric": metric,
                "steps": steps,
                "method": method,
                "label": METHODS[method].label,
                "viterbi": interval([each["viterbi"] for each in found]),
                "risk": interval([each["risk"] for each in found]),
                "gain": interval([each["risk"] - each["viterbi"] for each in found]),
                "viterbi_ms": round_values(median(each["viterbi_ms"] for each in found), 3),
                "risk_ms": round_values(median(each["risk_ms"] for each in found), 3),
                "temperatures": [each["temperature"] for each in found],
                "ms_per_step": round_values(median(run["ms_per_step"] for run in runs), 3),
            }
        )
    return rows


#: Task, metric and number of steps of a row.
Case = tuple[str, str, int]


def case_of(row: dict[str, Any]) -> Case:
    """Returns the task, the metric and the number of steps of a row."""
    return row["task"], row["metric"], row["steps"]


def difference(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Returns the interval of the differences of two rows, paired by seed, both decoded by Viterbi."""
    pairs = zip(first["viterbi"]["values"], second["viterbi"]["values"], strict=True)
    return interval([a - b for a, b in pairs])
