"""One part of an experiment, done or to be done."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from linearcore_paper.runner._experiment import After, Part, PartFunction, RecordedRun

#: A part that can be done now; an `After` becomes one once its results are there.
Work = PartFunction | RecordedRun


@dataclass(frozen=True)
class Done:
    """A part that is done.

    Args:
        result: JSON values, as they will be read back.
        seconds: how long it took.
        environment: where it was computed, as `linearcore.runtime.environment` tells it; empty for a plain function.
    """

    result: Any
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)


def as_work(part: Part, results: Mapping[str, Any]) -> Work | None:
    """What is to be done for a part; None while results that it needs are not there."""
    if not isinstance(part, After):
        return part
    if not all(name in results for name in part.needs):
        return None
    return part.make({name: results[name] for name in part.needs})


def compute(work: Work, environment: dict[str, Any]) -> Done:
    """Does a part, in this process.

    Raises:
        TypeError: if the result holds what is no JSON value.
        ValueError: if a number in it is not finite.
    """
    recorded = isinstance(work, RecordedRun)
    started = time.perf_counter()
    result = work.compute() if isinstance(work, RecordedRun) else work()
    seconds = time.perf_counter() - started
    # Keys of a record are sorted; so they must be here, or a second run would see another order than the first.
    text = json.dumps(result, allow_nan=False, sort_keys=recorded)
    return Done(json.loads(text), seconds, environment if recorded else {})
