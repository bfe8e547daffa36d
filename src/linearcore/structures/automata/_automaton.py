"""Acyclic automata: finite sets of label sequences that share arcs."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint, shape
from linearcore.structures._constraints import Constraints
from linearcore.structures.automata._chain import chain_arcs
from linearcore.structures.automata._history import Expansion, expand
from linearcore.structures.automata._lexicon import lexicon_arcs
from linearcore.structures.automata._sweep import Plan, make_plan
from linearcore.structures.automata._topology import Graph

#: Label of epsilon arcs, which have no label, as OpenFst's epsilon.
NO_LABEL = -1
#: Fills the arcs and labels of a path after its end, as the tags of a padded batch.
PADDING = -100


# Equality is identity, since comparing tensors gives a tensor and not a boolean.
@dataclass(frozen=True, eq=False)
class Automaton:
    """Acyclic automaton: an output is a path from the start state to a final state.

    `linearcore.structured.PathDistribution` sums over, searches and samples the paths, given a score for every arc. Two
    paths with the same labels are two outputs. `from_arcs`, `from_chain`, `from_lexicon` and `read_att` build automata.

    Args:
        source, target: (A,) int64, the states that each arc connects; nonnegative, need not be consecutive.
        label: (A,) int64 from 0, or −1 for an epsilon arc, which has no label.
        final: (F,) int64, the states in which a path may end.
        start: the state in which every path begins.
        arc_scores: (A,) float64, fixed scores, such as those of a file; None if there are none. Scores that are trained are
            separate tensors.
        symbols: names of labels; may be empty.

    Raises:
        TypeError: if a tensor is not int64.
        ValueError: if shapes or numbers are invalid, there is a cycle, a state is on no path, or there is no path at all.

    Example:
        >>> automaton = Automaton.from_arcs([(0, 1, 7), (0, 1, 8), (1, 2, 9)], final=[1, 2])
        >>> automaton.count, automaton.max_length
        (4, 2)
        >>> automaton.labels(torch.tensor([1, 2]))
        tensor([8, 9])

    Time O(A log A) at construction; the tensors stay on the CPU.
    """

    source: Tensor
    target: Tensor
    label: Tensor
    final: Tensor
    start: int = 0
    arc_scores: Tensor | None = None
    symbols: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("source", "target", "label", "final"):
            tensor = getattr(self, name)
            if not isinstance(tensor, Tensor) or tensor.dtype != torch.int64:
                got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
                raise TypeError(complaint(name, "be an int64 tensor", got, "Automaton.from_arcs builds it from a list"))
            minimum = NO_LABEL if name == "label" else 0
            if tensor.numel() and int(tensor.min()) < minimum:
                raise ValueError(complaint(name, f"be at least {minimum}", int(tensor.min()), "number from 0"))
        for name in ("target", "label", "arc_scores"):
            if getattr(self, name) is not None:
                shape(name, getattr(self, name), tuple(self.source.shape), "pass one entry for every arc")
        fault = self._graph.fault()
        if fault is not None:
            raise ValueError(complaint("arcs", "form a trim acyclic automaton", fault.wrong, fault.advice))

    @classmethod
    def from_arcs(
        cls, arcs: Iterable[tuple[int, int, int]], final: Iterable[int], *, start: int = 0, trim: bool = False
    ) -> "Automaton":
        """Builds an automaton, such as a lattice, from arcs (source, target, label). Arcs keep their order.

        If a triple occurs twice, there are two arcs and therefore two paths.

        Args:
            arcs: the arcs; states are numbers from 0, labels are numbers from 0, or −1 for an epsilon arc.
            final: the states in which a path may end.
            start: the state in which every path begins.
            trim: remove states that are on no path, with their arcs, instead of refusing them.

        Raises:
            TypeError: if an arc is not a triple of integers.
            ValueError: as for `Automaton`.

        Example:
            >>> Automaton.from_arcs([(0, 1, 5), (1, 2, 6), (1, 3, 7)], final=[2], trim=True).label
            tensor([5, 6])
        """
        rows = list(arcs)
        table = _integer_table("arcs", rows, 3, "write (source, target, label)")
        ends = _integer_table("final", [(state,) for state in final], 1, "list the final states")[:, 0]
        source, target, label = table.unbind(1)
        if trim:
            kept, kept_ends = useful_arcs(source, target, start, ends)
            source, target, label, ends = source[kept], target[kept], label[kept], ends[kept_ends]
        return cls(source.contiguous(), target.contiguous(), label.contiguous(), ends.contiguous(), start)

    @classmethod
    def from_chain(cls, length: int, num_tags: int, constraints: Constraints | None = None) -> "Automaton":
        """Builds all tag sequences of one length: state 1 + j·|Y| + v is tag v at position j, and labels are tags.

        `chain_arc_scores` computes the arcs' scores from emissions and transitions.

        Args:
            length: L ≥ 1.
            num_tags: |Y| ≥ 1.
            constraints: allowed first tags, transitions and last tags; None for all.

        Raises:
            TypeError: if a number is not an integer.
            ValueError: if a number is too small, or no sequence satisfies the constraints.

        Example:
            >>> Automaton.from_chain(3, 4, Constraints.forbid(4, pairs=[(0, 0)])).count
            57

        Without constraints A = |Y| + (L − 1)·|Y|².
        """
        source, target, label, final = chain_arcs(length, num_tags, constraints)
        return cls(source, target, label, final)

    @classmethod
    def from_lexicon(cls, words: Iterable[Sequence[Hashable]]) -> "Automaton":
        """Builds the smallest deterministic automaton of a finite set of words. Each word is one path.

        Args:
            words: strings, or sequences of symbols. Symbols are numbered in order of appearance; `symbols` has their names.
                Repeated words count once.

        Raises:
            ValueError: if there are no words.

        Example:
            >>> lexicon = Automaton.from_lexicon(["walk", "walks", "talk", "talks"])
            >>> lexicon.count, lexicon.num_arcs
            (4, 6)

        Time O(total length of the words).
        """
        arcs, final, symbols = lexicon_arcs(words)
        source, target, label = torch.tensor(arcs, dtype=torch.int64).reshape(-1, 3).t().contiguous().unbind()
        return cls(source, target, label, torch.tensor(final), symbols=symbols)

    @property
    def num_arcs(self) -> int:
        """A."""
        return len(self.source)

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self._graph.names)

    @property
    def max_length(self) -> int:
        """M, the number of arcs of the longest path."""
        return self._plan.max_length

    @cached_property
    def count(self) -> int:
        """The exact number of paths, as a Python integer of any size."""
        sweep = self._plan.forward
        neighbour = sweep.neighbour.numpy()
        counts = np.zeros(sweep.num_rows, dtype=object)
        counts[0] = 1
        for low, high, first, last, width in sweep.steps:
            counts[low:high] = counts[neighbour[first:last]].reshape(-1, width).sum(1)
        return int(counts[-2])

    @property
    def log_count(self) -> float:
        """The natural logarithm of `count`."""
        return math.log(self.count)

    def plan(self, device: torch.device) -> Plan:
        """Returns the order in which kernels visit the arcs, on a device; computed once per device."""
        plans: dict[torch.device, Plan] = self.__dict__.setdefault("_plans", {})
        if device not in plans:
            plans[device] = self._plan.to(device)
        return plans[device]

    def labels(self, arcs: Tensor) -> Tensor:
        """Returns the labels (…, M) of paths (…, M) of arcs, without epsilon arcs, and −100 after the end."""
        label = self.label.to(arcs.device)
        is_arc = arcs != PADDING
        if not self.num_arcs:
            return arcs
        labels = torch.where(is_arc, label[arcs.masked_fill(~is_arc, 0)], PADDING)
        silent = labels == NO_LABEL
        # A stable sort moves the labels to the front and keeps their order.
        order = (silent | ~is_arc).to(torch.uint8).sort(dim=-1, stable=True).indices
        return labels.masked_fill(silent, PADDING).gather(-1, order)

    def arcs_of(self, sequences: Iterable[Sequence[int]]) -> Tensor:
        """Returns the arcs (B, M) of the paths with these labels, −100 after the end; the inverse of `labels`.

        Args:
            sequences: B sequences of labels.

        Raises:
            ValueError: if a sequence has no path, or the automaton is not deterministic: two arcs of a state have the same
                label, or an arc is an epsilon arc.

        Time O(B·M) after the first call.
        """
        rows = [self._arcs_of(number, [int(label) for label in labels]) for number, labels in enumerate(sequences)]
        padded = [row + [PADDING] * (self.max_length - len(row)) for row in rows]
        return torch.tensor(padded, dtype=torch.int64).reshape(len(rows), self.max_length)

    def _arcs_of(self, number: int, labels: list[int]) -> list[int]:
        state, arcs = self.start, []
        for label in labels:
            arc, state = self._arc_by_label.get((state, label), (-1, -1))
            arcs.append(arc)
        if state not in self._final_states:
            must = "be outputs of the automaton"
            raise ValueError(complaint("sequences", must, f"no path for number {number}, {labels}", "check the labels"))
        return arcs

    def with_history(self, n: int) -> Expansion:
        """Expands the states by the last n − 1 labels, for scores that depend on n-grams of labels.

        Each new state stands for an old state and the last n − 1 labels; only those that occur are built. A path of the
        result is a path of this automaton, and the other way round.

        Args:
            n: length of the n-grams, at least 1.

        Returns:
            `automaton`, the expanded one; `arc` (A',), for each new arc the index of the old one; `ngram`
            (A', n), the n-gram that ends with the arc, −1 before the start, and −1 everywhere for an epsilon arc.

        Raises:
            TypeError: if `n` is not an integer.
            ValueError: if `n` is below 1.

        Example:
            >>> bigrams = Automaton.from_chain(3, 2).with_history(2)
            >>> table = torch.tensor([[0.0, 1.0], [2.0, 3.0]])  # A score for each pair of labels.
            >>> scores = torch.where(bigrams.ngram[:, 0] >= 0, table[bigrams.ngram[:, 0], bigrams.ngram[:, 1]], 0.0)
            >>> scores[bigrams.automaton.arcs_of([[1, 1, 0]])].sum()
            tensor(5.)

        Time and memory O(A'·n).
        """
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(complaint("n", "be an integer", repr(n), "pass the length of the n-grams"))
        if n < 1:
            raise ValueError(complaint("n", "be at least 1", n, "pass the length of the n-grams"))
        source, target, arc, ngram, final = map(torch.from_numpy, expand(self._graph, self.label.numpy(), n))
        scores = None if self.arc_scores is None else self.arc_scores[arc]
        return Expansion(Automaton(source, target, self.label[arc], final, 0, scores, self.symbols), arc, ngram)

    @cached_property
    def _graph(self) -> Graph:
        return Graph.of(self.source.numpy(), self.target.numpy(), self.start, self.final.numpy())

    @cached_property
    def _plan(self) -> Plan:
        return make_plan(self._graph)

    @cached_property
    def _final_states(self) -> frozenset[int]:
        return frozenset(self.final.tolist())

    @cached_property
    def _arc_by_label(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Arc and target for a state and a label."""
        ends = zip(self.source.tolist(), self.label.tolist(), self.target.tolist(), strict=True)
        found = {(source, label): (arc, target) for arc, (source, label, target) in enumerate(ends)}
        if len(found) < self.num_arcs or bool((self.label == NO_LABEL).any()):
            got = "two arcs of a state with the same label, or an arc without a label"
            advice = "determinise it, or keep the arcs of each output"
            raise ValueError(complaint("automaton", "be deterministic", got, advice))
        return found


def useful_arcs(source: Tensor, target: Tensor, start: int, final: Tensor) -> tuple[Tensor, Tensor]:
    """Returns booleans (A,) and (F,): the arcs, and the final states, that are on a path from the start to a final state."""
    graph = Graph.of(source.numpy(), target.numpy(), start, final.numpy())
    reachable, ends = graph.is_useful()
    useful = reachable & ends
    is_kept_final = useful[np.searchsorted(graph.names, final.numpy())]
    return torch.from_numpy(useful[graph.source] & useful[graph.target]), torch.from_numpy(is_kept_final)


def _integer_table(name: str, rows: Sequence[object], width: int, advice: str) -> Tensor:
    try:
        table = torch.tensor(rows, dtype=torch.int64).reshape(len(rows), width)
        is_exact = not rows or bool((torch.tensor(rows, dtype=torch.float64).reshape(len(rows), width) == table).all())
    except (TypeError, ValueError, RuntimeError):
        is_exact = False
    if not is_exact:
        raise TypeError(complaint(name, "hold integers", "something else", advice))
    return table
