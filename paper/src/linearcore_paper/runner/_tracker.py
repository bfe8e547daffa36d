"""Tracks the parts of a running experiment: finished, ready to run, or waiting for other parts."""

import json
from collections.abc import Callable
from typing import Any

from linearcore.runtime import has_uncommitted_changes
from linearcore_paper.runner._compute import PartResult, Work, as_work, part_key
from linearcore_paper.runner._experiment import RecordedRun
from linearcore_paper.runner._job import Job, dependencies


class PartTracker:
    """Finds finished parts in the results file, and saves new ones.

    A saved `RecordedRun` is reused if settings and seed are equal, a plain function if its `part_key` is equal.

    Args:
        job: the experiment to run.
        required: names of the parts to run or reuse. Other parts are only looked up.
        rerun: names of the parts to run even if they are finished.
        on_available: called when a required part becomes available.
    """

    def __init__(self, job: Job, required: set[str], rerun: frozenset[str], on_available: Callable[[], None]) -> None:
        self.num_reused = 0
        #: Parts that can run now, in order; the caller removes a part when it starts.
        self.ready: dict[str, Work] = {}
        self._job, self._required, self._rerun, self._on_available = job, required, rerun, on_available
        self._key = part_key(job.experiment, job.settings)
        self._finished: dict[str, PartResult] = {}
        self._checked: set[str] = set()
        self._update()

    @property
    def results(self) -> dict[str, Any]:
        """The results of the available parts by name, in the order of the parts."""
        return {name: self._finished[name].result for name in self._job.parts if name in self._finished}

    @property
    def origin(self) -> dict[str, Any]:
        """Machines of the recorded runs, and the number of runs with uncommitted changes, for the conclusion."""
        environments = [part.environment for part in self._finished.values() if part.environment]
        machines = sorted({f"{one.get('device')}, torch {one.get('torch')}" for one in environments})
        changed = sum(map(has_uncommitted_changes, environments))
        return ({"runs_on": machines} if machines else {}) | ({"runs_with_uncommitted_changes": changed} if changed else {})

    def results_for(self, name: str) -> dict[str, Any]:
        """Returns the results of the parts that this part needs."""
        return {need: self._finished[need].result for need in dependencies(self._job.parts[name])}

    def finish(self, name: str, work: Work, result: PartResult) -> None:
        """Saves a finished part and updates `ready`.

        Raises:
            OSError: if the part cannot be saved.
        """
        record: dict[str, Any] = {"part": name, "results": result.result, "seconds": round(result.seconds, 3)}
        if isinstance(work, RecordedRun):
            command = f"{self._job.command} --device {self._job.settings.device} --parts {name}"
            record |= {"command": command, "environment": result.environment, "seed": work.seed, "settings": work.settings}
        else:
            record["key"] = self._key
        self._job.file.save(record)
        self._add(name, result)
        self._update()

    def _find(self, name: str, work: Work) -> PartResult | None:
        """Returns the saved result if it was made with the same settings as `work`."""
        record = self._job.file.parts.get(name, {})
        if isinstance(work, RecordedRun):
            expected = json.loads(json.dumps([work.settings, work.seed]))
            is_same = [record.get("settings"), record.get("seed")] == expected
        else:
            is_same = record.get("key") == self._key
        if not is_same or not {"results", "seconds"} <= record.keys():
            return None
        return PartResult(record["results"], record["seconds"], record.get("environment", {}))

    def _update(self) -> None:
        """Checks the parts until no new one is found, because a part may need the results of a later one."""
        has_new = True
        while has_new:
            has_new = False
            for name in self._job.parts:
                if name not in self._checked:
                    has_new |= self._check(name)
        self.ready = {name: self.ready[name] for name in self._job.parts if name in self.ready}

    def _check(self, name: str) -> bool:
        """Looks up a part in the results file; returns whether it is finished."""
        work = as_work(self._job.parts[name], self.results)
        if work is None:
            return False
        self._checked.add(name)
        result = None if name in self._rerun else self._find(name, work)
        if result is not None:
            self.num_reused += name in self._required
            self._add(name, result)
            return True
        if name in self._required:
            self.ready[name] = work
        return False

    def _add(self, name: str, result: PartResult) -> None:
        self._finished[name] = result
        if name in self._required:
            self._on_available()
