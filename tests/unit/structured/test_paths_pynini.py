"""The distribution over paths against OpenFst, through pynini, on automata too large for enumeration."""

import math
import random
from pathlib import Path

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from linearcore.structured import PathDistribution
from linearcore.structures import Automaton, ngram_kernel, read_att, write_att

pynini = pytest.importorskip("pynini")
pywrapfst = pytest.importorskip("pywrapfst")


def lattice(num_states: int = 300, num_arcs: int = 2500, num_labels: int = 6) -> tuple[Automaton, Tensor]:
    """A random lattice with skipped levels and parallel arcs, and scores for it."""
    stream = random.Random(0)
    arcs = [(state, state + 1, 0) for state in range(num_states - 1)]
    while len(arcs) < num_arcs:
        source = stream.randrange(num_states - 1)
        arcs.append((source, min(source + stream.randint(1, 40), num_states - 1), stream.randint(-1, num_labels - 1)))
    stream.shuffle(arcs)
    automaton = Automaton.from_arcs(arcs, final=[num_states - 1, num_states // 2])
    return automaton, torch.randn(num_arcs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def openfst(automaton: Automaton, scores: Tensor, arc_type: str) -> "pynini.Fst":
    """The same automaton in OpenFst, with labels that begin with 1, and costs."""
    fst = pynini.Fst(arc_type=arc_type)
    fst.add_states(int(torch.cat([automaton.source, automaton.target, automaton.final]).max()) + 1)
    fst.set_start(automaton.start)
    for state in automaton.final.tolist():
        fst.set_final(state)
    columns = (part.tolist() for part in (automaton.source, automaton.target, automaton.label, scores))
    for source, target, label, score in zip(*columns, strict=True):
        fst.add_arc(source, pynini.Arc(label + 1, label + 1, pynini.Weight(fst.weight_type(), -score), target))
    return fst


def log_partition(fst: "pynini.Fst") -> float:
    return -float(pynini.shortestdistance(fst, reverse=True)[fst.start()])


def sum_and_counts(automaton: Automaton, scores: Tensor) -> tuple[float, Tensor]:
    """OpenFst's log Z and expected counts of the arcs."""
    fst = openfst(automaton, scores, "log64")
    before, after = ([-float(cost) for cost in pynini.shortestdistance(fst, reverse=way)] for way in (False, True))
    log_z = after[automaton.start]
    columns = zip(automaton.source.tolist(), automaton.target.tolist(), scores.tolist(), strict=True)
    counts = [math.exp(before[source] + score + after[target] - log_z) for source, target, score in columns]
    return log_z, torch.tensor(counts)


def test_sum_count_and_expected_counts() -> None:
    automaton, scores = lattice()
    log_z, expected = sum_and_counts(automaton, scores)
    paths = PathDistribution(automaton, scores)
    assert math.isclose(float(paths.logsumexp()), log_z, rel_tol=1e-8)
    torch.testing.assert_close(paths.expected_arc_counts().float(), expected, rtol=1e-5, atol=1e-7)
    assert math.isclose(
        automaton.log_count, log_partition(openfst(automaton, torch.zeros_like(scores), "log64")), rel_tol=1e-8
    )


@pytest.mark.parametrize("temperature", (1.0, math.inf))
def test_samples_have_the_expected_counts(temperature: float) -> None:
    automaton, scores = lattice()
    scores, num_samples = scores / temperature, 20_000
    _, expected = sum_and_counts(automaton, scores)
    paths = PathDistribution(automaton, scores)
    arcs = paths.sample(num_samples, torch.Generator().manual_seed(0))
    found = torch.bincount(arcs[arcs >= 0], minlength=automaton.num_arcs) / num_samples
    is_frequent = (expected * num_samples > 100) & (expected < 0.99)
    error = (found - expected)[is_frequent] / (expected * (1 - expected) / num_samples)[is_frequent].sqrt()
    assert len(error) > 20 and error.abs().max() < norm.ppf(1 - 1e-4 / 2 / len(error))


def test_best_paths() -> None:
    automaton, scores = lattice()
    fst = openfst(automaton, scores, "standard")
    found = PathDistribution(automaton, scores).nbest(20)
    best = pynini.shortestpath(fst, nshortest=20)
    weights = sorted(-float(weight) for _, _, weight in best.paths().items())[::-1]
    torch.testing.assert_close(found.score.float(), torch.tensor(weights), rtol=1e-5, atol=1e-4)
    paths = pynini.shortestpath(fst).paths()
    labels = [label - 1 for label in paths.ilabels() if label > 0]
    assert automaton.labels(found.arcs[0])[: len(labels)].tolist() == labels
    assert torch.equal(PathDistribution(automaton, scores).shortest_path().arcs, found.arcs[0])


def test_a_history_is_a_composition_with_a_bigram_automaton() -> None:
    automaton, scores = lattice(num_states=60, num_arcs=400)
    automaton = Automaton(automaton.source, automaton.target, automaton.label.clamp(min=0), automaton.final)
    generator = torch.Generator().manual_seed(1)
    first, table = (torch.randn(size, dtype=torch.float64, generator=generator) for size in ((6,), (6, 6)))
    model = pynini.Fst(arc_type="log64")
    model.add_states(7)  # State 0 is the start; state 1 + label knows the last label.
    model.set_start(0)
    for state in range(7):
        model.set_final(state)
        for label in range(6):
            score = float(first[label] if state == 0 else table[state - 1, label])
            model.add_arc(state, pynini.Arc(label + 1, label + 1, pynini.Weight("log64", -score), label + 1))
    product = pynini.compose(openfst(automaton, scores, "log64").arcsort("olabel"), model)
    expanded = automaton.with_history(2)
    before, label = expanded.ngram.unbind(-1)
    added = torch.where(before < 0, first[label], table[before, label])
    found = PathDistribution(expanded.automaton, scores[expanded.arc] + added)
    assert math.isclose(float(found.logsumexp()), log_partition(product), rel_tol=1e-8)
    assert (expanded.automaton.num_states, expanded.automaton.num_arcs) == (
        product.num_states(),
        sum(product.num_arcs(state) for state in product.states()),
    )


@pytest.mark.parametrize("n", (1, 2, 4))
def test_the_count_kernel_is_a_rational_kernel(n: int) -> None:
    """OpenFst: the number of paths of y' ∘ T ∘ T⁻¹ ∘ y, where T maps a sequence to each of its n-grams."""
    num_tags, length = 4, 60
    sequences = torch.randint(num_tags, (2, length), generator=torch.Generator().manual_seed(n))
    scores = torch.zeros(length, dtype=torch.float64)
    lines = [openfst(Automaton.from_arcs([(j, j + 1, tag) for j, tag in enumerate(tags)], final=[length]), scores, "log64")
             for tags in sequences.tolist()]  # fmt: skip
    counts = pynini.Fst(arc_type="log64")
    counts.add_states(n + 1)
    counts.set_start(0)
    counts.set_final(n)
    one = pynini.Weight("log64", 0)
    for tag in range(1, num_tags + 1):
        for state in (0, n):
            counts.add_arc(state, pynini.Arc(tag, 0, one, state))
        for state in range(n):
            counts.add_arc(state, pynini.Arc(tag, tag, one, state + 1))
    left, right = (pynini.compose(line, counts).project("output").rmepsilon().arcsort("olabel") for line in lines)
    expected = math.exp(log_partition(pynini.compose(left, right)))
    assert math.isclose(float(ngram_kernel(*sequences, n=n)), expected, rel_tol=1e-8) and expected > 0


def test_a_lexicon_is_the_minimal_automaton() -> None:
    stream = random.Random(0)
    words = sorted({"".join(stream.choices("abcde", k=stream.randint(1, 9))) for _ in range(1500)})
    lexicon, fst = Automaton.from_lexicon(words), pynini.union(*words).rmepsilon()
    fst = pynini.determinize(fst).minimize()
    assert lexicon.count == len(words)
    assert lexicon.num_states == fst.num_states()
    assert lexicon.num_arcs == sum(fst.num_arcs(state) for state in fst.states())


@pytest.mark.parametrize("is_acceptor", [False, True])
def test_files_of_openfst_are_read(tmp_path: Path, is_acceptor: bool) -> None:
    automaton, scores = lattice()
    fst = openfst(automaton, scores.mul(8).round().div(8), "log64")  # Costs that its six digits hold.
    for state in automaton.final.tolist():
        fst.set_final(state, pynini.Weight("log64", 0.25))
    (tmp_path / "a.fst").write_text(fst.print(acceptor=is_acceptor), encoding="utf-8")
    found = read_att(tmp_path / "a.fst", offset=1)
    assert found.num_arcs == automaton.num_arcs + 2
    assert math.isclose(float(PathDistribution(found, found.arc_scores).logsumexp()), log_partition(fst), rel_tol=1e-8)


def test_openfst_reads_what_is_written(tmp_path: Path) -> None:
    automaton, scores = lattice()
    write_att(automaton, tmp_path / "a.fst", scores, offset=1)
    compiler = pywrapfst.Compiler(arc_type="log64", acceptor=True)
    print((tmp_path / "a.fst").read_text("utf-8"), file=compiler)
    expected = float(PathDistribution(automaton, scores).logsumexp())
    assert math.isclose(log_partition(pynini.Fst.from_pywrapfst(compiler.compile())), expected, rel_tol=1e-8)
