"""The distribution over paths against enumeration of all paths."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import linearcore as lc
from linearcore.kernels import log_partition, path_logsumexp
from linearcore.structured import PathDistribution
from linearcore.structures import Automaton, Constraints, chain_arc_scores
from tests.automata import Case, cases, every_path, every_score, padded

DIAMOND = Automaton.from_arcs([(0, 1, 0), (0, 2, 1), (1, 3, 2), (2, 3, 3), (0, 3, 4)], final=[3])
STAIRS = Automaton.from_arcs([(0, 1, 0), (1, 2, 0)], final=[1, 2])


@settings(max_examples=40)
@given(cases())
def test_sums_and_scores_are_those_of_all_paths(case: Case) -> None:
    paths, scores = PathDistribution(*case), every_score(case)
    arcs = padded(case.automaton, every_path(case.automaton)).unsqueeze(1).expand(-1, len(case.scores), -1)
    torch.testing.assert_close(paths.path_score(arcs), scores)
    torch.testing.assert_close(paths.logsumexp(), scores.logsumexp(0))
    reference = path_logsumexp(case.scores, case.automaton.plan(case.scores.device), "reference")
    torch.testing.assert_close(reference, scores.logsumexp(0))
    torch.testing.assert_close(paths.log_prob(arcs), scores - scores.logsumexp(0), equal_nan=True)


@settings(max_examples=40)
@given(cases())
def test_the_shortest_path_is_the_first_of_all_paths(case: Case) -> None:
    found, scores = PathDistribution(*case).shortest_path(), every_score(case)
    torch.testing.assert_close(found.score, scores.amax(0))
    expected = every_path(case.automaton)
    for arcs, score in zip(found.arcs, found.score, strict=True):
        assert arcs.shape == (case.automaton.max_length,)
        path = arcs[arcs != -100]
        assert (score == -math.inf and not len(path)) or path.tolist() in expected
        assert bool((arcs[len(path) :] == -100).all())
    alive = found.score > -math.inf
    paths = PathDistribution(case.automaton, case.scores[alive])
    torch.testing.assert_close(paths.path_score(found.arcs[alive]), found.score[alive])


@settings(max_examples=40)
@given(cases(), st.integers(1, 7))
def test_the_n_best_are_the_first_of_all_paths(case: Case, k: int) -> None:
    found, scores = PathDistribution(*case).nbest(k), every_score(case)
    expected = torch.full((k, len(case.scores)), -math.inf, dtype=torch.float64)
    best = scores.sort(0, descending=True).values[:k]
    expected[: len(best)] = best
    torch.testing.assert_close(found.score, expected)
    every = every_path(case.automaton)
    for row in range(len(case.scores)):
        drawn = [tuple(arcs[arcs != -100].tolist()) for arcs in found.arcs[:, row]]
        alive = [path for path, score in zip(drawn, found.score[:, row], strict=True) if score > -math.inf]
        assert len(set(alive)) == len(alive) and all(list(path) in every for path in alive)
        for path, score in zip(alive, found.score[:, row].tolist(), strict=False):
            assert math.isclose(math.fsum(case.scores[row, list(path)].tolist()), score, rel_tol=1e-9, abs_tol=1e-9)
        assert all(not path for path in drawn[len(alive) :])


@settings(max_examples=30)
@given(cases())
def test_expected_counts_are_the_probabilities_of_arcs_and_the_gradient(case: Case) -> None:
    automaton, scores = case
    leaf = scores.clone().requires_grad_()
    log_z = PathDistribution(automaton, leaf).logsumexp()
    (gradient,) = torch.autograd.grad((log_z * torch.arange(1, len(scores) + 1)).sum(), leaf)
    expected = torch.zeros_like(scores)
    probability = (every_score(case) - log_z.detach()).exp().nan_to_num(0.0)
    for path, weight in zip(every_path(automaton), probability, strict=True):
        expected[:, path] += weight.unsqueeze(-1)
    counts = PathDistribution(automaton, scores).expected_arc_counts()
    torch.testing.assert_close(counts, expected)
    torch.testing.assert_close(gradient, counts * torch.arange(1, len(scores) + 1).unsqueeze(-1))
    # The differentiable ones go through the reference.
    torch.testing.assert_close(PathDistribution(automaton, leaf).expected_arc_counts().detach(), expected)


@settings(max_examples=6)
@given(cases(has_infinite=False).filter(lambda case: case.automaton.num_arcs * len(case.scores) > 0))
def test_gradients_of_gradients(case: Case) -> None:
    leaf = (case.scores / case.scores.abs().max()).requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: PathDistribution(case.automaton, scores).logsumexp(), leaf)
    assert torch.autograd.gradgradcheck(lambda scores: PathDistribution(case.automaton, scores).logsumexp(), leaf)
    assert torch.autograd.gradcheck(lambda scores: PathDistribution(case.automaton, scores).expected_arc_counts(), leaf)


def test_path_scores_have_gradients() -> None:
    scores = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    arcs = torch.tensor([[[0, 2], [4, -100]], [[1, 3], [1, 3]]])
    assert torch.autograd.gradcheck(lambda leaf: PathDistribution(DIAMOND, leaf).path_score(arcs), scores)
    assert torch.autograd.gradcheck(lambda leaf: PathDistribution(DIAMOND, leaf).log_prob(arcs), scores)


@pytest.mark.parametrize("method", ("sample", "nbest", "logsumexp", "shortest_path", "expected_arc_counts"))
def test_calls_without_gradients_leave_the_gradient_as_it_is(method: str) -> None:
    automaton = Automaton.from_arcs([(0, 1, 7), (0, 1, 8), (1, 2, 9)], final=[2])
    scores = torch.tensor([0.0, 2.0, 1.0], requires_grad=True)
    paths, arcs = PathDistribution(automaton, scores), automaton.arcs_of([[7, 9]])[0]
    with torch.no_grad():
        getattr(paths, method)(*([2] if method in ("sample", "nbest") else []))
    other = 1 / (1 + math.exp(-2))
    for steps in (1, 2):  # Each call has a graph of its own.
        (-paths.log_prob(arcs)).backward()
        torch.testing.assert_close(scores.grad, steps * torch.tensor([-other, other, 0.0]))
    torch.testing.assert_close(paths.expected_arc_counts().detach(), torch.tensor([1 - other, other, 1.0]))


def test_results_follow_scores_that_change_in_place() -> None:
    scores = torch.zeros(3, 2, 5).transpose(0, 1)  # One batch dimension needs a copy.
    scores[..., 4] = 3.0
    paths = PathDistribution(DIAMOND, scores)
    torch.testing.assert_close(paths.logsumexp(), torch.full((2, 3), math.log(2 + math.exp(3))))
    assert paths.shortest_path().arcs.flatten(0, 1).tolist() == [[4, -100]] * 6
    scores.zero_()
    scores[..., 0] = 1.0
    torch.testing.assert_close(paths.logsumexp(), torch.full((2, 3), math.log(2 + math.e)))
    assert paths.shortest_path().arcs.flatten(0, 1).tolist() == [[0, 2]] * 6


def test_gradients_have_no_nan_where_all_paths_are_forbidden() -> None:
    scores = torch.zeros(2, 5)
    scores[0, [0, 1, 4]] = -math.inf  # Every path of the first row.
    scores[1, 4] = -math.inf
    for backend in ("eager", "reference"):
        leaf = scores.clone().requires_grad_()
        log_z = path_logsumexp(leaf, DIAMOND.plan(scores.device), backend)
        log_z.sum().backward()
        torch.testing.assert_close(log_z.detach(), torch.tensor([-math.inf, math.log(2)]))
        torch.testing.assert_close(leaf.grad, torch.tensor([[0.0] * 5, [0.5, 0.5, 0.5, 0.5, 0.0]]))
    assert bool((PathDistribution(DIAMOND, scores).sample(3)[:, 0] == -100).all())


@settings(max_examples=5)
@given(cases().filter(lambda case: len(case.scores) > 0 and case.automaton.count < 60))
def test_samples_have_their_probabilities(case: Case) -> None:
    automaton, num_samples = case.automaton, 4000
    paths = PathDistribution(automaton, case.scores / 100)
    arcs = paths.sample(num_samples, torch.Generator().manual_seed(1))
    every = padded(automaton, every_path(automaton))
    log_probs = paths.log_prob(every.unsqueeze(1).expand(-1, len(case.scores), -1))
    for row, expected in enumerate(log_probs.t().exp()):
        drawn = (arcs[:, row].unsqueeze(1) == every).all(-1)
        if paths.logsumexp()[row] == -math.inf:
            assert bool((arcs[:, row] == -100).all())
            continue
        assert bool((drawn.sum(1) == 1).all())
        frequency = drawn.double().mean(0)
        assert bool(((frequency > 0) <= (expected > 0)).all())
        error = (expected * (1 - expected) / num_samples).sqrt()
        assert bool(((frequency - expected).abs() <= 5 * error + 2e-3).all())


def test_uniform_samples_are_uniform_and_repeatable() -> None:
    lexicon = Automaton.from_lexicon(["a", "ab", "abc", "b", "xyz", "xyzab"])
    paths = PathDistribution.uniform(lexicon)
    torch.testing.assert_close(paths.logsumexp().item(), lexicon.log_count)
    arcs = paths.sample(6000, torch.Generator().manual_seed(0))
    torch.testing.assert_close(paths.log_prob(arcs), torch.full((6000,), -math.log(6), dtype=torch.float64))
    words = ["".join(lexicon.symbols[label] for label in row if label >= 0) for row in lexicon.labels(arcs).tolist()]
    assert all(abs(words.count(word) - 1000) < 150 for word in ("a", "ab", "abc", "b", "xyz", "xyzab"))
    assert torch.equal(arcs, paths.sample(6000, torch.Generator().manual_seed(0)))


def test_a_sample_never_leaves_its_state_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    # The largest number below 1 rounds to 1 when the number of the row is added.
    chain = Automaton.from_chain(40, 3)
    monkeypatch.setattr(torch, "rand", lambda size, **how: torch.full(size, 1 - 2.0**-53, dtype=torch.float64))
    arcs = PathDistribution.uniform(chain).sample(2)
    assert PathDistribution.uniform(chain).path_score(arcs).tolist() == [0, 0]


@pytest.mark.parametrize("value", [0.0, 0.25, 1 - 2.0**-53])
def test_a_sample_never_has_a_forbidden_arc(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some states have no allowed arc at all. A number drawn as 0 must not choose an arc of probability 0.
    chain = Automaton.from_chain(12, 5)
    scores = torch.zeros(chain.num_arcs)
    scores[chain.label % 2 == 0] = -math.inf
    paths = PathDistribution(chain, scores)
    assert bool((chain.labels(paths.sample(50, torch.Generator().manual_seed(0))) % 2 == 1).all())
    monkeypatch.setattr(torch, "rand", lambda size, **how: torch.full(size, value, dtype=torch.float64))
    assert bool((chain.labels(paths.sample(1)) % 2 == 1).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (0,), (32,), (2, 3)])
def test_any_batch_and_dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    scores = torch.randn(*shape, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    paths = PathDistribution(DIAMOND, scores)
    kind = torch.float32 if dtype == torch.bfloat16 else dtype
    outputs = (paths.logsumexp(), paths.shortest_path().score, paths.expected_arc_counts(), paths.nbest(2).score)
    assert [tuple(output.shape) for output in outputs] == [shape, shape, (*shape, 5), (2, *shape)]
    assert all(output.dtype == kind for output in outputs)
    assert paths.shortest_path().arcs.shape == (*shape, 2) and paths.nbest(2).arcs.shape == (2, *shape, 2)
    samples = paths.sample(3)
    assert samples.shape == (3, *shape, 2) and paths.log_prob(samples).shape == (3, *shape)
    expected = every_score(Case(DIAMOND, scores.reshape(-1, 5).double())).logsumexp(0).view(shape)
    torch.testing.assert_close(paths.logsumexp().double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_constrained", [False, True])
def test_a_chain_is_that_of_the_head(is_constrained: bool) -> None:
    constraints = Constraints.forbid(4, pairs=[(0, 1), (2, 2)], start=[3], end=[0]) if is_constrained else None
    head = lc.ChainCRF(4, constraints=constraints).double()
    emissions = torch.randn(6, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    chain = Automaton.from_chain(6, 4, constraints)
    leaf = emissions.clone().requires_grad_()
    paths = PathDistribution(chain, chain_arc_scores(chain, leaf, head.chain(leaf)))
    expected = log_partition(emissions, head.chain(emissions), torch.ones(6, 3, dtype=torch.bool))
    torch.testing.assert_close(paths.logsumexp(), expected)
    paths.logsumexp().sum().backward()
    torch.testing.assert_close(leaf.grad, head.marginals(emissions))
    tags, scores = head.viterbi(emissions)
    torch.testing.assert_close(paths.shortest_path().score, scores)
    assert torch.equal(chain.labels(paths.shortest_path().arcs), tags.t())
    torch.testing.assert_close(paths.path_score(chain.arcs_of(tags.t().tolist())), scores)
    tags, scores = head.kbest(emissions, k=4)
    torch.testing.assert_close(paths.nbest(4).score, scores)
    assert torch.equal(chain.labels(paths.nbest(4).arcs), tags.transpose(1, 2))


def test_history_adds_scores_of_bigrams() -> None:
    """Bigram scores on the arcs of an expanded unigram chain are the transitions of a chain."""
    generator = torch.Generator().manual_seed(0)
    unigrams = Automaton.from_arcs([(j, j + 1, tag) for j in range(5) for tag in range(3)], final=[5])
    head = lc.ChainCRF(3).double()
    torch.nn.init.zeros_(head.start_transitions), torch.nn.init.zeros_(head.end_transitions)
    emissions = torch.randn(5, 2, 3, dtype=torch.float64, generator=generator)
    bigrams = unigrams.with_history(2)
    assert bigrams.automaton.num_arcs == 3 + 4 * 9
    before, label = bigrams.ngram.unbind(-1)
    scores = emissions.permute(1, 0, 2).reshape(2, 15)[:, bigrams.arc]
    scores = scores + torch.where(before >= 0, head.transitions[before, label], 0.0)
    expected = log_partition(emissions, head.chain(emissions), torch.ones(5, 2, dtype=torch.bool))
    torch.testing.assert_close(PathDistribution(bigrams.automaton, scores).logsumexp(), expected)


ERRORS = {
    "automaton": (TypeError, "`automaton` must be an `Automaton`, got int", lambda: PathDistribution(3, torch.zeros(5))),
    "integers": (TypeError, "`scores` must be floating point, got torch.int64", lambda: _paths(torch.zeros(5).long())),
    "number of scores": (ValueError, r"`scores` must have shape \(…, 5\), got \(2, 4\)", lambda: _paths(torch.zeros(2, 4))),
    "no dimension": (ValueError, r"`scores` must have shape \(…, 5\), got \(\)", lambda: _paths(torch.zeros(()))),
    "nan": (ValueError, r"`scores` must be below \+inf, got scores\[1\] = nan", lambda: _paths(_with(math.nan))),
    "infinite": (ValueError, r"`scores` must be below \+inf, got scores\[1\] = inf", lambda: _paths(_with(math.inf))),
    "k": (ValueError, "`k` must be at least 1, got 0", lambda: _paths().nbest(0)),
    "k is no integer": (TypeError, "`k` must be an integer, got 2.0", lambda: _paths().nbest(2.0)),
    "num_samples": (ValueError, "`num_samples` must be at least 1, got 0", lambda: _paths().sample(0)),
    "dtype of arcs": (TypeError, "`arcs` must be int64, got torch.float32", lambda: _paths().path_score(torch.zeros(2))),
    "shape of arcs": (
        ValueError,
        r"`arcs` must have shape \(…, 3, length\), got \(2, 2\)",
        lambda: _paths(torch.zeros(3, 5)).path_score(torch.tensor([[0, 2], [1, 3]])),
    ),
    "out of range": (ValueError, r"`arcs` must be in \[0, 5\) or -100, got arcs\[1\] = 5", lambda: _score(0, 5)),
    "not connected": (ValueError, "`arcs` must be paths of the automaton, got 1 of 1 paths", lambda: _score(0, 3)),
    "not from the start": (ValueError, "`arcs` must be paths of the automaton", lambda: _score(2, -100)),
    "not to the end": (ValueError, "`arcs` must be paths of the automaton", lambda: _score(0, -100)),
    "gap": (ValueError, "`arcs` must be paths of the automaton",
            lambda: PathDistribution(STAIRS, torch.zeros(2)).path_score(torch.tensor([0, -100, 1]))),
    "empty": (ValueError, "`arcs` must be paths of the automaton", lambda: _score(-100, -100)),
}  # fmt: skip


def _paths(scores: torch.Tensor | None = None) -> PathDistribution:
    return PathDistribution(DIAMOND, torch.zeros(5) if scores is None else scores)


def _with(value: float) -> torch.Tensor:
    return torch.tensor([0.0, value, 0.0, 0.0, 0.0])


def _score(*arcs: int) -> torch.Tensor:
    return _paths().path_score(torch.tensor(arcs))


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_argument(case: str) -> None:
    kind, message, call = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()
