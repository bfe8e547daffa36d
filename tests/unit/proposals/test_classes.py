"""Proposals over classes: laws written out, frequencies of draws, and weights that make a few stand for all."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from scipy.stats import chi2, norm
from torch import Tensor

from linearcore.proposals import (
    Candidates,
    HardNegatives,
    InBatch,
    LogUniform,
    Mixture,
    Proposal,
    Uniform,
    Unigram,
    _unigram,
    check_num_samples,
    hard_negatives,
)
from tests.cases import cross


def counts(num_classes: int) -> Tensor:
    """0, 3, 6, 1, 4, …: some classes were never seen."""
    return 3 * torch.arange(num_classes) % 8


def table(num_classes: int) -> Tensor:
    """(n, 4): two others, the class itself, and one of the two again; for few classes they may be the same."""
    own = torch.arange(num_classes)
    return torch.stack([own + 1, own, own + 2, own + 1], -1) % num_classes


#: Each from a number of classes and `shared`.
LAWS: dict[str, Callable[[int, bool], Proposal]] = {
    "uniform": lambda n, shared: Uniform(shared=shared),
    "unigram": lambda n, shared: Unigram(shared=shared, counts=counts(n)),
    "frequency": lambda n, shared: Unigram(shared=shared, counts=counts(n), power=1.0, smoothing=0.1),
    "log uniform": lambda n, shared: LogUniform(shared=shared),
    "mixture": lambda n, shared: Mixture(
        shared=shared, parts=(Unigram(counts=counts(n)), LogUniform(), Uniform()), weights=(2, 1, 1)
    ),
    "even mixture": lambda n, shared: Mixture(
        shared=shared, parts=(LogUniform(shared=not shared), Uniform(shared=not shared))
    ),
    "hard": lambda n, shared: HardNegatives(shared=shared, table=table(n)),
    "hard by frequency": lambda n, shared: HardNegatives(
        shared=shared, table=table(n), rest=Unigram(shared=not shared, counts=counts(n))
    ),
    "in batch": lambda n, shared: InBatch(shared=shared),
    "in batch by frequency": lambda n, shared: InBatch(shared=shared, rest=Unigram(shared=not shared, counts=counts(n))),
}
every_law = pytest.mark.parametrize("make", LAWS.values(), ids=LAWS.keys())
every_size = pytest.mark.parametrize("num_classes", (1, 2, 7, 1000))
shared_or_not = pytest.mark.parametrize("shared", (True, False), ids=("shared", "own"))

#: Of a wrong alarm, for all that one test looks at together; the seeds are fixed.
ALPHA = 1e-4


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def probabilities(proposal: Proposal, num_classes: int) -> list[float]:
    """q(v) for all classes, from its definition."""
    match proposal:
        case Uniform():
            return [1 / num_classes] * num_classes
        case Unigram():
            mass = [(count + proposal.smoothing) ** proposal.power for count in counts(num_classes).tolist()]
            return [each / sum(mass) for each in mass]
        case LogUniform():
            return [(math.log(v + 2) - math.log(v + 1)) / math.log(num_classes + 1) for v in range(num_classes)]
        case Mixture():
            weights = proposal.weights or ()
            parts = zip(*(probabilities(part, num_classes) for part in proposal.parts), strict=True)
            return [sum(w * p for w, p in zip(weights, each, strict=True)) for each in parts]
        case HardNegatives() | InBatch():
            return probabilities(proposal.rest, num_classes)
    raise AssertionError(proposal)


@every_law
@every_size
def test_log_prob_is_the_law_and_adds_up_to_one(make: Callable[[int, bool], Proposal], num_classes: int) -> None:
    proposal = make(num_classes, True)
    found = proposal.log_prob(torch.arange(num_classes), num_classes)
    assert found.dtype == torch.float32
    assert found.double().exp().sum().item() == pytest.approx(1, abs=1e-5)
    expected = torch.tensor(probabilities(proposal, num_classes), dtype=torch.float64)
    torch.testing.assert_close(found.double().exp(), expected, rtol=1e-5, atol=0)
    index = torch.arange(2 * num_classes).view(2, -1) % num_classes
    assert torch.equal(proposal.log_prob(index, num_classes), found[index])


def fits(draws: Tensor, law: list[float]) -> bool:
    """Pearson's chi-square of draws against a law over n classes; one that has no mass must not be drawn."""
    seen = torch.bincount(draws.reshape(-1), minlength=len(law)).double()
    expected = draws.numel() * torch.tensor(law, dtype=torch.float64)
    has_mass = expected > 0
    assert expected[has_mass].min() >= 5
    if (seen[~has_mass] > 0).any():
        return False
    statistic = ((seen - expected)[has_mass] ** 2 / expected[has_mass]).sum().item()
    freedom = int(has_mass.sum()) - 1
    return statistic == 0 if freedom == 0 else bool(chi2.sf(statistic, freedom) > ALPHA / len(LAWS))


@every_law
@every_size
def test_draws_follow_the_law(make: Callable[[int, bool], Proposal], num_classes: int) -> None:
    proposal = make(num_classes, True)
    draws = proposal.sample((500, 400), num_classes, torch.empty(0), stream())
    assert draws.shape == (500, 400) and draws.dtype == torch.int64
    law = probabilities(proposal, num_classes)
    assert fits(draws, law)
    # Neighbouring draws have nothing to do with each other: their sum is a draw from the law folded with itself.
    if num_classes == 7:
        both = [sum(law[u] * law[(v - u) % 7] for u in range(7)) for v in range(7)]
        assert fits((draws[::2] + draws[1::2]) % 7, both) and fits((draws[:, ::2] + draws[:, 1::2]) % 7, both)


def test_the_test_of_draws_can_fail() -> None:
    draws = LogUniform().sample((500, 400), 7, torch.empty(0), stream())
    assert not fits(draws, probabilities(Uniform(), 7))
    assert not fits((draws + 1) % 7, probabilities(LogUniform(), 7))


@pytest.mark.parametrize("power", (0.0, 1.0))
def test_without_smoothing_what_was_never_seen_is_never_drawn(power: float) -> None:
    seen = torch.tensor([0, 4, 0, 1, 0, 3, 0])
    proposal = Unigram(counts=seen, power=power, smoothing=0.0)
    law = [0, 1 / 3, 0, 1 / 3, 0, 1 / 3, 0] if power == 0 else [0, 0.5, 0, 0.125, 0, 0.375, 0]
    assert proposal.log_prob(torch.arange(7), 7).exp().tolist() == pytest.approx(law, rel=1e-6, abs=0)
    assert fits(proposal.sample((100_000,), 7, torch.empty(0), stream()), law)


def test_a_number_at_a_step_goes_to_the_class_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also 0 itself, where the first class has no mass; and the largest number there is goes to the last that has some."""
    proposal = Unigram(counts=torch.tensor([0, 1, 0, 3, 0]), power=1.0, smoothing=0.0)
    numbers = torch.tensor([0.0, 0.25, 1 - 2**-53], dtype=torch.float64)
    monkeypatch.setattr(_unigram, "uniform", lambda *_: numbers)
    assert proposal.sample((3,), 5, torch.empty(0), None).tolist() == [1, 3, 3]


def test_a_million_classes_are_all_within_reach() -> None:
    """Numbers of float32 would be too coarse: two classes that lie close would be one."""
    num_classes = 2**26
    for proposal in (LogUniform(), Mixture(parts=(LogUniform(), Uniform()))):
        draws = proposal.sample((200_000,), num_classes, torch.empty(0), stream())
        assert draws.min() >= 0 and draws.max() < num_classes
        far = draws[draws > num_classes // 2]
        assert len(far) > 1000 and (far % 2 == 0).double().mean().item() == pytest.approx(0.5, abs=0.05)


@every_law
@shared_or_not
def test_the_same_seed_draws_the_same(make: Callable[[int, bool], Proposal], shared: bool) -> None:
    proposal, target = make(50, shared), torch.arange(6)
    first, second, other = (proposal.candidates(target, 50, 20, stream(seed)) for seed in (3, 3, 4))
    assert torch.equal(first.index, second.index) and torch.equal(first.log_weight, second.log_weight)
    assert not torch.equal(first.index, other.index)


@every_law
@shared_or_not
def test_a_generator_leaves_the_global_stream_alone(make: Callable[[int, bool], Proposal], shared: bool) -> None:
    proposal, target = make(50, shared), torch.arange(6)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        before = torch.get_rng_state()
        given = proposal.candidates(target, 50, 20, stream(5))
        assert torch.equal(torch.get_rng_state(), before)
        # Without one it is the global stream that is drawn from.
        found = proposal.candidates(target, 50, 20)
        assert torch.equal(found.index, given.index) and not torch.equal(torch.get_rng_state(), before)


@every_law
@shared_or_not
def test_shapes_and_weights(make: Callable[[int, bool], Proposal], shared: bool) -> None:
    proposal, target = make(7, shared), torch.tensor([0, 3, 6, 3])
    index, log_weight = proposal.candidates(target, 7, 12, stream())
    known = 4 if isinstance(proposal, HardNegatives) else 3 if isinstance(proposal, InBatch) else 0
    assert index.shape == (1 if shared and not isinstance(proposal, HardNegatives) else 4, known + 12)
    assert log_weight.shape == (4, known + 12) and log_weight.dtype == torch.float32 and not log_weight.requires_grad
    drawn = index.expand(4, -1)[:, known:]
    assert (drawn == drawn[:1]).all().item() == shared
    law = probabilities(proposal, 7)
    for row, own in enumerate(target.tolist()):
        lists = table(7)[own].tolist() if isinstance(proposal, HardNegatives) else [0, 3, 6][:known]
        seen: list[int] = []
        for place, (v, found) in enumerate(zip(index.expand(4, -1)[row].tolist(), log_weight[row].tolist(), strict=True)):
            if place < known:
                assert v == lists[place]
                expected = -math.inf if v == own or v in seen else 0.0
                seen.append(v)
            else:
                expected = -math.inf if v == own or v in lists else -math.log(12 * law[v])
            assert found == pytest.approx(expected, abs=1e-5)
    assert (log_weight == -math.inf).any() and (log_weight > -math.inf).any()


@every_law
@shared_or_not
def test_one_class_has_no_competitor(make: Callable[[int, bool], Proposal], shared: bool) -> None:
    found = make(1, shared).candidates(torch.zeros(3).long(), 1, 4, stream())
    assert (found.log_weight == -math.inf).all() and (found.index == 0).all()


@every_law
@shared_or_not
def test_no_rows(make: Callable[[int, bool], Proposal], shared: bool) -> None:
    found = make(7, shared).candidates(torch.zeros(0).long(), 7, 4, stream())
    assert found.log_weight.shape[0] == 0 and found.log_weight.shape[1] == found.index.shape[1]


# The sum over candidates is an unbiased estimate of the sum over all others.

NUM_CLASSES, NUM_SAMPLES, REPEATS = 7, 3, 2500


def totals(proposal: Proposal, target: Tensor) -> Tensor:
    """(R, N, n): for every target the summed weights of each class; a function of a class sums to f·these."""

    def of(found: Candidates) -> Tensor:
        rows = found.log_weight.shape[0]
        weight = found.log_weight.double().exp()
        return torch.zeros(rows, NUM_CLASSES).double().scatter_add_(-1, found.index.expand(rows, -1), weight)

    generator = stream(1)
    if not proposal.shared:
        many = target.repeat(REPEATS)
        return of(proposal.candidates(many, NUM_CLASSES, NUM_SAMPLES, generator)).view(REPEATS, len(target), -1)
    return torch.stack([of(proposal.candidates(target, NUM_CLASSES, NUM_SAMPLES, generator)) for _ in range(REPEATS)])


def is_unbiased(estimates: Tensor, exact: Tensor) -> bool:
    """z-tests of the mean over the first dimension, Bonferroni's correction; what does not vary must be exact."""
    error = estimates.mean(0) - exact
    deviation = estimates.std(0) / math.sqrt(len(estimates))
    constant = deviation <= 1e-6
    bound = norm.isf(ALPHA / (2 * exact.numel()))
    return bool((error[constant].abs() <= 1e-5).all() and (error.abs() <= bound * deviation)[~constant].all())


#: Every class; and some of them, since a batch of all leaves `InBatch` nothing to draw.
BATCHES = {"all": torch.arange(NUM_CLASSES), "some": torch.tensor([5, 1, 5])}


def others_of(target: Tensor) -> Tensor:
    """(N, n): 1 for a competitor, 0 for the target."""
    return (torch.arange(NUM_CLASSES) != target.unsqueeze(-1)).double()


@cross(make=LAWS, shared=(True, False), target=BATCHES)
def test_every_other_class_is_expected_to_weigh_one(
    make: Callable[[int, bool], Proposal], shared: bool, target: Tensor
) -> None:
    """So every sum of a function over the others is, whatever the function; a few are also tried."""
    found, others = totals(make(NUM_CLASSES, shared), target), others_of(target)
    assert is_unbiased(found, others)
    functions = torch.randn(NUM_CLASSES, 5, generator=stream(2)).double()
    assert is_unbiased(found @ functions, others @ functions)


class Forgetful(Unigram):
    """Draws by frequency and weighs as if all classes were alike."""

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return Uniform().log_prob(index, num_classes)


class Doubled(LogUniform):
    """Keeps the target, as if it were a competitor."""

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        found = super().candidates(target, num_classes, num_samples, generator)
        law = self.log_prob(found.index, num_classes) + math.log(num_samples)
        return found._replace(log_weight=-law.expand(found.log_weight.shape))


class _Again:
    """Counts a draw that is there for sure once more."""

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        index, log_weight = super().candidates(target, num_classes, num_samples, generator)
        again = (log_weight == -math.inf) & (index != target.unsqueeze(-1))
        again[:, :-num_samples] = False
        law = self.log_prob(index, num_classes) + math.log(num_samples)
        return Candidates(index, torch.where(again, -law, log_weight))


class Greedy(_Again, HardNegatives): ...


class GreedyInBatch(_Again, InBatch): ...


WRONG = {
    "forgetful": partial(Forgetful, counts=counts(NUM_CLASSES)),
    "doubled": Doubled,
    "greedy": partial(Greedy, table=table(NUM_CLASSES)),
    "greedy in batch": GreedyInBatch,
}


@cross(law=WRONG, shared=(True, False), target=BATCHES)
def test_a_wrong_weight_is_seen(law: Callable[..., Proposal], shared: bool, target: Tensor) -> None:
    assert not is_unbiased(totals(law(shared=shared), target), others_of(target))


# Lists of hard competitors.


@pytest.mark.parametrize("chunk", (1, 4, 9, 10, 1024))
@pytest.mark.parametrize("top", (0, 1, 3, 9, 50))
def test_hardest_are_the_largest_inner_products(chunk: int, top: int) -> None:
    weight = torch.randn(10, 4, generator=stream(), requires_grad=True)
    found = hard_negatives(weight, top, chunk)
    assert found.shape == (10, min(top, 9)) and not found.requires_grad
    products = (weight @ weight.t()).tolist()
    for own, row in enumerate(products):
        others = sorted((v for v in range(10) if v != own), key=lambda v: -row[v])
        assert found[own].tolist() == others[:top]


def test_tables_of_any_integer_type() -> None:
    expected = HardNegatives(table=table(7)).candidates(torch.arange(7), 7, 3, stream())
    for dtype in (torch.int32, torch.uint8, torch.int16):
        found = HardNegatives(table=table(7).to(dtype)).candidates(torch.arange(7), 7, 3, stream())
        assert torch.equal(found.index, expected.index) and torch.equal(found.log_weight, expected.log_weight)
        assert found.index.dtype == torch.int64


# Messages.

TARGET = torch.zeros(2).long()
MESSAGES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no counts": (Unigram, ValueError, r"^`counts` must be a tensor of shape \(n,\), got NoneType; count the classes of"),
    "counts a list": (lambda: Unigram(counts=[1, 2]), ValueError, r"^`counts` must be a tensor of shape \(n,\), got list"),
    "counts a matrix": (lambda: Unigram(counts=torch.ones(2, 3)), ValueError, r"^`counts` must be a .*, got \(2, 3\); "),
    "counts of nothing": (lambda: Unigram(counts=torch.ones(0)), ValueError, r"^`counts` must be a tensor .*, got \(0,\); "),
    "counts all zero": (
        lambda: Unigram(counts=torch.zeros(3), smoothing=0.0),
        ValueError,
        r"^`counts` must be non-negative, and not all zero, got ",
    ),
    "counts no numbers": (lambda: Unigram(counts=torch.tensor([1, math.nan])), ValueError, "^`counts` must be non-negative"),
    "counts infinite": (lambda: Unigram(counts=torch.tensor([1, math.inf])), ValueError, "^`counts` must be non-negative"),
    "counts very negative": (lambda: Unigram(counts=torch.tensor([5, -3])), ValueError, "^`counts` must be non-negative"),
    "counts a little negative": (
        lambda: Unigram(counts=torch.tensor([5, -1])),
        ValueError,
        "^`counts` must be non-negative",
    ),
    "counts of others": (
        lambda: Unigram(counts=torch.ones(3)).candidates(TARGET, 4, 2),
        ValueError,
        r"^`counts` must be for 4 classes, got 3; count all classes, in their order",
    ),
    "probability of others": (
        lambda: Unigram(counts=torch.ones(3)).log_prob(TARGET, 2),
        ValueError,
        r"^`counts` must be for 2 classes, got 3",
    ),
    "no parts": (Mixture, ValueError, r"^`parts` must hold proposals, at least one, got \(\); for example \(Uniform\(\),\)"),
    "parts of another type": (
        lambda: Mixture(parts=(Uniform(), "uniform")),
        ValueError,
        r"^`parts` must hold proposals, at least one, got \(Uniform\(shared=True\), 'uniform'\); ",
    ),
    "too few weights": (
        lambda: Mixture(parts=(Uniform(), LogUniform()), weights=(1.0,)),
        ValueError,
        r"^`weights` must hold 2 positive numbers, got \(1.0,\); give one for each part",
    ),
    "a weight of zero": (lambda: Mixture(parts=(Uniform(),), weights=(0,)), ValueError, "^`weights` must hold 1 positive"),
    "a weight that is none": (
        lambda: Mixture(parts=(Uniform(),), weights=(math.nan,)),
        ValueError,
        "^`weights` must hold 1 positive numbers, got",
    ),
    "an infinite weight": (
        lambda: Mixture(parts=(Uniform(), LogUniform()), weights=(1, math.inf)),
        ValueError,
        "^`weights` must hold 2 positive",
    ),
    "no table": (
        HardNegatives,
        ValueError,
        r"^`table` must be integers of shape \(n, k\), got NoneType",
    ),
    "table a list": (
        lambda: HardNegatives(table=[[1], [0]]),
        ValueError,
        r"^`table` must be integers of shape \(n, k\), got list",
    ),
    "table flat": (
        lambda: HardNegatives(table=torch.zeros(3).long()),
        ValueError,
        r"^`table` must .*got \(3,\); ",
    ),
    "table of floats": (
        lambda: HardNegatives(table=torch.zeros(3, 2)),
        ValueError,
        r"^`table` must be integers of shape \(n, k\)",
    ),
    "table of booleans": (
        lambda: HardNegatives(table=torch.ones(3, 2).bool()),
        ValueError,
        "^`table` must be integers of shape",
    ),
    "table of others": (
        lambda: HardNegatives(table=torch.zeros(3, 1).long()).candidates(TARGET, 4, 2),
        ValueError,
        r"^`table` must be for 4 classes, got 3; list the competitors of all classes, in their order",
    ),
    "rest of another type": (
        lambda: HardNegatives(table=torch.zeros(3, 1).long(), rest="uniform"),
        (TypeError, ValueError),
        "^`rest` must be a `Proposal`, got",
    ),
}


@pytest.mark.parametrize(("act", "error", "words"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(act: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act()


@pytest.mark.parametrize("number", (0, -3, True, 2.0, "8", None))
def test_numbers_of_samples_that_are_none(number: object) -> None:
    with pytest.raises(ValueError, match=rf"^`num_samples` must be a positive integer, got {number!r}; for example 64$"):
        check_num_samples(number)
    check_num_samples(1)
