"""The parts of an experiment while it runs: which are there, which can be done now, which wait for others."""

import json
from collections.abc import Callable
from typing import Any

from linearcore.runtime import made_with_changes
from linearcore_paper.runner._compute import Done, Work, as_work, part_key
from linearcore_paper.runner._experiment import RecordedRun
from linearcore_paper.runner._job import Job, needs_of


class Ledger:
    """Looks up what is finished already, and saves what becomes finished.

    A `RecordedRun` is found again by settings and seed, a plain function by the hash of all that it depends on.

    Args:
        job: what to run.
        wanted: names of the parts to be there in the end. The others are looked up, to know whether all are there.
        anew: names of those to be done even if they are there.
        tell: called whenever one more of the wanted ones is there.
    """

    def __init__(self, job: Job, wanted: set[str], anew: frozenset[str], tell: Callable[[], None]) -> None:
        self.kept = 0
        #: Can be done now, by name and in the order of the parts; whoever does one takes it out.
        self.todo: dict[str, Work] = {}
        self._job, self._wanted, self._anew, self._tell = job, wanted, anew, tell
        self._key = part_key(job.experiment, job.settings)
        self._done: dict[str, Done] = {}
        self._seen: set[str] = set()
        self._look()

    @property
    def results(self) -> dict[str, Any]:
        """Results of the parts that are there, by name and in the order of the parts."""
        return {name: self._done[name].result for name in self._job.parts if name in self._done}

    @property
    def origin(self) -> dict[str, Any]:
        """Settings that say where the recorded runs were made, and how many of them with uncommitted changes."""
        found = [done.environment for done in self._done.values() if done.environment]
        machines = sorted({f"{place.get('device')}, torch {place.get('torch')}" for place in found})
        changed = sum(map(made_with_changes, found))
        return ({"runs_on": machines} if machines else {}) | ({"runs_with_uncommitted_changes": changed} if changed else {})

    def results_for(self, name: str) -> dict[str, Any]:
        """Results of the parts that this one needs."""
        return {need: self._done[need].result for need in needs_of(self._job.parts[name])}

    def finish(self, name: str, work: Work, done: Done) -> None:
        """Saves a part that was done, and looks what can be done now.

        Raises:
            OSError: if it cannot be saved.
        """
        record: dict[str, Any] = {"part": name, "results": done.result, "seconds": round(done.seconds, 3)}
        if isinstance(work, RecordedRun):
            command = f"{self._job.command} --device {self._job.settings.device} --parts {name}"
            record |= {"command": command, "environment": done.environment, "seed": work.seed, "settings": work.settings}
        else:
            record["key"] = self._key
        self._job.file.save(record)
        self._enter(name, done)
        self._look()

    def _find(self, name: str, work: Work) -> Done | None:
        """The part, if it is there and is what `work` would give."""
        record = self._job.file.parts.get(name, {})
        if isinstance(work, RecordedRun):
            asked = json.loads(json.dumps([work.settings, work.seed]))
            is_same = [record.get("settings"), record.get("seed")] == asked
        else:
            is_same = record.get("key") == self._key
        if not is_same or not {"results", "seconds"} <= record.keys():
            return None
        return Done(record["results"], record["seconds"], record.get("environment", {}))

    def _look(self) -> None:
        """Goes through the parts until none is found that was not there before: one may be what another waits for."""
        found_one = True
        while found_one:
            found_one = False
            for name in self._job.parts:
                if name not in self._seen:
                    found_one |= self._look_at(name)
        self.todo = {name: self.todo[name] for name in self._job.parts if name in self.todo}

    def _look_at(self, name: str) -> bool:
        """Whether a part that was not looked at before is there."""
        work = as_work(self._job.parts[name], self.results)
        if work is None:
            return False
        self._seen.add(name)
        done = None if name in self._anew else self._find(name, work)
        if done is not None:
            self.kept += name in self._wanted
            self._enter(name, done)
            return True
        if name in self._wanted:
            self.todo[name] = work
        return False

    def _enter(self, name: str, done: Done) -> None:
        self._done[name] = done
        if name in self._wanted:
            self._tell()
