"""Small acyclic automata with enumeration of all paths: a reference implementation without levels."""

import itertools
import math
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from linearcore.structures import Automaton


class Case(NamedTuple):
    """An automaton and a batch of scores (B, A) in float64, some of them −inf."""

    automaton: Automaton
    scores: Tensor


def every_path(automaton: Automaton) -> list[list[int]]:
    """Returns the arcs of all paths, by depth-first search."""
    leaving: dict[int, list[tuple[int, int]]] = {}
    for arc, (source, target) in enumerate(zip(automaton.source.tolist(), automaton.target.tolist(), strict=True)):
        leaving.setdefault(source, []).append((arc, target))
    final, paths = set(automaton.final.tolist()), []

    def visit(state: int, path: list[int]) -> None:
        if state in final:
            paths.append(path)
        for arc, target in leaving.get(state, ()):
            visit(target, [*path, arc])

    visit(automaton.start, [])
    return paths


def every_score(case: Case) -> Tensor:
    """Returns the scores (paths, B) of all paths, as sums in Python."""
    rows = case.scores.tolist()
    scores = [[math.fsum(row[arc] for arc in path) for row in rows] for path in every_path(case.automaton)]
    return torch.tensor(scores, dtype=torch.float64)


def padded(automaton: Automaton, paths: list[list[int]]) -> Tensor:
    """Returns paths as arcs (paths, M) with −100 after their ends."""
    rows = [path + [-100] * (automaton.max_length - len(path)) for path in paths]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), automaton.max_length)


@st.composite
def automata(draw: st.DrawFn, min_label: int = -1) -> Automaton:
    """Draws automata with skipped levels, parallel arcs, several final states and shuffled numbers of states."""
    size = draw(st.integers(1, 6))
    numbers = draw(st.permutations(range(0, 2 * size, 2)))
    pairs = [(a, b) for a in range(size) for b in range(a + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    labels = draw(st.lists(st.integers(min_label, 3), min_size=len(chosen), max_size=len(chosen)))
    # A path through all states of a drawn subset, so that there is one.
    stops = [0, *sorted(draw(st.sets(st.integers(1, size - 1)))), size - 1] if size > 1 else [0]
    backbone = [(a, b, 0) for a, b in itertools.pairwise(stops) if a != b]
    arcs = draw(st.permutations([*((a, b, label) for (a, b), label in zip(chosen, labels, strict=True)), *backbone]))
    final = {size - 1} | draw(st.sets(st.integers(0, size - 1), max_size=2))
    numbered = [(numbers[a], numbers[b], label) for a, b, label in arcs]
    return Automaton.from_arcs(numbered, [numbers[state] for state in final], start=numbers[0], trim=True)


@st.composite
def cases(draw: st.DrawFn, has_infinite: bool = True) -> Case:
    """Draws an automaton with up to three rows of scores."""
    automaton, batch = draw(automata()), draw(st.integers(0, 3))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scores = draw(st.sampled_from([0.5, 3.0, 300.0])) * torch.randn(
        batch, automaton.num_arcs, generator=generator, dtype=torch.float64
    )
    if has_infinite and draw(st.booleans()):
        scores[torch.rand(scores.shape, generator=generator) < 0.3] = -math.inf
    return Case(automaton, scores)
