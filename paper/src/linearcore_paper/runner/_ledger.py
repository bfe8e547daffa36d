"""The parts of an experiment while it runs: which are there, which can be done now, which wait for others."""

from collections.abc import Callable, Mapping
from typing import Any

from linearcore_paper.runner._compute import Done, Work, as_work
from linearcore_paper.runner._experiment import Part
from linearcore_paper.runner._parts import PartStore
from linearcore_paper.runner._selection import needs_of


class Ledger:
    """Looks up what is finished already, and keeps what becomes finished.

    Args:
        parts: all parts of the experiment.
        wanted: names of those to be there in the end. The others are looked up, so that it is known whether all are there.
        anew: names of those to be done even if they are there.
        store: their files.
        tell: called whenever one more of the wanted ones is there.
    """

    def __init__(
        self, parts: Mapping[str, Part], wanted: set[str], anew: set[str], store: PartStore, tell: Callable[[], None]
    ) -> None:
        self.parts = parts
        self.kept = 0
        #: Can be done now, by name and in the order of `parts`; whoever does one takes it out.
        self.todo: dict[str, Work] = {}
        self._wanted, self._anew, self._store, self._tell = wanted, anew, store, tell
        self._done: dict[str, Done] = {}
        self._seen: set[str] = set()
        self._look()

    @property
    def results(self) -> dict[str, Any]:
        """Results of the parts that are there, by name and in the order of `parts`."""
        return {name: self._done[name].result for name in self.parts if name in self._done}

    @property
    def machines(self) -> list[str]:
        """What the recorded runs were computed on."""
        found = [done.environment for done in self._done.values() if done.environment]
        return sorted({f"{place.get('device')}, torch {place.get('torch')}" for place in found})

    def results_for(self, name: str) -> dict[str, Any]:
        """Results of the parts that this one needs."""
        return {need: self._done[need].result for need in needs_of(self.parts[name])}

    def finish(self, name: str, work: Work, done: Done) -> None:
        """Keeps a part that was done, and looks what can be done now."""
        self._store.save(name, work, done)
        self._enter(name, done)
        self._look()

    def _look(self) -> None:
        """Goes through the parts until none is found that was not there before: one may be what another waits for."""
        found_one = True
        while found_one:
            found_one = False
            for name in self.parts:
                if name not in self._seen:
                    found_one |= self._look_at(name)
        self.todo = {name: self.todo[name] for name in self.parts if name in self.todo}

    def _look_at(self, name: str) -> bool:
        """Whether a part that was not looked at before is there."""
        work = as_work(self.parts[name], self.results)
        if work is None:
            return False
        self._seen.add(name)
        done = None if name in self._anew else self._store.load(name, work)
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
