"""Order of an acyclic graph: states that lie on a path, their levels, and what is wrong with a graph."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Fault(NamedTuple):
    """Why a graph is not an automaton: the first two for the message, and a state that is involved."""

    wrong: str
    advice: str
    state: int


class Graph(NamedTuple):
    """Arcs between states 0, …, S − 1.

    Attributes:
        source, target: (A,) the ends of each arc.
        start: the first state of every path.
        final: (F,) the last states of paths.
        names: (S,) the numbers that the user gave to the states.
    """

    source: Integers
    target: Integers
    start: int
    final: Integers
    names: Integers

    @classmethod
    def of(cls, source: Integers, target: Integers, start: int, final: Integers) -> "Graph":
        """Renumbers the states without gaps, in the order of their numbers."""
        names = np.unique(np.concatenate([source, target, final, [start]]))
        source, target, final = (np.searchsorted(names, states) for states in (source, target, final))
        return cls(source, target, int(np.searchsorted(names, start)), np.unique(final), names)

    def is_useful(self) -> tuple[Flags, Flags]:
        """Returns booleans (S,): a path from the start leads to the state; a path from the state leads to a final state."""
        reachable = _reached(self.source, self.target, np.array([self.start]), len(self.names))
        return reachable, _reached(self.target, self.source, self.final, len(self.names))

    def levels(self) -> Integers:
        """Returns the number of arcs (S,) of the longest path to each state; −1 for states on or after a cycle."""
        leaving = _Leaving(self.source, self.target, len(self.names))
        missing = np.bincount(self.target, minlength=len(self.names))
        level = np.full(len(self.names), -1)
        states, depth = np.flatnonzero(missing == 0), 0
        while states.size:
            level[states] = depth
            targets, times = np.unique(leaving.targets(states), return_counts=True)
            missing[targets] -= times
            states, depth = targets[missing[targets] == 0], depth + 1
        return level

    def fault(self) -> Fault | None:
        """Returns the first reason why the graph is not a trim acyclic automaton; None if it is one."""
        reachable, ends = self.is_useful()
        if not (reachable & ends).any():
            advice = "mark as final a state that a path from the start leads to"
            return Fault(
                f"no path from start state {self.names[self.start]} to a final state", advice, self._name(self.start)
            )
        level = self.levels()
        if (level < 0).any():
            name = self._name(self._state_on_cycle(level < 0))
            return Fault(f"a cycle through state {name}", "remove it: only acyclic automata have finitely many paths", name)
        for flags, wrong in ((reachable, "no path from the start leads to state"), (ends, "no final state follows state")):
            if not flags.all():
                name = self._name(int(np.argmin(flags)))
                return Fault(f"{wrong} {name}", "remove it, or pass trim=True", name)
        return None

    def _name(self, state: int) -> int:
        return int(self.names[state])

    def _state_on_cycle(self, is_left: Flags) -> int:
        """Returns a state of a cycle. `is_left` marks states on or after one; each of them has such a predecessor."""
        inside = is_left[self.source] & is_left[self.target]
        before = dict(zip(self.target[inside].tolist(), self.source[inside].tolist(), strict=True))
        state, seen = int(np.argmax(is_left)), set()
        while state not in seen:
            seen.add(state)
            state = before[state]
        return state


class _Leaving:
    """The arcs that leave a state, for many states at once."""

    def __init__(self, source: Integers, target: Integers, num_states: int) -> None:
        self._target = target[np.argsort(source, kind="stable")]
        self._count = np.bincount(source, minlength=num_states)
        self._first = np.cumsum(self._count) - self._count

    def targets(self, states: Integers) -> Integers:
        """Returns the targets of all arcs that leave `states`."""
        return self._target[concatenated_ranges(self._first[states], self._count[states])]


def concatenated_ranges(first: Integers, count: Integers) -> Integers:
    """Returns first[0], …, first[0] + count[0] − 1, first[1], … as one array."""
    offset = np.cumsum(count) - count
    return np.repeat(first - offset, count) + np.arange(int(count.sum()))


def _reached(source: Integers, target: Integers, seeds: Integers, num_states: int) -> Flags:
    leaving, seen, states = _Leaving(source, target, num_states), np.zeros(num_states, dtype=np.bool_), seeds
    while states.size:
        seen[states] = True
        states = np.unique(leaving.targets(states))
        states = states[~seen[states]]
    return seen
