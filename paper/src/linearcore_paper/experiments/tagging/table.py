"""The table of `tagging`: results of training runs and timings, one row for each data set, encoder and method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from linearcore_paper.experiments.tagging.training import TARGET

#: The paper's seconds to 83 % accuracy with 4000 tags, for CRF and linear core, and their ratio. Its text calls the CRF's
#: BiLSTM time the time of one epoch; its figure and ratio use it as the time to 83 %.
PAPER = {
    "bilstm": {"crf": 78.4, "lc": 4.5, "ratio": 17.4},
    "bert": {"crf": 78.7, "lc": 5.1, "ratio": 15.4},
}
#: Methods that are linear cores.
OURS = ("lc", "lc-rank", "lc-sampled")


@dataclass(frozen=True)
class Row:
    """One method on one data set with one encoder.

    Attributes:
        source, encoding, method: keys of data set, encoder and method.
        tags: number of tags, including those that never occur.
        rate: the learning rate that was best on dev; None if all runs failed.
        is_edge: whether the learning rate is the first or the last of the grid.
        dev: accuracies on dev, one for each seed, used for selection; empty if a run failed.
        test: accuracies on the test part, one for each seed; empty if a run failed.
        reached: steps to the target (see `settled`), one for each seed; None if it was not reached.
        step_seconds: seconds per step when nothing else runs, with the faster of compiled and eager loss.
        plain_seconds: seconds per step with an eager loss.
        fall: largest drop of the accuracy below an earlier value, in points over all seeds; None if a run failed.
        steps_an_epoch: training steps per epoch.
        curve: [seconds, accuracy on some dev sequences], means over seeds, at the steps that all seeds have.
    """

    source: str
    encoding: str
    method: str
    tags: int
    rate: float | None
    is_edge: bool
    dev: list[float]
    test: list[float]
    reached: list[int | None]
    step_seconds: float | None
    plain_seconds: float | None
    fall: float | None
    steps_an_epoch: int | None
    curve: list[list[float]]

    @property
    def accuracy(self) -> float | None:
        """Mean test accuracy over seeds."""
        return statistics.mean(self.test) if self.test else None

    @property
    def spread(self) -> float | None:
        """Standard deviation of the test accuracy over seeds."""
        return statistics.stdev(self.test) if len(self.test) > 1 else None

    @property
    def seconds(self) -> list[float] | None:
        """Seconds to the target, one for each seed; None unless all reached it and a step was timed."""
        if self.step_seconds is None or not self.reached or None in self.reached:
            return None
        return [self.step_seconds * steps for steps in self.reached if steps is not None]

    @property
    def arrivals(self) -> str:
        """Text with the number of seeds that reached the target."""
        count = sum(steps is not None for steps in self.reached)
        return f"{count} of {len(self.reached)} seeds" if count else "never"

    @property
    def epoch_seconds(self) -> float | None:
        """Seconds per training epoch."""
        if self.step_seconds is None or self.steps_an_epoch is None:
            return None
        return self.step_seconds * self.steps_an_epoch

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values, including derived ones."""
        seconds = self.seconds
        return asdict(self) | {
            "accuracy": _rounded(self.accuracy, 3),
            "spread": _rounded(self.spread, 3),
            "epoch_seconds": _rounded(self.epoch_seconds, 4),
            "seconds": None if seconds is None else _rounded(statistics.mean(seconds), 4),
            "seconds_by_seed": None if seconds is None else [_rounded(value, 4) for value in seconds],
        }


def rows_of(results: dict[str, Any], source: str, encoding: str, methods: Sequence[str], seeds: Sequence[int]) -> list[Row]:
    """Returns the rows of one data set and encoder; the broadcast CRF uses ChainCRF's steps and its own seconds per step."""
    rows = [_row(results, source, encoding, method, method, seeds) for method in methods]
    return [_row(results, source, encoding, "broadcast", "crf", seeds), *rows]


def _row(results: dict[str, Any], source: str, encoding: str, method: str, trained: str, seeds: Sequence[int]) -> Row:
    """Returns the row of `method` with the training runs of `trained`."""
    case = f"{source}_{encoding}"
    runs = [results[f"run_{case}_{trained}_seed{seed}"] for seed in seeds]
    prefix = f"tune_{case}_{trained}_"
    rates = {float(name.removeprefix(prefix)): run for name, run in results.items() if name.startswith(prefix)}
    timed = results[f"pace_{case}_{method}"]
    step_seconds = timed.get("seconds")
    dev_accuracies = {rate: run["dev_accuracy"] for rate, run in rates.items() if "failed" not in run}
    rate = max(dev_accuracies, key=lambda one: dev_accuracies[one]) if dev_accuracies else None
    is_complete = not any("failed" in run for run in runs)
    return Row(
        source=source,
        encoding=encoding,
        method=method,
        tags=timed["tags"],
        rate=rate,
        is_edge=rate in (min(rates), max(rates)),
        dev=[run["dev_accuracy"] for run in runs] if is_complete else [],
        test=[run["test_accuracy"] for run in runs] if is_complete else [],
        reached=[settled(run) for run in runs] if is_complete else [],
        step_seconds=step_seconds,
        plain_seconds=timed.get("ways", {}).get("plain", timed).get("seconds"),
        fall=round(max(fall([value for _, value in run["curve"]]) for run in runs), 2) if is_complete else None,
        steps_an_epoch=runs[0]["steps_an_epoch"] if is_complete else None,
        curve=_curve([run["curve"] for run in runs], step_seconds) if is_complete and step_seconds else [],
    )


def settled(run: Mapping[str, Any]) -> int | None:
    """Returns the number of steps after which the accuracy stays at the target; None if it does not.

    The first evaluation at the target may be chance, or the accuracy may drop again later, so it is not sufficient.

    Example:
        >>> settled({"reached": 40, "curve": [[20, 70.0], [40, 83.5], [60, 80.0], [80, 84.0], [100, 85.0]]})
        80
    """
    first: int | None = run["reached"]
    if first is None:
        return None
    fallen = [step for step, value in run["curve"] if step > first and value < TARGET]
    if not fallen:
        return first
    return min((step for step, _ in run["curve"] if step > max(fallen)), default=None)


def fall(values: Sequence[float]) -> float:
    """Returns the largest difference between a value and an earlier, higher one.

    Example:
        >>> fall([50.0, 80.0, 75.0, 90.0])
        5.0
    """
    return max((high - value for high, value in zip(accumulate(values, max), values, strict=True)), default=0.0)


def _curve(curves: Sequence[Sequence[Sequence[float]]], step_seconds: float) -> list[list[float]]:
    """Returns [seconds, accuracy] at the steps that all seeds have."""
    by_step = [{int(step): value for step, value in curve} for curve in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_step)))
    return [
        [float(f"{step_seconds * step:.4g}"), round(statistics.mean(points[step] for points in by_step), 2)]
        for step in shared
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def by_method(rows: Sequence[Row], source: str, encoding: str) -> dict[str, Row]:
    """Returns the rows of one data set and encoder, by method."""
    return {row.method: row for row in rows if (row.source, row.encoding) == (source, encoding)}


def best_on_dev(table: dict[str, Row]) -> Row | None:
    """Returns the linear core with the best dev accuracy (test results are not used); None if all failed."""
    candidates = [table[key] for key in OURS if key in table and table[key].dev]
    return max(candidates, key=lambda row: statistics.mean(row.dev), default=None)


def margin(*rows: Row) -> float:
    """Returns the half-width of Welch's 95 % confidence interval for a difference of means over seeds."""
    from scipy.special import stdtrit

    squares = [(row.spread or 0.0) ** 2 / max(1, len(row.test)) for row in rows]
    if not any(squares):
        return 0.0
    freedom = sum(squares) ** 2 / sum(
        square**2 / max(1, len(row.test) - 1) for square, row in zip(squares, rows, strict=True)
    )
    return float(stdtrit(freedom, 0.975) * sum(squares) ** 0.5)


def ratio(slow: Row, fast: Row) -> float | None:
    """Returns the mean time to the target of `slow` divided by that of `fast`."""
    if slow.seconds is None or fast.seconds is None:
        return None
    return statistics.mean(slow.seconds) / statistics.mean(fast.seconds)
