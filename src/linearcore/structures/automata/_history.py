"""States that know the last labels of the path."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from linearcore.structures.automata._topology import Graph, Integers, concatenated_ranges

if TYPE_CHECKING:
    from linearcore.structures.automata._automaton import Automaton


class Expansion(NamedTuple):
    """An automaton whose states know the last labels; see `Automaton.with_history`.

    Attributes:
        automaton: the expanded automaton.
        arc: (A',) the arc of the original automaton that each arc copies. `scores[..., arc]` are the copied scores.
        ngram: (A', n) the labels of the n-gram that ends with the arc.
    """

    automaton: "Automaton"
    arc: Tensor
    ngram: Tensor


class Expanded(NamedTuple):
    """Arrays of an expansion: ends of the arcs (A',), the arcs that they copy (A',), n-grams (A', n), and final states."""

    source: Integers
    target: Integers
    arc: Integers
    ngram: Integers
    final: Integers


def expand(graph: Graph, label: Integers, n: int) -> Expanded:
    """Expands a graph with labels (A,) by the last n − 1 labels. State 0 is the start.

    Pairs of a state and a history are built level by level, only those that a path reaches.
    """
    level = graph.levels()
    by_source = np.argsort(graph.source, kind="stable")
    count = np.bincount(graph.source, minlength=len(graph.names))
    first = np.cumsum(count) - count
    pending: list[list[Integers]] = [[] for _ in range(int(level.max()) + 1)]
    pending[0].append(np.array([[graph.start, *[-1] * (n - 1)]]))
    nodes: list[Integers] = []
    arcs: list[tuple[Integers, Integers, Integers]] = []
    offset = 0
    for rows in pending:
        pairs = np.unique(np.concatenate(rows), axis=0)
        state, past = pairs[:, 0], pairs[:, 1:]
        owner = np.repeat(np.arange(len(pairs)), count[state])
        arc = by_source[concatenated_ranges(first[state], count[state])]
        written = label[arc][:, None]
        recent = np.where(written < 0, past[owner], np.concatenate([past[owner], written], axis=1)[:, 1:])
        reached = np.concatenate([graph.target[arc][:, None], recent], axis=1)
        for depth in np.unique(level[reached[:, 0]]).tolist():
            pending[depth].append(reached[level[reached[:, 0]] == depth])
        nodes.append(pairs)
        arcs.append((owner + offset, arc, reached))
        offset += len(pairs)
    pairs = np.concatenate(nodes)
    source, arc, reached = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
    ngram = np.concatenate([pairs[source, 1:], label[arc][:, None]], axis=1)
    ngram[label[arc] < 0] = -1
    return Expanded(source, _positions(pairs, reached), arc, ngram, np.flatnonzero(np.isin(pairs[:, 0], graph.final)))


def _positions(rows: Integers, wanted: Integers) -> Integers:
    """Returns the index in `rows` of each row of `wanted`; rows are distinct."""
    _, number = np.unique(np.concatenate([rows, wanted]), axis=0, return_inverse=True)
    number = number.reshape(-1)
    position = np.empty(len(rows), dtype=np.int64)
    position[number[: len(rows)]] = np.arange(len(rows))
    return position[number[len(rows) :]]
