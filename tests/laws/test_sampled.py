"""Sampled losses against the exact ones: over all draws that there are, over many of them, and as draws grow more."""

import copy
import itertools
import math
from collections.abc import Callable

import pytest
import torch
from scipy.stats import norm
from torch import Tensor

from linearcore import LinearCore, multiclass_loss, sampled_multiclass_loss
from linearcore.heads import LinearCoreChain
from linearcore.losses import LogOdds, SampledEstimate, sampled_multiclass_estimate
from linearcore.proposals import HardNegatives, InBatch, LogUniform, Mixture, Proposal, Uniform, Unigram
from linearcore.structures import Constraints, Hamming
from tests.cases import each

NUM_CLASSES, WIDTH = 4, 2
COUNTS = torch.tensor([0, 9, 2, 4])
TABLE = torch.tensor([[1, 0], [3, 3], [0, 1], [2, 2]])

LAWS: dict[str, Callable[[bool], Proposal]] = {
    "uniform": lambda shared: Uniform(shared=shared),
    "unigram": lambda shared: Unigram(shared=shared, counts=COUNTS),
    "log uniform": lambda shared: LogUniform(shared=shared),
    "mixture": lambda shared: Mixture(shared=shared, parts=(Unigram(counts=COUNTS), LogUniform()), weights=(1, 2)),
    "hard": lambda shared: HardNegatives(shared=shared, table=TABLE, rest=LogUniform()),
    "in batch": lambda shared: InBatch(shared=shared, rest=LogUniform()),
}
every_law = pytest.mark.parametrize("make", LAWS.values(), ids=LAWS.keys())
shared_or_not = pytest.mark.parametrize("shared", (True, False), ids=("shared", "own"))
Found = list[Tensor]


class Forgetful(Unigram):
    """Draws by frequency and weighs as if all classes were alike."""

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return Uniform().log_prob(index, num_classes)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(shape, dtype=torch.float64, generator=stream(seed))


def with_gradients(loss: Tensor, leaves: list[Tensor]) -> Found:
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


def told(proposal: Proposal, draws: tuple[int, ...]) -> Proposal:
    """The proposal, with these draws in every row."""
    proposal = copy.copy(proposal)
    object.__setattr__(proposal, "sample", lambda size, *_: torch.tensor(draws).expand(size).contiguous())
    return proposal


def expected(proposal: Proposal, estimate: Callable[[Proposal, int], Found], num_samples: int = 2) -> Found:
    """The mean over all draws, each with its probability. Rows that draw on their own are added, so that this holds too."""
    law = proposal.log_prob(torch.arange(NUM_CLASSES), NUM_CLASSES).double().exp().tolist()
    if isinstance(proposal, Forgetful):
        law = Unigram.log_prob(proposal, torch.arange(NUM_CLASSES), NUM_CLASSES).double().exp().tolist()
    total: Found = []
    for draws in itertools.product(range(NUM_CLASSES), repeat=num_samples):
        share = math.prod(law[v] for v in draws)
        parts = [share * part for part in estimate(told(proposal, draws), num_samples)]
        total = [a + b for a, b in zip(total, parts, strict=True)] if total else parts
    return total


def agree(found: Found, exact: Found) -> bool:
    """As far as weights in float32 go."""
    return all(torch.allclose(ours, right, rtol=1e-5, atol=1e-5) for ours, right in zip(found, exact, strict=True))


# Multi-class.

TARGET = torch.tensor([0, 3, 1, -100, 1, 2])
#: All classes leave `InBatch` nothing to draw. Here 2 is drawn, and 0 is in the batch for the ignored row alone.
FEW = torch.tensor([3, 3, 1, -100, 1, 3])
SAMPLE_WEIGHT = torch.tensor([1.0, 0.5, 2.0, 9.0, 0.0, 1.5]).double()
LOSSES: dict[str, dict[str, object]] = {
    "sum": {"normalize": False, "reduction": "sum"},
    "mean": {"normalize": True, "reduction": "mean"},
    "weighted": {"reduction": "mean", "sample_weight": SAMPLE_WEIGHT},
    "two-sided": {"surrogate": LinearCore("exponential", 0.3, 2), "reduction": "sum"},
    "rising": {"surrogate": LinearCore("quartic", 0.5), "normalize": False, "reduction": "sum"},
}


def leaves_of_loss() -> list[Tensor]:
    shapes = ((len(TARGET), WIDTH), (NUM_CLASSES, WIDTH), (NUM_CLASSES,))
    return [drawn(*shape, seed=place).requires_grad_() for place, shape in enumerate(shapes)]


def dense_loss(target: Tensor = TARGET, **options: object) -> Found:
    hidden, weight, bias = leaves = leaves_of_loss()
    return with_gradients(multiclass_loss(hidden @ weight.t() + bias, target, form="pairwise", **options), leaves)


def sampled_loss(
    proposal: Proposal,
    num_samples: int,
    generator: torch.Generator | None = None,
    target: Tensor = TARGET,
    **options: object,
) -> Found:
    hidden, weight, bias = leaves = leaves_of_loss()
    loss = sampled_multiclass_loss(
        hidden, weight, target, linear_bias=bias, form="pairwise", proposal=proposal, num_samples=num_samples,
        sparse=False, generator=generator, **options,
    )  # fmt: skip
    return with_gradients(loss, leaves)


@every_law
@shared_or_not
@pytest.mark.parametrize("options", LOSSES.values(), ids=LOSSES.keys())
def test_the_mean_over_all_draws_is_the_loss(
    make: Callable[[bool], Proposal], shared: bool, options: dict[str, object]
) -> None:
    """And so are the means of its gradients by hidden states, weight and bias."""
    found = expected(make(shared), lambda law, num_samples: sampled_loss(law, num_samples, **options))
    assert agree(found, dense_loss(**options))


@shared_or_not
@pytest.mark.parametrize("options", LOSSES.values(), ids=LOSSES.keys())
def test_the_mean_over_all_draws_is_the_loss_where_a_class_is_not_in_the_batch(
    shared: bool, options: dict[str, object]
) -> None:
    options = {"target": FEW, **options}
    found = expected(LAWS["in batch"](shared), lambda law, num_samples: sampled_loss(law, num_samples, **options))
    assert agree(found, dense_loss(**options))


@shared_or_not
@pytest.mark.parametrize("num_samples", (1, 3))
def test_the_mean_over_all_draws_is_the_loss_with_one_and_with_three(shared: bool, num_samples: int) -> None:
    found = expected(LAWS["hard"](shared), sampled_loss, num_samples)
    assert agree(found, dense_loss())


@shared_or_not
def test_the_mean_over_all_draws_sees_a_wrong_weight(shared: bool) -> None:
    assert not agree(expected(Forgetful(shared=shared, counts=COUNTS), sampled_loss), dense_loss())


REPEATS, NUM_SAMPLES = 600, 3
#: Of a wrong alarm, for all that one test looks at together; the seeds are fixed.
ALPHA = 1e-4


def is_unbiased(estimates: list[Found], exact: Found) -> bool:
    """z-tests of every coordinate's mean, Bonferroni's correction; what does not vary must be exact."""
    rows = torch.stack([torch.cat([part.reshape(-1) for part in found]) for found in estimates])
    error = rows.mean(0) - torch.cat([part.reshape(-1) for part in exact])
    deviation = rows.std(0) / math.sqrt(len(rows))
    constant = deviation <= 1e-7
    bound = norm.isf(ALPHA / (2 * len(error)))
    return bool((error[constant].abs() <= 1e-5).all() and (error.abs() <= bound * deviation)[~constant].all())


def each_proposal(argument: str, full: Tensor, few: Tensor) -> pytest.MarkDecorator:
    """Every proposal, with shared and with own samples, for the `full` and the `few` targets."""
    cases = {
        f"{name}-{'shared' if shared else 'own'}-{which}": (make, shared, targets)
        for name, make in LAWS.items()
        for shared in (True, False)
        for which, targets in (("all", full), ("few", few))
    }
    short = (*(f"{name}-shared-all" for name in LAWS), "in batch-own-few", "hard-own-few")
    return each(("make", "shared", argument), cases, short)


@each_proposal("target", TARGET, FEW)
def test_real_draws_are_unbiased(make: Callable[[bool], Proposal], shared: bool, target: Tensor) -> None:
    generator = stream(1)
    found = [sampled_loss(make(shared), NUM_SAMPLES, generator, target) for _ in range(REPEATS)]
    assert is_unbiased(found, dense_loss(target))


@shared_or_not
def test_as_many_real_draws_see_a_wrong_weight(shared: bool) -> None:
    generator, wrong = stream(1), Forgetful(shared=shared, counts=COUNTS)
    assert not is_unbiased([sampled_loss(wrong, NUM_SAMPLES, generator) for _ in range(REPEATS)], dense_loss())


# Chains.

#: One a chain: on to the end, cut off, with holes. The tag of −100 is a hole in the first and comes in front of the last.
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 1, 1], [1, 1, 1, 1, 0]]).bool().t()
TAGS = torch.tensor([[0, 2, -100, 3, 1], [3, 3, 0, 0, 0], [1, -7, 99, 0, 3], [-100, 2, 0, 2, 0]]).t()
#: Without tag 2, and with 0 under the mask alone.
FEW_TAGS = torch.tensor([[3, 1, -100, 3, 1], [3, 3, 0, 0, 0], [1, -7, 99, 3, 3], [-100, 3, 1, 3, 0]]).t()
#: The tags above obey.
CONSTRAINTS = Constraints.forbid(NUM_CLASSES, pairs=[(1, 1), (2, 1), (0, 0), (3, 2)], start=[], end=[0])
TAG_WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.25], dtype=torch.float64)
HEADS: dict[str, dict[str, object]] = {
    "free": {},
    "mean": {"normalize": True},
    "batch first": {"batch_first": True},
    "constrained": {"constraints": CONSTRAINTS},
    "constrained mean": {"constraints": CONSTRAINTS, "normalize": True},
    "constrained rising": {"constraints": CONSTRAINTS, "surrogate": LinearCore("quartic", 0.5)},
    "low rank": {"rank": 2},
    "low rank constrained": {"rank": 2, "constraints": CONSTRAINTS, "batch_first": True},
    "weighted": {"cost": Hamming(TAG_WEIGHT)},
}
UPSTREAM = torch.tensor([1.0, -2.0, 0.5, 3.0]).double()


def head_of(**options: object) -> LinearCoreChain:
    head = LinearCoreChain(NUM_CLASSES, form="pairwise", **options).double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=5 + place)
    return head


def leaves_of_head(head: LinearCoreChain) -> list[Tensor]:
    shapes = ((*TAGS.shape, WIDTH), (NUM_CLASSES, WIDTH), (NUM_CLASSES,))
    given = [drawn(*shape, seed=place).requires_grad_() for place, shape in enumerate(shapes)]
    return [*given, *head.parameters()]


def turned(head: LinearCoreChain, tensor: Tensor) -> Tensor:
    return tensor.transpose(0, 1) if head.batch_first else tensor


def dense_head(head: LinearCoreChain, tags: Tensor = TAGS) -> Found:
    hidden, weight, bias, *_ = leaves = leaves_of_head(head)
    emissions, tags, mask = (turned(head, part) for part in (hidden @ weight.t() + bias, tags, MASK))
    return with_gradients((UPSTREAM * -head(emissions, tags, mask, reduction="none")).sum(), leaves)


def sampled_head(
    head: LinearCoreChain,
    proposal: Proposal,
    num_samples: int,
    generator: torch.Generator | None = None,
    tags: Tensor = TAGS,
) -> Found:
    hidden, weight, bias, *_ = leaves = leaves_of_head(head)
    states, tags, mask = (turned(head, part) for part in (hidden, tags, MASK))
    losses = head.sampled_loss(
        states, (weight, bias), tags, mask, proposal=proposal, num_samples=num_samples, reduction="none", sparse=False,
        generator=generator,
    )  # fmt: skip
    return with_gradients((UPSTREAM * losses).sum(), leaves)


@shared_or_not
@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS.keys())
@pytest.mark.parametrize("make", (LAWS["mixture"], LAWS["hard"]), ids=("mixture", "hard"))
def test_the_mean_over_all_draws_is_the_loss_of_a_chain(
    make: Callable[[bool], Proposal], shared: bool, options: dict[str, object]
) -> None:
    """And so are the means of its gradients by hidden states, projection and all parameters."""
    head = head_of(**options)
    found = expected(make(shared), lambda law, num_samples: sampled_head(head, law, num_samples))
    assert agree(found, dense_head(head))


@shared_or_not
@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS.keys())
def test_the_mean_over_all_draws_is_the_loss_of_a_chain_where_a_tag_is_not_in_the_batch(
    shared: bool, options: dict[str, object]
) -> None:
    head = head_of(**options)
    found = expected(LAWS["in batch"](shared), lambda law, num_samples: sampled_head(head, law, num_samples, tags=FEW_TAGS))
    assert agree(found, dense_head(head, FEW_TAGS))


@each_proposal("tags", TAGS, FEW_TAGS)
def test_real_draws_are_unbiased_for_a_chain(make: Callable[[bool], Proposal], shared: bool, tags: Tensor) -> None:
    head, generator = head_of(), stream(2)
    found = [sampled_head(head, make(shared), NUM_SAMPLES, generator, tags) for _ in range(REPEATS // 2)]
    assert is_unbiased(found, dense_head(head, tags))


def test_as_many_real_draws_see_a_wrong_weight_of_a_chain() -> None:
    head, generator, wrong = head_of(), stream(2), Forgetful(shared=False, counts=COUNTS)
    found = [sampled_head(head, wrong, NUM_SAMPLES, generator) for _ in range(REPEATS // 2)]
    assert not is_unbiased(found, dense_head(head))


# Log-odds.


def test_log_odds_err_low_by_half_the_relative_variance() -> None:
    """In the core φ falls with slope 1, so that what the loss lacks is what the logarithm of the sum lacks: v/(2K)."""
    num_classes, rows = 200, 40_000
    scores = torch.randn(num_classes, 1, generator=stream())
    scores[0] = -5.0
    exact = multiclass_loss(scores.t(), torch.zeros(1).long(), form="logodds").item()
    exponentials = scores[1:, 0].double().exp()
    # Of n·e^{s_v}·1[v≠y] for v uniform, the label having no part in it.
    variance = num_classes * (exponentials**2).sum() / exponentials.sum() ** 2 - 1
    hidden, target, generator = torch.ones(rows, 1), torch.zeros(rows).long(), stream(1)
    for num_samples in (8, 32, 128):
        found = sampled_multiclass_loss(
            hidden, scores, target, proposal=Uniform(shared=False), num_samples=num_samples, generator=generator
        ).item()
        assert num_samples * (exact - found) == pytest.approx(variance.item() / 2, rel=0.35)


class Uncorrected(Uniform):
    """Weighs each of K draws 1."""

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return torch.full(index.shape, -math.log(index.shape[-1]))


def test_log_odds_of_many_classes_from_a_few() -> None:
    """Wide normal scores, n = 4000 and K = 256: 2.06 where 2.39 is exact, and 0.30 without the weights (SPEC, 4)."""
    num_classes, num_samples, width, rows = 4000, 256, 32, 1500
    weight, bias = torch.randn(num_classes, width, generator=stream()), torch.zeros(num_classes)
    weight[0], bias[0] = 0.0, 12.7
    hidden = torch.randn(rows, width, generator=stream(1))
    hidden = 3 * hidden / hidden.norm(dim=-1, keepdim=True)
    target = torch.zeros(rows).long()
    assert multiclass_loss(hidden @ weight.t() + bias, target).item() == pytest.approx(2.39, abs=0.1)
    for proposal, expected_loss in ((Uniform(shared=False), 2.06), (Uncorrected(shared=False), 0.30)):
        found = sampled_multiclass_loss(
            hidden, weight, target, linear_bias=bias, proposal=proposal, num_samples=num_samples, generator=stream(2)
        )
        assert found.item() == pytest.approx(expected_loss, abs=0.1)


# The estimate of the variance.


def told_estimate(estimate: SampledEstimate) -> Found:
    """Loss, its square and the variance that it reports, flat."""
    loss = estimate.loss.detach().reshape(-1)
    return [loss, loss.square(), estimate.variance.reshape(-1)]


def reports_its_variance(found: Found, rtol: float = 1e-5) -> bool:
    """Whether the mean of the reported variances is the variance of the losses, which is not 0."""
    mean, square, reported = found
    exact = square - mean.square()
    return bool(exact.max() > 1e-3) and torch.allclose(reported, exact, rtol=rtol, atol=1e-5)


def row_estimate(proposal: Proposal, num_samples: int, **options: object) -> SampledEstimate:
    hidden, weight, bias = leaves_of_loss()
    options = {"form": "pairwise", "target": TARGET} | options
    target = options.pop("target")
    return sampled_multiclass_estimate(
        hidden, weight, target, linear_bias=bias, proposal=proposal, num_samples=num_samples, **options
    )


def chain_estimate(head: LinearCoreChain, proposal: Proposal, num_samples: int, reduction: str) -> SampledEstimate:
    hidden, weight, bias, *_ = leaves_of_head(head)
    states, tags, mask = (turned(head, part) for part in (hidden, TAGS, MASK))
    return head.sampled_estimate(
        states, (weight, bias), tags, mask, proposal=proposal, num_samples=num_samples, reduction=reduction
    )


@every_law
@pytest.mark.parametrize("reduction", ("none", "sum", "mean"))
@pytest.mark.parametrize("weight", (None, SAMPLE_WEIGHT), ids=("plain", "weighted"))
def test_the_variance_of_a_pairwise_loss_is_reported_without_bias(
    make: Callable[[bool], Proposal], reduction: str, weight: Tensor | None
) -> None:
    """Over all draws, which the rows share; 0 is drawn and in the batch for the ignored row alone."""
    options = {"reduction": reduction, "sample_weight": weight, "target": FEW, "normalize": False}
    found = expected(make(True), lambda law, samples: told_estimate(row_estimate(law, samples, **options)), 3)
    assert reports_its_variance(found)


@every_law
def test_the_variance_of_rows_with_their_own_draws(make: Callable[[bool], Proposal]) -> None:
    """Of each row: over all draws all rows happen to draw the same here, which only matters to their sum."""
    options = {"reduction": "none", "target": FEW, "normalize": True}
    assert reports_its_variance(expected(make(False), lambda law, k: told_estimate(row_estimate(law, k, **options))))


@pytest.mark.parametrize("reduction", ("none", "sum", "mean", "token_mean"))
@pytest.mark.parametrize("options", HEADS.values(), ids=HEADS.keys())
def test_the_variance_of_a_chain_is_reported_without_bias(reduction: str, options: dict[str, object]) -> None:
    head = head_of(**options)
    found = expected(LAWS["mixture"](True), lambda law, k: told_estimate(chain_estimate(head, law, k, reduction)))
    assert reports_its_variance(found)


@shared_or_not
@pytest.mark.parametrize("unary", (0.0, 0.5))
def test_the_variance_of_log_odds_is_right_to_first_order(shared: bool, unary: float) -> None:
    """For many samples of real draws: within a tenth, also for rows that draw on their own."""
    head, generator, law = head_of(unary=unary), stream(3), LAWS["unigram"](shared)
    head.form = LogOdds()
    hidden, weight, bias, *_ = leaves_of_head(head)
    estimates = [
        head.sampled_estimate(hidden, (weight, bias), TAGS, MASK, proposal=law, num_samples=200, generator=generator)
        for _ in range(500)
    ]
    losses, reported = (torch.stack(column).detach() for column in list(zip(*estimates, strict=True))[:2])
    assert reported.mean().item() == pytest.approx(losses.var().item(), rel=0.2)


# Variance.


def gradient_variance(features: Tensor, theta: Tensor, num_samples: int, rows: int = 4000) -> float:
    """E‖g − E g‖² of the gradient by θ of the mean over competitors of class 0, for scores θ·Ψ(v)."""
    hidden = theta.expand(rows, -1).clone().requires_grad_()
    sampled_multiclass_loss(
        hidden, features, torch.zeros(rows).long(), proposal=Uniform(shared=False), num_samples=num_samples, form="pairwise",
        reduction="sum", sparse=False, generator=stream(3),
    ).backward()  # fmt: skip
    return hidden.grad.double().var(0).sum().item()


def on_the_sphere(num_classes: int, radius: float = 1.0) -> Tensor:
    features = torch.randn(num_classes, 8, generator=stream(4))
    return radius * features / features.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("scale", (0.1, 3.0), ids=("core", "beyond"))
def test_variance_falls_with_the_number_of_draws(scale: float) -> None:
    features, theta = on_the_sphere(100), scale * torch.ones(8)
    found = [num_samples * gradient_variance(features, theta, num_samples) for num_samples in (2, 8, 32)]
    assert max(found) / min(found) < 1.25


@pytest.mark.parametrize("scale", (0.0, 0.3, 3.0), ids=("core", "edge", "beyond"))
@pytest.mark.parametrize("radius", (1.0, 2.0))
def test_variance_is_bounded_and_does_not_grow_with_the_classes(scale: float, radius: float) -> None:
    """R² Lip²/K around a fixed truth, times (n/(n − 1))² since the truth is drawn too; in the core it is attained."""
    num_samples, theta, found = 4, scale * torch.ones(8) / math.sqrt(8), []
    for num_classes in (10, 100, 1000, 10_000):
        variance = gradient_variance(on_the_sphere(num_classes, radius), theta, num_samples)
        bound = (radius * LinearCore().lipschitz * num_classes / (num_classes - 1)) ** 2 / num_samples
        assert variance <= 1.03 * bound
        found.append(variance)
    if scale < 1:
        assert max(found) / min(found) < 1.25
    if scale == 0:
        assert variance > 0.95 * bound
