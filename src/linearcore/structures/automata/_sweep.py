"""Order in which recursions over an automaton visit arcs: level by level, in dense blocks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from linearcore.structures.automata._topology import Graph, Integers


class Step(NamedTuple):
    """States that are computed at once: rows low to high, with `width` slots each, which are first to last."""

    low: int
    high: int
    first: int
    last: int
    width: int


class Sweep(NamedTuple):
    """One pass over all arcs. A row is a state; a slot is an arc into it, or out of it, or padding.

    The states of a level are independent. Those with similar numbers of arcs are one step: a dense block of slots, padded by
    at most a factor of two. Row 0 is where the pass begins, the row before the last one is where it ends, and the last row
    is that of the padding.

    Attributes:
        arc: (P,) arc of each slot; A, which has score 0, for padding and for the end of a path.
        neighbour: (P,) row of the other end of the arc.
        row: (P,) row of the slot.
        first: (R,) first slot of each row; 0 for the first and the last row.
        steps: the blocks, in order.
    """

    arc: Tensor
    neighbour: Tensor
    row: Tensor
    first: Tensor
    steps: tuple[Step, ...]

    @property
    def num_rows(self) -> int:
        """R, including the row of the padding."""
        return len(self.first)

    def blocks(self, slots: Tensor, *rows: Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields for each step: the step, the neighbours of its slots, and its parts of `slots` (P, …) and `rows` (R, …).

        All parts are views, which are made at once: in small steps a slice takes as long as a computation.
        """
        sizes, heights = [step.last - step.first for step in self.steps], [step.high - step.low for step in self.steps]
        # The first row and the row of the padding belong to no step.
        parts = (tensor[1:-1].split(heights) for tensor in rows)
        return zip(self.steps, self.neighbour.split(sizes), slots.split(sizes), *parts, strict=True)

    def to(self, device: torch.device) -> "Sweep":
        """Returns a copy on a device."""
        return Sweep(self.arc.to(device), self.neighbour.to(device), self.row.to(device), self.first.to(device), self.steps)


class Incoming(NamedTuple):
    """The arcs in the order of their targets, without padding, in int32 on the CPU: what the compiled kernels read.

    State 0 is the start, and the last state is the end that the plan adds; an arc goes from a lower to a higher state.

    Attributes:
        arc: (A + F,) arcs; numbers from A on are the arcs from the F final states to the end.
        source: (A + F,) state where the arc starts.
        first: (states + 1,) place of the first arc into each state, and A + F at the end.
    """

    arc: Tensor
    source: Tensor
    first: Tensor


class Plan(NamedTuple):
    """Both passes over an automaton to which one end state was added, with an arc from every final state.

    Attributes:
        forward: from the start to the end; its slots are arcs into a state.
        backward: from the end to the start; its slots are arcs out of a state.
        forward_slot: (P,) slot in `forward` of each slot of `backward`; 0 for padding.
        slot: (A,) slot in `backward` of each arc.
        max_length: number of arcs of the longest path.
        incoming: the arcs for the compiled kernels.
    """

    forward: Sweep
    backward: Sweep
    forward_slot: Tensor
    slot: Tensor
    max_length: int
    incoming: Incoming

    def to(self, device: torch.device) -> "Plan":
        """Returns a copy on a device."""
        forward, backward = self.forward.to(device), self.backward.to(device)
        return Plan(forward, backward, self.forward_slot.to(device), self.slot.to(device), self.max_length, self.incoming)


def make_plan(graph: Graph) -> Plan:
    """Returns the plan of a trim acyclic graph. Time O(A log A)."""
    num_states, num_arcs = len(graph.names), len(graph.source)
    end = np.full(len(graph.final), num_states)
    source, target = np.concatenate([graph.source, graph.final]), np.concatenate([graph.target, end])
    arc = np.minimum(np.arange(len(source)), num_arcs)
    level = graph.levels()
    level = np.append(level, level.max() + 1)
    forward, place = _sweep(target, source, arc, level, num_arcs)
    backward, back_place = _sweep(source, target, arc, -level, num_arcs)
    forward_slot = np.zeros(len(backward.arc), dtype=np.int64)
    forward_slot[back_place] = place
    slots = torch.from_numpy(forward_slot), torch.from_numpy(back_place[:num_arcs])
    return Plan(forward, backward, *slots, int(level.max()) - 1, _incoming(forward, place))


def _incoming(sweep: Sweep, place: Integers) -> Incoming:
    """Returns the arcs in the order of their slots `place` (A + F,)."""
    arc = np.argsort(place)
    slot = place[arc]
    first = np.searchsorted(sweep.row.numpy()[slot], np.arange(sweep.num_rows))
    parts = (arc, sweep.neighbour.numpy()[slot], first)
    return Incoming(*(torch.from_numpy(part.astype(np.int32)) for part in parts))


def _sweep(owner: Integers, other: Integers, arc: Integers, level: Integers, num_arcs: int) -> tuple[Sweep, Integers]:
    """Returns the pass in the order of `level`, and the slot of each arc, which is one of its `owner`."""
    num_states = len(level)
    degree = np.bincount(owner, minlength=num_states)
    size_class = np.frexp(degree)[1]  # The number of bits, so degrees of a class differ by less than a factor of two.
    order = np.lexsort((size_class, level))
    row = np.argsort(order)
    # Row 0 has no slots: in a trim automaton it is the only such state.
    changes = (np.diff(level[order]) != 0) | (np.diff(size_class[order]) != 0)
    low = np.flatnonzero(np.append(changes, True)) + 1
    low, high = low[:-1], low[1:]
    width = np.maximum.reduceat(degree[order], low) if len(low) else low
    last = np.cumsum((high - low) * width)
    steps = tuple(map(Step, *(part.tolist() for part in (low, high, last - (high - low) * width, last, width))))
    row_width = np.concatenate([[0], np.repeat(width, high - low)])
    first = np.concatenate([np.cumsum(row_width) - row_width, [0]])
    by_row = np.argsort(row[owner], kind="stable")
    owner_row = row[owner][by_row]
    rank = np.arange(len(owner)) - (np.cumsum(degree[order]) - degree[order])[owner_row]
    place = np.empty_like(owner)
    place[by_row] = first[owner_row] + rank
    arcs, neighbour = np.full(int(row_width.sum()), num_arcs), np.full(int(row_width.sum()), num_states)
    arcs[place], neighbour[place] = arc, row[other]
    slot_row = np.repeat(np.arange(num_states), row_width)
    parts = [torch.from_numpy(part) for part in (arcs, neighbour, slot_row, first)]
    return Sweep(parts[0], parts[1], parts[2], parts[3], steps), place
