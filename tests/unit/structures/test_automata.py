"""Automata against enumeration: builders, counts, labels, histories, and what they refuse."""

import copy
import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore.structures import Automaton, Chain, Constraints, chain_arc_scores
from tests.automata import automata, every_path, padded


def outputs(automaton: Automaton) -> list[tuple[int, ...]]:
    """The labels of all paths, without arcs that write nothing."""
    label = automaton.label.tolist()
    return [tuple(label[arc] for arc in path if label[arc] >= 0) for path in every_path(automaton)]


@settings(max_examples=60)
@given(automata())
def test_count_length_and_labels_are_those_of_all_paths(automaton: Automaton) -> None:
    paths = every_path(automaton)
    assert automaton.count == len(paths) and math.isclose(automaton.log_count, math.log(len(paths)))
    assert automaton.max_length == max(map(len, paths))
    found = automaton.labels(padded(automaton, paths))
    assert [tuple(label for label in row if label >= 0) for row in found.tolist()] == outputs(automaton)
    assert all(row == sorted(row, key=lambda label: label < 0) for row in found.tolist())  # −100 only at the end.
    assert not bool((found == -1).any())


@settings(max_examples=60)
@given(automata(), st.integers(1, 4))
def test_paths_with_history_are_the_same_paths(automaton: Automaton, n: int) -> None:
    expanded, arc, ngram = automaton.with_history(n)
    assert ngram.shape == (expanded.num_arcs, n)
    assert torch.equal(expanded.label, automaton.label[arc])
    found = every_path(expanded)
    assert sorted([int(arc[copied]) for copied in path] for path in found) == sorted(every_path(automaton))
    for path in found:
        written: list[int] = [-1] * (n - 1)
        for copied in path:
            label = int(expanded.label[copied])
            if label >= 0:
                written.append(label)
            expected = [-1] * n if label < 0 else written[-n:]
            assert ngram[copied].tolist() == expected


@settings(max_examples=40)
@given(automata())
def test_histories_that_no_path_has_are_not_built(automaton: Automaton) -> None:
    # Each pair of a state and its last two labels is one state.
    expanded = automaton.with_history(3).automaton
    label, target = automaton.label.tolist(), automaton.target.tolist()
    pairs = set()
    for path in every_path(automaton):
        state, past = automaton.start, (-1, -1)
        pairs.add((state, past))
        for arc in path:
            state, past = target[arc], past if label[arc] < 0 else (past[1], label[arc])
            pairs.add((state, past))
    assert expanded.num_states == len(pairs)


def test_history_keeps_scores_and_symbols() -> None:
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    ends = [torch.tensor(part) for part in ([0, 0, 1], [1, 1, 2], [0, 1, 0], [2])]
    expanded = Automaton(*ends, arc_scores=scores, symbols={0: "a", 1: "b"}).with_history(2).automaton
    assert sorted(expanded.arc_scores.tolist()) == [1, 2, 3, 3] and expanded.symbols == {0: "a", 1: "b"}


@pytest.mark.parametrize("is_constrained", [False, True])
def test_a_chain_has_all_sequences(is_constrained: bool) -> None:
    constraints = Constraints.forbid(3, pairs=[(0, 0), (1, 2)], start=[2], end=[0]) if is_constrained else None
    automaton = Automaton.from_chain(4, 3, constraints)
    expected = [
        tags
        for tags in itertools.product(range(3), repeat=4)
        if constraints is None or (tags[0] != 2 and tags[-1] != 0 and not {(0, 0), (1, 2)} & set(itertools.pairwise(tags)))
    ]
    assert sorted(outputs(automaton)) == expected
    if constraints is None:
        assert automaton.num_arcs == 3 + 3 * 9


@settings(max_examples=60)
@given(st.sets(st.text("abc", max_size=5), min_size=1, max_size=12))
def test_a_lexicon_has_each_word_once_and_no_two_states_with_the_same_suffixes(words: set[str]) -> None:
    lexicon = Automaton.from_lexicon([*words, *words])
    assert lexicon.start == 0
    assert sorted("".join(lexicon.symbols[label] for label in row) for row in outputs(lexicon)) == sorted(words)
    suffixes = {frozenset(word[len(start) :] for word in words if word.startswith(start))
                for word in words for start in itertools.accumulate(word, initial="")}  # fmt: skip
    assert lexicon.num_states == len(suffixes)
    indices = {name: label for label, name in lexicon.symbols.items()}
    ordered = sorted(words)
    arcs = lexicon.arcs_of([[indices[letter] for letter in word] for word in ordered])
    texts = ["".join(lexicon.symbols[label] for label in row if label >= 0) for row in lexicon.labels(arcs).tolist()]
    assert texts == ordered


def test_words_may_be_sequences_of_any_symbols_and_long() -> None:
    lexicon = Automaton.from_lexicon([("New", "York"), ("New", "Delhi"), ["x"] * 3000])
    assert lexicon.symbols == {0: "New", 1: "York", 2: "Delhi", 3: "x"} and lexicon.max_length == 3000


def test_counts_are_exact_beyond_floats() -> None:
    assert Automaton.from_chain(60, 10).count == 10**60


def test_padding_is_at_most_as_large_as_the_automaton() -> None:
    # One state with 500 arcs beside 500 states with one.
    star = [(0, 1, label) for label in range(500)]
    comb = [arc for state in range(2, 502) for arc in ((0, state, 0), (state, 502, 0))]
    plan = Automaton.from_arcs([*star, (1, 502, 0), *comb], final=[502]).plan(torch.device("cpu"))
    assert all(len(sweep.arc) <= 2 * (len(star) + len(comb) + 2) for sweep in (plan.forward, plan.backward))


def test_a_copy_works() -> None:
    automaton = Automaton.from_chain(2, 2)
    assert automaton.count == 4
    assert copy.deepcopy(automaton).count == 4 and copy.deepcopy(automaton) != automaton


def test_trim_keeps_the_order_of_arcs() -> None:
    arcs = [(4, 9, 1), (9, 2, 2), (9, 7, 3), (5, 2, 4), (4, 2, 5)]
    automaton = Automaton.from_arcs(arcs, final=[2, 8], start=4, trim=True)
    assert automaton.label.tolist() == [1, 2, 5] and automaton.final.tolist() == [2]


def chain_scores_of(automaton: Automaton, length: int, num_tags: int) -> torch.Tensor:
    chain = Chain(torch.zeros(num_tags), torch.zeros(num_tags, num_tags), torch.zeros(num_tags))
    return chain_arc_scores(automaton, torch.zeros(length, 1, num_tags), chain)


I64 = torch.int64
ONE = torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), torch.tensor([1])
TWICE = Automaton.from_arcs([(0, 1, 5), (0, 1, 5)], final=[1])
#: name: (error, message, call)
ERRORS = {
    "cycle": (ValueError, "`arcs` must form a trim acyclic automaton, got a cycle through state [12];",
              lambda: Automaton.from_arcs([(0, 1, 0), (1, 2, 0), (2, 1, 0), (2, 3, 0)], final=[3])),
    "cycle at the start": (ValueError, "got a cycle through state [01];",
                           lambda: Automaton.from_arcs([(0, 1, 0), (1, 0, 0)], final=[1])),
    "loop": (ValueError, "got a cycle through state 0;", lambda: Automaton.from_arcs([(0, 0, 0)], final=[0])),
    "unreachable": (ValueError, "got no path from the start leads to state 5; remove it, or pass trim=True",
                    lambda: Automaton.from_arcs([(0, 1, 0), (5, 1, 0)], final=[1])),
    "unreachable final": (ValueError, "got no path from the start leads to state 7;",
                          lambda: Automaton.from_arcs([(0, 1, 0)], final=[1, 7])),
    "dead end": (ValueError, "got no final state follows state 2; remove it, or pass trim=True",
                 lambda: Automaton.from_arcs([(0, 1, 0), (0, 2, 0)], final=[1])),
    "no final state": (ValueError, "got no path from start state 0 to a final state;",
                       lambda: Automaton.from_arcs([(0, 1, 0)], final=[])),
    "empty language": (ValueError, "got no path from start state 0 to a final state;",
                       lambda: Automaton.from_arcs([(0, 1, 0), (2, 3, 0)], final=[3], trim=True)),
    "pairs": (TypeError, r"`arcs` must hold integers, got .*; write \(source, target, label\)",
              lambda: Automaton.from_arcs([(0, 1)], final=[1])),
    "fractions": (TypeError, "`arcs` must hold integers", lambda: Automaton.from_arcs([(0, 1, 0.5)], final=[1])),
    "names": (TypeError, "`arcs` must hold integers", lambda: Automaton.from_arcs([(0, 1, "a")], final=[1])),
    "final states": (TypeError, "`final` must hold integers", lambda: Automaton.from_arcs([(0, 1, 0)], final=["b"])),
    "negative state": (ValueError, "`source` must be at least 0, got -3;",
                       lambda: Automaton.from_arcs([(-3, 1, 0)], final=[1], start=-3)),
    "negative label": (ValueError, "`label` must be at least -1, got -2;",
                       lambda: Automaton.from_arcs([(0, 1, -2)], final=[1])),
    "list": (TypeError, "`source` must be an int64 tensor, got list;", lambda: Automaton([0], *ONE[1:])),
    "float tensor": (TypeError, "`label` must be an int64 tensor, got torch.float32;",
                     lambda: Automaton(*ONE[:2], torch.zeros(1), ONE[3])),
    "lengths": (ValueError, r"`label` must have shape \(1,\), got \(2,\);",
                lambda: Automaton(*ONE[:2], torch.zeros(2, dtype=I64), ONE[3])),
    "scores": (ValueError, r"`arc_scores` must have shape \(1,\), got \(2,\);",
               lambda: Automaton(*ONE, arc_scores=torch.zeros(2))),
    "length of a chain": (ValueError, "`length` must be at least 1, got 0;", lambda: Automaton.from_chain(0, 2)),
    "tags of a chain": (TypeError, "`num_tags` must be an integer, got 2.0;", lambda: Automaton.from_chain(2, 2.0)),
    "other constraints": (ValueError, "`constraints` must have 3 tags, got 2;",
                          lambda: Automaton.from_chain(2, 3, Constraints.forbid(2))),
    "strict constraints": (ValueError, "`constraints` must allow a sequence of length 2, got none;",
                           lambda: Automaton.from_chain(2, 1, Constraints.forbid(1, pairs=[(0, 0)]))),
    "another chain": (ValueError, r"`automaton` must be the chain of the emissions, got .* \(3, 1, 2\);",
                      lambda: chain_scores_of(Automaton.from_chain(2, 2), 3, 2)),
    "fewer tags": (ValueError, "`automaton` must be the chain of the emissions",
                   lambda: chain_scores_of(Automaton.from_chain(2, 3), 2, 2)),
    "no words": (ValueError, "`words` must hold at least one word, got none;", lambda: Automaton.from_lexicon([])),
    "unknown output": (ValueError, r"`sequences` must be outputs of the automaton, got no path for number 1, \[0, 2\];",
                       lambda: Automaton.from_chain(2, 2).arcs_of([[0, 0], [0, 2]])),
    "prefix": (ValueError, r"got no path for number 0, \[0\];", lambda: Automaton.from_chain(2, 2).arcs_of([[0]])),
    "ambiguous": (ValueError, "`automaton` must be deterministic, got two arcs", lambda: TWICE.arcs_of([[5]])),
    "history": (ValueError, "`n` must be at least 1, got 0;", lambda: TWICE.with_history(0)),
    "history is no integer": (TypeError, "`n` must be an integer, got 2.0;", lambda: TWICE.with_history(2.0)),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_argument(case: str) -> None:
    kind, message, call = ERRORS[case]
    with pytest.raises(kind, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_equal_arcs_are_different_paths() -> None:
    assert TWICE.count == 2
