"""The table of `tagging`: what training runs and timings come to, a row for each data set, encoder and method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from linearcore_paper.experiments.tagging.training import TARGET

#: The paper's seconds until 83 % with 4000 tags, and their ratio: CRF, linear core. Its text calls the CRF's first number
#: the time of one epoch, its figure and its ratio the time to 83 %.
PAPER = {
    "bilstm": {"crf": 78.4, "lc": 4.5, "ratio": 17.4},
    "bert": {"crf": 78.7, "lc": 5.1, "ratio": 15.4},
}
#: Linear cores among the methods.
OURS = ("lc", "lc-rank", "lc-sampled")


@dataclass(frozen=True)
class Row:
    """One method on one data set with one encoder.

    Attributes:
        source, encoding, method: their keys.
        tags: of training, those that never occur included.
        rate: the learning rate that did best on dev; None if all failed.
        is_edge: whether it is the first or the last of the grid.
        dev: accuracies on the dev part, one for each seed, to choose by; empty if a run failed.
        test: accuracies on the test part, one for each seed; empty if a run failed.
        reached: steps to the target, for good (see `settled`), one for each seed; None where it was not reached.
        step_seconds: of one step, when nothing else runs, as fast as it can be made.
        plain_seconds: the same with a loss that is not compiled.
        fall: points by which a look fell below one before it, at the most over all seeds; None if a run failed.
        steps_an_epoch: of training.
        curve: [seconds, accuracy on some dev sequences] where all seeds were looked at, means over them.
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
        """Mean over the seeds."""
        return statistics.mean(self.test) if self.test else None

    @property
    def spread(self) -> float | None:
        """Standard deviation over the seeds."""
        return statistics.stdev(self.test) if len(self.test) > 1 else None

    @property
    def seconds(self) -> list[float] | None:
        """To the target, one for each seed; None unless all reached it and a step was timed."""
        if self.step_seconds is None or not self.reached or None in self.reached:
            return None
        return [self.step_seconds * steps for steps in self.reached if steps is not None]

    @property
    def arrivals(self) -> str:
        """How many seeds reached the target, in words."""
        count = sum(steps is not None for steps in self.reached)
        return f"{count} of {len(self.reached)} seeds" if count else "never"

    @property
    def epoch_seconds(self) -> float | None:
        """Of one pass over the training part."""
        if self.step_seconds is None or self.steps_an_epoch is None:
            return None
        return self.step_seconds * self.steps_an_epoch

    def to_json(self) -> dict[str, Any]:
        """With what follows from it."""
        seconds = self.seconds
        return asdict(self) | {
            "accuracy": _rounded(self.accuracy, 3),
            "spread": _rounded(self.spread, 3),
            "epoch_seconds": _rounded(self.epoch_seconds, 4),
            "seconds": None if seconds is None else _rounded(statistics.mean(seconds), 4),
            "seconds_by_seed": None if seconds is None else [_rounded(value, 4) for value in seconds],
        }


def rows_of(results: dict[str, Any], source: str, encoding: str, methods: Sequence[str], seeds: Sequence[int]) -> list[Row]:
    """The rows of one data set and encoder; the broadcast CRF has ChainCRF's steps on its own clock."""
    found = [_row(results, source, encoding, method, method, seeds) for method in methods]
    return [_row(results, source, encoding, "broadcast", "crf", seeds), *found]


def _row(results: dict[str, Any], source: str, encoding: str, method: str, trained: str, seeds: Sequence[int]) -> Row:
    """Of `method`, with the training runs of `trained`."""
    where = f"{source}_{encoding}"
    runs = [results[f"run_{where}_{trained}_seed{seed}"] for seed in seeds]
    prefix = f"tune_{where}_{trained}_"
    rates = {float(name.removeprefix(prefix)): run for name, run in results.items() if name.startswith(prefix)}
    timed = results[f"pace_{where}_{method}"]
    step_seconds = timed.get("seconds")
    known = {rate: run["dev_accuracy"] for rate, run in rates.items() if "failed" not in run}
    rate = max(known, key=lambda one: known[one]) if known else None
    is_whole = not any("failed" in run for run in runs)
    return Row(
        source=source,
        encoding=encoding,
        method=method,
        tags=timed["tags"],
        rate=rate,
        is_edge=rate in (min(rates), max(rates)),
        dev=[run["dev_accuracy"] for run in runs] if is_whole else [],
        test=[run["test_accuracy"] for run in runs] if is_whole else [],
        reached=[settled(run) for run in runs] if is_whole else [],
        step_seconds=step_seconds,
        plain_seconds=timed.get("ways", {}).get("plain", timed).get("seconds"),
        fall=round(max(fall([value for _, value in run["curve"]]) for run in runs), 2) if is_whole else None,
        steps_an_epoch=runs[0]["steps_an_epoch"] if is_whole else None,
        curve=_curve([run["curve"] for run in runs], step_seconds) if is_whole and step_seconds else [],
    )


def settled(run: Mapping[str, Any]) -> int | None:
    """Steps after which a run had the target for good; None if it never had, or lost it in the end.

    The first look that finds the target may have had luck, or the training rate may yet throw it back: a tagger that has to
    be trained on has not arrived.

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
    """The most that one is below one before it.

    Example:
        >>> fall([50.0, 80.0, 75.0, 90.0])
        5.0
    """
    return max((high - value for high, value in zip(accumulate(values, max), values, strict=True)), default=0.0)


def _curve(curves: Sequence[Sequence[Sequence[float]]], step_seconds: float) -> list[list[float]]:
    """[seconds, accuracy] at the steps that all seeds have."""
    by_step = [{int(step): value for step, value in curve} for curve in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_step)))
    return [
        [float(f"{step_seconds * step:.4g}"), round(statistics.mean(points[step] for points in by_step), 2)]
        for step in shared
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def by_method(rows: Sequence[Row], source: str, encoding: str) -> dict[str, Row]:
    """The rows of one data set and encoder."""
    return {row.method: row for row in rows if (row.source, row.encoding) == (source, encoding)}


def best_on_dev(table: dict[str, Row]) -> Row | None:
    """The linear core that was best on dev, and so not chosen by what is reported; None if all failed."""
    known = [table[key] for key in OURS if key in table and table[key].dev]
    return max(known, key=lambda row: statistics.mean(row.dev), default=None)


def margin(*rows: Row) -> float:
    """What may well be chance: half of Welch's interval of 95 % for a difference of means over the seeds."""
    from scipy.special import stdtrit

    squares = [(row.spread or 0.0) ** 2 / max(1, len(row.test)) for row in rows]
    if not any(squares):
        return 0.0
    freedom = sum(squares) ** 2 / sum(
        square**2 / max(1, len(row.test) - 1) for square, row in zip(squares, rows, strict=True)
    )
    return float(stdtrit(freedom, 0.975) * sum(squares) ** 0.5)


def ratio(slow: Row, fast: Row) -> float | None:
    """How many times as long the one takes to the target as the other, means over seeds."""
    if slow.seconds is None or fast.seconds is None:
        return None
    return statistics.mean(slow.seconds) / statistics.mean(fast.seconds)
