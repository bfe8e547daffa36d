"""Estimates of sums over all tag sequences, against these sums written out; and Algorithm 1 as the paper prints it.

Every mean is tested by one t-test for each number in it, the value and each entry of the gradient, over independent batches
of draws, with Bonferroni's correction: seeds are fixed, and an unbiased estimate would fail one in 10,000 of them.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
import torch
from scipy.stats import t as student
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from linearcore import Exponential, LinearCore, Logistic
from linearcore.proposals.sequences import (
    CostlySequences,
    MixedSequences,
    Neighbours,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structured import (
    OBJECTIVES,
    Draws,
    centered_estimate,
    centered_log_weight,
    log_similarity_mass,
    mean_score,
    pair_estimate,
    pair_log_weight,
    sequence_scores,
)
from linearcore.structures import Chain, Cost, Hamming, Sites, ZeroOne, path_score
from linearcore.surrogates import Surrogate
from tests.cases import cross, each
from tests.chains import Case, random_case
from tests.chains import sites as times_of

NUM_TAGS = 3
PHI = LinearCore()
# Three tags, two around a hole, one, none.
MASK = torch.tensor([[sign == "1" for sign in column] for column in ("111", "101", "010", "000")]).t()
SITES = Sites.of(MASK)
CASE = random_case(0, *MASK.shape, NUM_TAGS, MASK).times(0.7)  # Margins on both sides of the core's end.
TAGS = torch.tensor([[0, 2, 1, 1], [1, 1, 1, 0], [2, 0, 0, 2]])
CHAINS = range(MASK.shape[1])
# Tag 1 counts for nothing, so that the chain of one tag, which is 1, cannot be wrong.
WEIGHTED = Hamming(torch.tensor([1.0, 0.0, 2.5]))
COSTS: dict[str, Cost] = {"hamming": Hamming(), "weighted": WEIGHTED, "zero-one": ZeroOne()}

UNIFORM, SIMILAR, COSTLY = UniformSequences(), SimilarSequences(), CostlySequences()
CENTERED = {"costly": COSTLY, "uniform": UNIFORM, "mixed": MixedSequences((UNIFORM, COSTLY), (1, 2))}
OUTER = {"similar": SIMILAR, "uniform": UNIFORM, "mixed": MixedSequences((UNIFORM, SIMILAR), (1, 2))}

BATCHES, DRAWS, ALPHA = 100, 1000, 1e-4


class Written(NamedTuple):
    """All sequences of one chain: their tags without holes (M, J), and their scores (M,), differentiable."""

    tags: Tensor
    scores: Tensor


def written(case: Case, row: int) -> Written:
    times = times_of(case.mask, row)
    every = torch.tensor(list(itertools.product(range(NUM_TAGS), repeat=len(times)))).long()
    scores = case.emissions.new_zeros(len(every))
    for place, time in enumerate(times):
        scores = scores + case.emissions[time, row, every[:, place]]
        edge = case.chain.start[every[:, place]]
        scores = scores + (case.chain.transitions[every[:, place - 1], every[:, place]] if place else edge)
    return Written(every, scores + case.chain.end[every[:, -1]] if times else scores)


def costs_of(every: Tensor, row: int, cost: Cost) -> Tensor:
    """(M,): ℓ(y', y), by loops."""
    truth = TAGS[times_of(MASK, row), row].tolist()
    found = []
    for answer in every.tolist():
        if isinstance(cost, ZeroOne):
            found.append(float(answer != truth))
            continue
        weight = [1.0 if cost.weight is None else float(cost.weight[tag]) for tag in truth]
        wrong = sum(w for w, a, b in zip(weight, answer, truth, strict=True) if a != b)
        found.append(wrong / sum(weight) if sum(weight) else 0.0)
    return torch.tensor(found, dtype=torch.float64)


def exact_pairs(case: Case, row: int, cost: Cost, changed: int | None = None) -> tuple[Tensor, float]:
    """Σ_{y'} (1 − ℓ) Σ_{y''} φ(h(y') − h(y'')), and the same with 1 for φ; y'' ≠ y', or those with `changed` changes."""
    every, scores = written(case, row)
    similarity = 1 - costs_of(every, row, cost)
    differ = (every.unsqueeze(1) != every).sum(-1)
    counts = similarity.unsqueeze(1) * (differ > 0 if changed is None else differ == changed)
    return (counts * PHI.value(scores.unsqueeze(1) - scores)).sum(), counts.sum().item()


def exact_centered(case: Case, row: int, cost: Cost) -> tuple[Tensor, float]:
    """Σ_{y'} ℓ φ(−(h(y') − mean h)), and the same with 1 for φ."""
    every, scores = written(case, row)
    weight = costs_of(every, row, cost)
    return (weight * PHI.value(scores.mean() - scores)).sum(), weight.sum().item()


def numbers(values: Tensor, case: Case) -> Tensor:
    """Values (B,) of a batch of chains and the gradient of their sum in emissions and transitions, in one row."""
    gradients = torch.autograd.grad(values.sum(), (case.emissions, *case.chain))
    return torch.cat([part.detach().reshape(-1) for part in (values, *gradients)])


def exact(sums: Callable[[Case, int], tuple[Tensor, float]], objective: str) -> Tensor:
    case = CASE.leaves()
    each = [sums(case, row) for row in CHAINS]
    return numbers(torch.stack([s if objective == "raw" else s / max(mass, 1e-300) for s, mass in each]), case)


def draw(proposal: SequenceProposal, around: Tensor, num_samples: int, stream: torch.Generator) -> Draws:
    tags = proposal.sample(around, SITES, NUM_TAGS, num_samples, stream)
    return Draws(tags, proposal.log_prob(tags, around, SITES, NUM_TAGS))


def pair_draws(outer: SequenceProposal, inner: SequenceProposal, num_samples: int = DRAWS) -> Iterator[tuple[Draws, Draws]]:
    """BATCHES times y' around the truth and y'' around y'."""
    stream = torch.Generator().manual_seed(0)
    for _ in range(BATCHES):
        first = draw(outer, TAGS, num_samples, stream)
        yield first, draw(inner, first.tags, num_samples, stream)


def pairs(
    outer: SequenceProposal, inner: SequenceProposal, objective: str, cost: Cost | None = None, num_samples: int = DRAWS,
    log_count: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(BATCHES, …): `numbers` of the library's estimate."""
    found = []
    for first, second in pair_draws(outer, inner, num_samples):
        case = CASE.leaves()
        weight = pair_log_weight(
            first,
            second,
            TAGS,
            SITES,
            NUM_TAGS,
            cost=cost or Hamming(),
            objective=objective,
            log_count=log_count,
        )
        scores = (sequence_scores(case.emissions, case.chain, draws.tags, SITES) for draws in (first, second))
        found.append(numbers(pair_estimate(PHI, *scores, weight), case))
    return torch.stack(found)


def centered(proposal: SequenceProposal, objective: str, cost: Cost, num_samples: int = DRAWS) -> Tensor:
    """(BATCHES, …): `numbers` of the library's estimate."""
    found, stream = [], torch.Generator().manual_seed(0)
    for _ in range(BATCHES):
        case, draws = CASE.leaves(), draw(proposal, TAGS, num_samples, stream)
        weight = centered_log_weight(draws, TAGS, SITES, NUM_TAGS, cost=cost, objective=objective)
        scores = sequence_scores(case.emissions, case.chain, draws.tags, SITES)
        mean = mean_score(case.emissions, case.chain, SITES)
        found.append(numbers(centered_estimate(PHI, scores, mean, weight), case))
    return torch.stack(found)


def worst(found: Tensor, expected: Tensor) -> tuple[float, float]:
    """The largest |t| of all numbers, and what it must not exceed. What never varies is right or infinitely wrong."""
    error = found.std(0) / math.sqrt(len(found))
    distance = (found.mean(0) - expected).abs()
    scale = 1 + expected.abs()
    settled = error < 1e-12 * scale
    statistic = torch.where(settled, torch.where(distance < 1e-9 * scale, 0.0, math.inf), distance / error)
    return statistic.max().item(), float(student.isf(ALPHA / 2 / len(statistic), len(found) - 1))


def assert_unbiased(found: Tensor, expected: Tensor) -> None:
    statistic, limit = worst(found, expected)
    assert statistic < limit


def assert_biased(found: Tensor, expected: Tensor) -> None:
    statistic, limit = worst(found, expected)
    assert statistic > 3 * limit


@cross(outer=OUTER, objective=("raw", "normalised"))
def test_pairs_are_unbiased(outer: SequenceProposal, objective: str) -> None:
    expected = exact(lambda case, row: exact_pairs(case, row, Hamming()), objective)
    assert_unbiased(pairs(outer, UNIFORM, objective), expected)


@pytest.mark.parametrize("cost", ("weighted", "zero-one"))
def test_pairs_are_unbiased_for_other_costs(cost: str) -> None:
    for objective in ("raw", "normalised"):
        expected = exact(lambda case, row: exact_pairs(case, row, COSTS[cost]), objective)
        assert_unbiased(pairs(UNIFORM, UNIFORM, objective, COSTS[cost]), expected)


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER.keys())
def test_neighbours_are_unbiased_for_neighbours_only(outer: SequenceProposal) -> None:
    found = pairs(outer, Neighbours(), "raw")
    assert_unbiased(found, exact(lambda case, row: exact_pairs(case, row, Hamming(), changed=1), "raw"))
    assert_biased(found, exact(lambda case, row: exact_pairs(case, row, Hamming()), "raw"))


def test_a_mean_over_neighbours() -> None:
    found = pairs(SIMILAR, Neighbours(), "normalised", log_count=Neighbours().log_count(SITES, NUM_TAGS))
    assert_unbiased(found, exact(lambda case, row: exact_pairs(case, row, Hamming(), changed=1), "normalised"))


@each(
    ("proposal", "cost", "objective"),
    {
        f"{name}-{cost}-{objective}": (proposal, cost, objective)
        for name, proposal in CENTERED.items()
        for cost in COSTS
        for objective in ("raw", "normalised")
    },
    ("costly-hamming-normalised", "uniform-weighted-raw", "uniform-weighted-normalised", "mixed-zero-one-raw"),
)
def test_centered_is_unbiased(proposal: SequenceProposal, cost: str, objective: str) -> None:
    expected = exact(lambda case, row: exact_centered(case, row, COSTS[cost]), objective)
    assert_unbiased(centered(proposal, objective, COSTS[cost]), expected)


def test_centered_needs_draws_of_all_that_costs() -> None:
    found = centered(SIMILAR, "raw", Hamming())
    assert_biased(found, exact(lambda case, row: exact_centered(case, row, Hamming()), "raw"))


def printed(outer: SequenceProposal = COSTLY, *, sign: float = -1.0, case: Case = CASE) -> Tensor:
    """(BATCHES, L·|Y|): Algorithm 1's g_t averaged over draws, for the emissions of the first chain.

    Literally, line by line: y' ∼ D₁ in proportion to the Hamming distance, w₁ = (1 − ℓ)/D₁; y'' ∼ D₂ uniform, w₂ = 1/D₂;
    m = h(y'') − h(y'), g = w₁ w₂ φ'(m) (∇h(y'') − ∇h(y')). With `sign` +1 it is m = h(y') − h(y''), as the loss has it.
    """
    found = []
    for first, second in pair_draws(outer, UNIFORM):
        emissions = case.emissions.clone().requires_grad_()
        similarity = ((first.tags == TAGS) & MASK).sum(1) / MASK.sum(0)
        weight = similarity / first.log_prob.exp() / second.log_prob.exp()
        scores = [sequence_scores(emissions, case.chain, draws.tags, SITES) for draws in (first, second)]
        m = sign * (scores[0] - scores[1])
        slope = PHI.derivative(m.detach())
        (gradient,) = torch.autograd.grad((weight * slope * m)[:, 0].mean(), emissions)
        found.append(gradient[:, 0].reshape(-1))
    return torch.stack(found)


def exact_gradient() -> Tensor:
    case = CASE.leaves()
    (gradient,) = torch.autograd.grad(exact_pairs(case, 0, Hamming())[0], case.emissions)
    return gradient[:, 0].reshape(-1)


def test_algorithm_1_as_printed_is_rejected() -> None:
    """Its sign: it points away from the gradient. Its support: with the sign mended the truth is still never drawn."""
    expected = exact_gradient()
    assert_biased(printed(), expected)
    assert torch.cosine_similarity(printed().mean(0), expected, 0) < -0.3
    assert_biased(printed(sign=1.0), expected)


def test_algorithm_1_with_sign_and_support_mended_is_not() -> None:
    assert_unbiased(printed(SIMILAR, sign=1.0), exact_gradient())
    assert_biased(printed(SIMILAR), exact_gradient())


def test_algorithm_1_misses_what_the_truth_contributes() -> None:
    """With the sign mended, it is unbiased for the sum without y' = y."""
    case = CASE.leaves()
    every, scores = written(case, 0)
    similarity = 1 - costs_of(every, 0, Hamming())
    counts = similarity.masked_fill(similarity == 1, 0.0).unsqueeze(1)
    (gradient,) = torch.autograd.grad((counts * PHI.value(scores.unsqueeze(1) - scores)).sum(), case.emissions)
    assert_unbiased(printed(sign=1.0), gradient[:, 0].reshape(-1))


def test_algorithm_1_goes_uphill_in_the_core() -> None:
    """There φ' is −1 for both arguments, and the printed step is the opposite of the mended one, draw by draw."""
    small = CASE.times(0.05)
    torch.testing.assert_close(printed(SIMILAR, case=small), -printed(SIMILAR, sign=1.0, case=small))


def replicas(num_samples: int, is_centered: bool, objective: str, repeats: int = 100_000) -> Tensor:
    """(repeats, 1 + L·|Y|): value and gradient in the emissions of the first chain, each from K uniform draws."""
    stream = torch.Generator().manual_seed(0)
    sites, tags = Sites.of(MASK[:, :1].expand(-1, repeats)), TAGS[:, :1].expand(-1, repeats)
    emissions = CASE.emissions[:, :1].repeat(1, repeats, 1).requires_grad_()
    drawn = (UNIFORM.sample(tags, sites, NUM_TAGS, num_samples, stream) for _ in range(2))
    first, second = (Draws(y, UNIFORM.log_prob(y, tags, sites, NUM_TAGS)) for y in drawn)
    options = {"cost": Hamming(), "objective": objective}
    h = sequence_scores(emissions, CASE.chain, first.tags, sites)
    if is_centered:
        weight = centered_log_weight(first, tags, sites, NUM_TAGS, **options)
        values = centered_estimate(PHI, h, mean_score(emissions, CASE.chain, sites), weight)
    else:
        weight = pair_log_weight(first, second, tags, sites, NUM_TAGS, **options)
        values = pair_estimate(PHI, h, sequence_scores(emissions, CASE.chain, second.tags, sites), weight)
    (gradient,) = torch.autograd.grad(values.sum(), emissions)
    return torch.cat([values.detach().unsqueeze(-1), gradient.transpose(0, 1).flatten(1)], -1)


@each("is_centered", {"pairs": False, "centered": True}, ("centered",))
def test_self_normalised_weights_are_biased_less_with_more_draws(is_centered: bool) -> None:
    """By O(1/K): four times the draws leave about a quarter of it. The same draws with known normalisers are not biased."""
    case = CASE.leaves()
    value, mass = (exact_centered if is_centered else exact_pairs)(case, 0, Hamming())
    (gradient,) = torch.autograd.grad(value / mass, case.emissions)
    expected = torch.cat([(value / mass).detach().reshape(1), gradient[:, 0].reshape(-1)])
    found = {k: replicas(k, is_centered, "self-normalised") for k in (2, 8, 32)}
    bias = {k: (rows.mean(0) - expected).norm().item() for k, rows in found.items()}
    assert_biased(found[2], expected)
    assert_biased(found[8], expected)
    assert bias[2] > 3 * bias[8] > 9 * bias[32]
    assert_unbiased(replicas(8, is_centered, "normalised"), expected)


def test_the_mean_score_is_the_mean_of_all_scores() -> None:
    ours, theirs = CASE.leaves(), CASE.leaves()
    expected = torch.stack([written(theirs, row).scores.mean() for row in CHAINS])
    found = mean_score(ours.emissions, ours.chain, SITES)
    assert found[3] == 0
    # Weighed, so that chains cannot stand in for each other.
    weight = torch.arange(1.0, len(found) + 1)
    torch.testing.assert_close(numbers(weight * found, ours), numbers(weight * expected, theirs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("padding", (math.nan, math.inf, 1e30))
def test_what_is_off_does_not_reach_scores_and_means(padding: float) -> None:
    draws = UNIFORM.sample(TAGS, SITES, NUM_TAGS, 5, torch.Generator().manual_seed(0))
    for function in (mean_score, lambda u, chain, sites: sequence_scores(u, chain, draws, sites)):
        case = CASE.leaves()
        expected = function(case.emissions, case.chain, SITES).detach()
        spoilt = case._replace(emissions=CASE.emissions.masked_fill(~MASK.unsqueeze(-1), padding).requires_grad_())
        found = function(spoilt.emissions, spoilt.chain, SITES)
        torch.testing.assert_close(found.detach(), expected)
        assert torch.equal(found[..., 3], torch.zeros_like(found[..., 3]))
        assert numbers(found, spoilt).isfinite().all()


def test_scores_of_draws_are_path_scores() -> None:
    draws = UNIFORM.sample(TAGS, SITES, NUM_TAGS, 6, torch.Generator().manual_seed(0))
    draws = draws.where(MASK, 2)  # Where masked any tag may stand.
    ours, theirs = CASE.leaves(), CASE.leaves()
    weight = torch.randn(6, len(CHAINS), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = sequence_scores(ours.emissions, ours.chain, draws, SITES)
    expected = torch.stack([path_score(theirs.emissions, theirs.chain, one, SITES) for one in draws])
    torch.testing.assert_close(numbers(weight * found, ours), numbers(weight * expected, theirs), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
def test_similarity_mass(cost: Cost) -> None:
    tags = TAGS.where(MASK, -100)
    found = log_similarity_mass(tags, SITES, NUM_TAGS, cost=cost).exp().tolist()
    expected = [(1 - costs_of(written(CASE, row).tags, row, cost)).sum().item() for row in CHAINS]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("num_sites", (1, 7, 400))
def test_weights_of_the_laws_themselves_are_constant(num_sites: int) -> None:
    """Whatever the number of sequences: M/(M − 1) for pairs of a similar and another uniform one, 1 for costly ones."""
    tags, sites = torch.ones(num_sites, 1).long(), Sites.of(torch.ones(num_sites, 1, dtype=torch.bool))
    stream = torch.Generator().manual_seed(0)

    def of(proposal: SequenceProposal) -> Draws:
        drawn = proposal.sample(tags, sites, NUM_TAGS, 200, stream)
        return Draws(drawn, proposal.log_prob(drawn, tags, sites, NUM_TAGS))

    outer, inner = of(SIMILAR), of(UNIFORM)
    differ = (outer.tags != inner.tags).any(1)
    found = pair_log_weight(outer, inner, tags, sites, NUM_TAGS, cost=Hamming()).exp()
    expected = 1 / (1 - float(NUM_TAGS) ** -num_sites)
    torch.testing.assert_close(found, differ * torch.full_like(found, expected), rtol=1e-10, atol=0)
    found = centered_log_weight(of(COSTLY), tags, sites, NUM_TAGS, cost=Hamming()).exp()
    torch.testing.assert_close(found, torch.ones_like(found), rtol=1e-10, atol=0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_chains_without_tags_count_for_nothing(objective: str) -> None:
    found = pairs(UNIFORM, UNIFORM, objective, num_samples=2)
    assert found.isfinite().all() and not found[:, 3].any()
    found = centered(UNIFORM, objective, Hamming(), num_samples=2)
    assert found.isfinite().all() and not found[:, 3].any()


def test_sequences_that_differ_only_where_masked_are_the_same() -> None:
    log_prob = torch.zeros(1, len(CHAINS), dtype=torch.float64)
    first, other = (Draws(tags.unsqueeze(0), log_prob) for tags in (TAGS, torch.where(MASK, TAGS, (TAGS + 1) % NUM_TAGS)))
    assert not pair_log_weight(first, other, TAGS, SITES, NUM_TAGS, cost=Hamming(), objective="raw").exp().any()


def test_self_normalised_weights_have_mean_one_or_are_all_zero() -> None:
    first, second = next(pair_draws(UNIFORM, UNIFORM, 3))
    weight = pair_log_weight(first, second, TAGS, SITES, NUM_TAGS, cost=Hamming(), objective="self-normalised").exp()
    torch.testing.assert_close(weight.mean(0)[:2], torch.ones(2, dtype=torch.float64))
    same = Draws(first.tags, first.log_prob)
    assert not pair_log_weight(first, same, TAGS, SITES, NUM_TAGS, cost=Hamming(), objective="self-normalised").exp().any()


@pytest.mark.parametrize("surrogate", (PHI, Logistic(), Exponential()), ids=repr)
def test_weights_are_not_differentiated_and_pairs_without_weight_not_looked_at(surrogate: Surrogate) -> None:
    outer = torch.tensor([[1.0], [-math.inf], [-1e4]], requires_grad=True)
    inner = torch.tensor([[0.5], [-math.inf], [0.0]], requires_grad=True)
    log_weight = torch.tensor([[math.log(2.0)], [-math.inf], [-math.inf]], dtype=torch.float64, requires_grad=True)
    found = pair_estimate(surrogate, outer, inner, log_weight)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.item(), 2 * surrogate.value(0.5).item() / 3)
    gradients = torch.autograd.grad(found.sum(), (outer, inner, log_weight), allow_unused=True)
    slope = 2 * surrogate.derivative(0.5).item() / 3
    torch.testing.assert_close(gradients[0].flatten().tolist(), [slope, 0.0, 0.0])
    torch.testing.assert_close(gradients[1].flatten().tolist(), [-slope, 0.0, 0.0])
    assert gradients[2] is None


@pytest.mark.parametrize(("num_sites", "is_finite"), ((38, True), (41, False)))
def test_raw_weights_overflow_and_normalised_ones_do_not(num_sites: int, is_finite: bool) -> None:
    tags, sites = torch.zeros(num_sites, 1).long(), Sites.of(torch.ones(num_sites, 1, dtype=torch.bool))
    stream = torch.Generator().manual_seed(0)
    drawn = [proposal.sample(tags, sites, NUM_TAGS, 5, stream) for proposal in (SIMILAR, UNIFORM)]
    draws = [
        Draws(one, proposal.log_prob(one, tags, sites, NUM_TAGS))
        for one, proposal in zip(drawn, (SIMILAR, UNIFORM), strict=True)
    ]
    scores = torch.zeros(5, 1)
    for objective, fine in (("raw", is_finite), ("normalised", True), ("self-normalised", True)):
        weight = pair_log_weight(*draws, tags, sites, NUM_TAGS, cost=Hamming(), objective=objective)
        assert pair_estimate(PHI, scores, scores, weight).isfinite().all() == fine


class Half(Cost):
    """A cost that no one has summed up: ½ for any mistake."""

    name = "half"

    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        return ZeroOne().between(answer, truth, mask, dtype=dtype) / 2


def test_a_cost_of_ones_own_has_no_known_normaliser() -> None:
    first, second = next(pair_draws(UNIFORM, UNIFORM, 3))
    message = '`cost` must define `log_similarity_mass` for the normalised objective, got .*Half.*; .*"mean"'
    for objective in ("raw", "mean", "self-normalised"):
        pair_log_weight(first, second, TAGS, SITES, NUM_TAGS, cost=Half(), objective=objective)
        centered_log_weight(first, TAGS, SITES, NUM_TAGS, cost=Half(), objective=objective)
    with pytest.raises(ValueError, match=message):
        pair_log_weight(first, second, TAGS, SITES, NUM_TAGS, cost=Half())
    with pytest.raises(ValueError, match=message):
        centered_log_weight(first, TAGS, SITES, NUM_TAGS, cost=Half())


def test_messages() -> None:
    first, second = next(pair_draws(UNIFORM, UNIFORM, 3))
    message = "`objective` must be one of 'raw', 'mean', 'normalised', 'self-normalised', got 'median'"
    with pytest.raises(ValueError, match=message):
        pair_log_weight(first, second, TAGS, SITES, NUM_TAGS, cost=Hamming(), objective="median")
    with pytest.raises(ValueError, match=message):
        centered_log_weight(first, TAGS, SITES, NUM_TAGS, cost=Hamming(), objective="median")
    with pytest.raises(ValueError, match=r"`log_count` must be None unless .* normalised, got objective 'raw'; omit it"):
        pair_log_weight(
            first,
            second,
            TAGS,
            SITES,
            NUM_TAGS,
            cost=Hamming(),
            objective="raw",
            log_count=torch.zeros(len(CHAINS)),
        )


def test_nothing_is_read_back_from_the_device() -> None:
    """Tensors without numbers in them refuse to be looked at."""
    with FakeTensorMode():
        sites, tags = Sites.of(torch.ones(4, 3, dtype=torch.bool)), torch.zeros(4, 3, dtype=torch.long)
        emissions, chain = torch.zeros(4, 3, 2), Chain(torch.zeros(2), torch.zeros(2, 2), torch.zeros(2))
        draws = Draws(torch.zeros(7, 4, 3, dtype=torch.long), torch.zeros(7, 3, dtype=torch.float64))
        scores = sequence_scores(emissions, chain, draws.tags, sites)
        for objective in OBJECTIVES:
            options = {"cost": Hamming(), "objective": objective}
            weight = pair_log_weight(draws, draws, tags, sites, 2, **options)
            assert pair_estimate(PHI, scores, scores, weight).shape == (3,)
            weight = centered_log_weight(draws, tags, sites, 2, **options)
            assert centered_estimate(PHI, scores, mean_score(emissions, chain, sites), weight).shape == (3,)
