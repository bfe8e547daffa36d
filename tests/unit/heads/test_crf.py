"""ChainCRF against all sequences written out, and call by call against torchcrf.CRF, whose place it takes."""

import itertools
import math
import random
from collections.abc import Callable

import pytest
import torch
import torchcrf
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from linearcore.heads import ChainCRF
from linearcore.structures import Constraints
from tests.chains import Case, cases, every_sequence, log_sum, marginals, ragged, random_case, score_of, sites

drawn = settings(max_examples=60)
both_layouts = pytest.mark.parametrize("batch_first", (False, True), ids=("time_first", "batch_first"))
both_dtypes = pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=("float32", "float64"))
every_reduction = pytest.mark.parametrize("reduction", ("none", "sum", "mean", "token_mean"))


def parameters(head: nn.Module) -> tuple[nn.Parameter, ...]:
    """In the order of `Chain`."""
    return head.start_transitions, head.transitions, head.end_transitions


def head_of(case: Case, batch_first: bool) -> ChainCRF:
    """What is −inf in the case's chain is a constraint of the head."""
    start, transitions, end = (part > -math.inf for part in case.chain)
    num_tags = case.emissions.shape[-1]
    head = ChainCRF(num_tags, batch_first, constraints=Constraints(transitions, start, end)).double()
    with torch.no_grad():
        for parameter, part in zip(parameters(head), case.chain, strict=True):
            parameter.copy_(part.masked_fill(part == -math.inf, 7.0))
    return head


def some_tags(case: Case, seed: int, junk: int = 99) -> Tensor:
    """(L, B): allowed tags, junk where masked."""
    tags = torch.full_like(case.mask, junk, dtype=torch.long)
    for row in range(case.mask.shape[1]):
        allowed = [tags for score, tags in every_sequence(case, row) if score > -math.inf]
        tags[sites(case.mask, row), row] = torch.tensor(random.Random(seed).choice(allowed), dtype=torch.long)
    return tags


def own_scores(case: Case, tags: Tensor) -> Tensor:
    """(B,): h(x, y), for autograd to go through."""
    scores = []
    for row in range(case.mask.shape[1]):
        times = sites(case.mask, row)
        own = tags[times, row]
        score = case.emissions[times, row, own].sum() + case.chain.start[own[0]] + case.chain.end[own[-1]]
        scores.append(score + case.chain.transitions[own[:-1], own[1:]].sum())
    return torch.stack(scores)


def turned(tensor: Tensor, batch_first: bool) -> Tensor:
    return tensor.transpose(0, 1) if batch_first else tensor


@both_layouts
@given(case=cases(), seed=st.integers(0, 99))
@drawn
def test_log_likelihood_and_its_gradients(case: Case, batch_first: bool, seed: int) -> None:
    head, tags = head_of(case, batch_first), some_tags(case, seed)
    emissions = turned(case.emissions, batch_first).clone().requires_grad_()
    found = head(emissions, turned(tags, batch_first), turned(case.mask, batch_first), reduction="none")

    leaves = case.leaves()
    right = own_scores(leaves, tags) - log_sum(leaves)
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-11)

    weights = torch.arange(1, len(right) + 1, dtype=torch.float64).sin()
    gradients = torch.autograd.grad(found, (emissions, *parameters(head)), weights)
    expected = torch.autograd.grad(right, leaves.scores, weights, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(turned(gradients[0], batch_first), expected[0], rtol=1e-11, atol=1e-11)
    for gradient, one in zip(gradients[1:], expected[1:], strict=True):
        torch.testing.assert_close(gradient, one, rtol=1e-11, atol=1e-11)


@both_layouts
@given(case=cases())
@drawn
def test_marginals_and_confidence(case: Case, batch_first: bool) -> None:
    head = head_of(case, batch_first)
    given_ = turned(case.emissions, batch_first), turned(case.mask, batch_first)
    found, right = turned(head.marginals(*given_), batch_first), marginals(case)
    torch.testing.assert_close(found, right, rtol=1e-11, atol=1e-12)
    tags = turned(head.viterbi(*given_)[0], batch_first)
    expected = right.gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(turned(head.confidence(*given_), batch_first), expected, rtol=1e-11, atol=1e-12)


@both_layouts
@given(case=cases(), k=st.sampled_from((1, 3, 300)))
@drawn
def test_decoding(case: Case, batch_first: bool, k: int) -> None:
    head, num_tags = head_of(case, batch_first), case.emissions.shape[-1]
    emissions, mask = turned(case.emissions, batch_first), turned(case.mask, batch_first)
    tags, scores = head.viterbi(emissions, mask)
    best_tags, best_scores = head.kbest(emissions, mask, k=k)
    assert tags.shape == mask.shape and best_tags.shape == (k, *mask.shape) and best_scores.shape == (k, case.mask.shape[1])
    torch.testing.assert_close(head.beam(emissions, mask, width=num_tags)[1], scores)
    lists = head.decode(emissions, mask)
    assert [len(one) for one in lists] == case.mask.sum(0).tolist()
    for row, (one, score) in enumerate(zip(lists, scores.tolist(), strict=True)):
        right = sorted((score for score, _ in every_sequence(case, row) if score > -math.inf), reverse=True)[:k]
        assert score == pytest.approx(right[0], abs=1e-11) and score_of(case, row, one) == pytest.approx(right[0], abs=1e-11)
        assert turned(tags, batch_first)[sites(case.mask, row), row].tolist() == one
        assert best_scores[:, row].tolist() == pytest.approx(right + [-math.inf] * (k - len(right)), abs=1e-11)
        different = {tuple((turned(one, batch_first))[:, row].tolist()) for one in best_tags[: len(right)]}
        assert len(different) == len(right)
        assert (best_tags[len(right) :].select(1 if batch_first else 2, row) == -100).all()


# torchcrf.


def peers(num_tags: int, batch_first: bool, dtype: torch.dtype, seed: int = 0) -> tuple[torchcrf.CRF, ChainCRF]:
    """Both with the same scores, larger than what they begin with."""
    theirs, ours = torchcrf.CRF(num_tags, batch_first).to(dtype), ChainCRF(num_tags, batch_first).to(dtype)
    with torch.no_grad():
        for parameter in parameters(theirs):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)))
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


BIG = random_case(0, 30, 5, 40, ragged((30, 28, 17, 2, 1)))
BIG_TAGS = torch.randint(40, (30, 5), generator=torch.Generator().manual_seed(1))


@both_layouts
@both_dtypes
@every_reduction
@pytest.mark.parametrize("masked", (False, True), ids=("full", "ragged"))
def test_values_and_gradients_are_those_of_torchcrf(
    batch_first: bool, dtype: torch.dtype, reduction: str, masked: bool
) -> None:
    tags, mask = turned(BIG_TAGS, batch_first), turned(BIG.mask if masked else torch.ones_like(BIG.mask), batch_first)
    results = []
    for head in peers(40, batch_first, dtype):
        emissions = turned(BIG.emissions.to(dtype), batch_first).clone().requires_grad_()
        value = head(emissions, tags, mask=mask, reduction=reduction)
        upstream = torch.ones_like(value).cumsum(0) if value.dim() else torch.ones_like(value)
        results.append((value, *torch.autograd.grad(value, (emissions, *parameters(head)), upstream)))
    tolerance = 1e-11 if dtype == torch.float64 else 2e-5
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@both_layouts
@both_dtypes
def test_decoded_lists_are_those_of_torchcrf(batch_first: bool, dtype: torch.dtype) -> None:
    theirs, ours = peers(40, batch_first, dtype)
    emissions, mask = turned(BIG.emissions.to(dtype), batch_first), turned(BIG.mask, batch_first)
    assert ours.decode(emissions, mask) == ours.decode(emissions, mask=mask) == theirs.decode(emissions, mask=mask)
    assert ours.decode(emissions) == theirs.decode(emissions, mask=torch.ones_like(mask))


@both_layouts
@pytest.mark.parametrize("dtype", (torch.bool, torch.uint8, torch.long, torch.float32))
def test_masks_of_zeros_and_ones(batch_first: bool, dtype: torch.dtype) -> None:
    theirs, ours = peers(40, batch_first, torch.float64)
    emissions, tags, mask = (turned(part, batch_first) for part in (BIG.emissions, BIG_TAGS, BIG.mask))
    for reduction in ("sum", "token_mean"):
        right = theirs(emissions, tags, mask=mask, reduction=reduction)
        torch.testing.assert_close(ours(emissions, tags, mask.to(dtype), reduction), right, rtol=1e-12, atol=1e-12)
    assert ours.decode(emissions, mask.to(dtype)) == theirs.decode(emissions, mask=mask)
    assert torch.equal(ours.marginals(emissions, mask.to(dtype)), ours.marginals(emissions, mask))


def test_the_same_seed_draws_the_same_parameters() -> None:
    heads = []
    for kind in (torchcrf.CRF, ChainCRF):
        torch.manual_seed(3)
        heads.append(kind(7))
    theirs, ours = heads
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, parameter in theirs.named_parameters():
        assert torch.equal(dict(ours.named_parameters())[name], parameter)
    for head in heads:
        torch.manual_seed(4)
        head.reset_parameters()
    assert torch.equal(ours.transitions, theirs.transitions)


def test_states_load_both_ways() -> None:
    theirs, ours = torchcrf.CRF(5), ChainCRF(5)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    assert torch.equal(ours.transitions, theirs.transitions)
    theirs.load_state_dict(ChainCRF(5, constraints=Constraints.forbid(5, [(0, 1)])).state_dict(), strict=True)


@both_layouts
def test_attributes_and_repr(batch_first: bool) -> None:
    theirs, ours = torchcrf.CRF(5, batch_first=batch_first), ChainCRF(5, batch_first=batch_first)
    assert (ours.num_tags, ours.batch_first) == (theirs.num_tags, theirs.batch_first) == (5, batch_first)
    assert repr(ChainCRF(5)) == "Chain" + repr(theirs) and repr(ours).startswith("ChainCRF(num_tags=5")


def test_one_step_of_training_is_the_same() -> None:
    """torchcrf's own example: the negated output is the loss."""
    states = []
    for head in peers(40, False, torch.float64):
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        loss = -head(BIG.emissions, BIG_TAGS, mask=BIG.mask, reduction="mean")
        assert loss > 0
        loss.backward()
        optimizer.step()
        states.append(head.state_dict())
    torch.testing.assert_close(dict(states[1]), dict(states[0]), rtol=1e-12, atol=1e-12)


ONES = torch.ones(3, 2, dtype=torch.bool)
OFF = torch.tensor([[True, False], [True, True], [True, True]])
SCORES, TAGS = torch.zeros(3, 2, 5), torch.zeros(3, 2, dtype=torch.long)

MISUSES: dict[str, Callable[[Callable[..., nn.Module]], object]] = {
    "no tags": lambda crf: crf(0),
    "fewer than no tags": lambda crf: crf(-1, batch_first=True),
    "emissions of 2 dimensions": lambda crf: crf(5)(SCORES[0], TAGS),
    "emissions of 4 dimensions": lambda crf: crf(5)(SCORES[None], TAGS),
    "last dimension": lambda crf: crf(6)(SCORES, TAGS),
    "shape of tags": lambda crf: crf(5)(SCORES, TAGS[:2]),
    "layout of tags": lambda crf: crf(5)(SCORES, TAGS.t()),
    "shape of mask": lambda crf: crf(5)(SCORES, TAGS, mask=ONES[:, :1]),
    "dimension of mask": lambda crf: crf(5)(SCORES, TAGS, mask=ONES[0]),
    "first position off": lambda crf: crf(5)(SCORES, TAGS, mask=OFF),
    "first position off, batch first": lambda crf: crf(5, batch_first=True)(SCORES, TAGS, mask=~OFF[[1, 0, 2]]),
    "reduction": lambda crf: crf(5)(SCORES, TAGS, mask=ONES, reduction="foo"),
    "decode emissions of 2 dimensions": lambda crf: crf(5).decode(SCORES[0]),
    "decode last dimension": lambda crf: crf(6).decode(SCORES),
    "decode shape of mask": lambda crf: crf(5).decode(SCORES, mask=ONES[:2]),
    "decode first position off": lambda crf: crf(5).decode(SCORES, mask=OFF),
    "decode first position off, batch first": lambda crf: crf(5, batch_first=True).decode(SCORES, mask=~ONES),
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES.keys())
def test_messages_are_those_of_torchcrf_and_say_what_to_do(misuse: Callable[[Callable[..., nn.Module]], object]) -> None:
    with pytest.raises(Exception) as theirs:
        misuse(torchcrf.CRF)
    with pytest.raises(theirs.type) as ours:
        misuse(ChainCRF)
    assert ours.type is theirs.type
    assert str(ours.value).startswith(f"{theirs.value}; ") and len(str(ours.value)) > len(str(theirs.value)) + 10


# Beyond torchcrf.

SMALL = random_case(2, 5, 3, 4)
SMALL_TAGS = torch.tensor([[0, -100, 3], [1, -100, 2], [-100, 2, 1], [2, 1, -100], [3, 0, -100]])


def with_parameter_gradients(head: ChainCRF, emissions: Tensor, tags: Tensor, mask: Tensor | None) -> list[Tensor]:
    emissions = emissions.clone().requires_grad_()
    value = head(emissions, tags, mask, reduction="none")
    return [value.detach(), *torch.autograd.grad(value.sum(), (emissions, *parameters(head)))]


@both_layouts
def test_a_tag_of_minus_100_is_a_position_that_is_not_there(batch_first: bool) -> None:
    """In front, in between or behind: the chain is the one without it."""
    _, head = peers(4, batch_first, torch.float64)
    found = head(turned(SMALL.emissions, batch_first), turned(SMALL_TAGS, batch_first), reduction="none")
    for row, value in enumerate(found):
        there = SMALL_TAGS[:, row] != -100
        emissions, tags = SMALL.emissions[there, row].unsqueeze(1), SMALL_TAGS[there, row].unsqueeze(1)
        torch.testing.assert_close(value, head(turned(emissions, batch_first), turned(tags, batch_first)))


def test_minus_100_under_a_mask_and_under_none() -> None:
    _, head = peers(4, False, torch.float64)
    mask = (SMALL_TAGS != -100) | (torch.arange(5).unsqueeze(-1) == 0)
    masked = with_parameter_gradients(head, SMALL.emissions, SMALL_TAGS, mask)
    for found, right in zip(masked, with_parameter_gradients(head, SMALL.emissions, SMALL_TAGS, None), strict=True):
        torch.testing.assert_close(found, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", (1.0, 1e4))
def test_chains_without_tags_give_nothing(scale: float) -> None:
    _, head = peers(4, False, torch.float32)
    tags = SMALL_TAGS.clone()
    tags[:, 1] = -100
    value, emissions, *_ = with_parameter_gradients(head, scale * SMALL.emissions.float(), tags, None)
    assert value[1] == 0 and (value[[0, 2]] < 0).all() and (emissions[:, 1] == 0).all()
    everything = with_parameter_gradients(head, scale * SMALL.emissions.float(), torch.full_like(tags, -100), None)
    assert all((part == 0).all() for part in everything)


@both_layouts
@pytest.mark.parametrize(("length", "batch"), ((0, 3), (4, 0)))
def test_no_chains_and_no_positions(batch_first: bool, length: int, batch: int) -> None:
    head = ChainCRF(3, batch_first)
    emissions = turned(torch.zeros(length, batch, 3), batch_first).requires_grad_()
    tags = turned(torch.zeros(length, batch, dtype=torch.long), batch_first)
    for mask in (None, tags.bool()):
        value = head(emissions, tags, mask, reduction="none")
        value.sum().backward()
        assert value.tolist() == [0.0] * batch and head(emissions, tags, mask) == 0
        assert all((part.grad == 0).all() for part in parameters(head)) and emissions.grad.shape == emissions.shape
        assert head.decode(emissions, mask) == [[]] * batch
        assert head.marginals(emissions, mask).shape == emissions.shape
        assert head.viterbi(emissions, mask)[0].shape == tags.shape
        assert head.kbest(emissions, mask, k=2)[0].shape == (2, *tags.shape)


@pytest.mark.parametrize("scale", (1.0, 1e4))
def test_junk_under_the_mask_reaches_nothing(scale: float) -> None:
    _, head = peers(4, False, torch.float64)
    mask = torch.tensor([[True, True, True], [False, True, True], [True, True, False], [False, True, False], [True] * 3])
    tags = SMALL_TAGS.clamp(min=0)
    right = with_parameter_gradients(head, scale * SMALL.emissions, tags, mask)
    junk = (scale * SMALL.emissions).masked_fill(~mask.unsqueeze(-1), math.nan)
    for found, expected in zip(with_parameter_gradients(head, junk, tags.masked_fill(~mask, -7), mask), right, strict=True):
        assert torch.equal(found, expected)
    assert (right[1][~mask] == 0).all() and torch.equal(
        head.marginals(junk, mask), head.marginals(scale * SMALL.emissions, mask)
    )


@pytest.mark.parametrize("factor", (1.0, 1e4))
def test_forbidden_sequences_have_no_probability(factor: float) -> None:
    constraints = Constraints.forbid(4, pairs=[(0, 1), (2, 2)], start=[3], end=[1])
    head = ChainCRF(4, constraints=constraints).double()
    emissions = (factor * SMALL.emissions).requires_grad_()
    value = head(emissions, torch.tensor([[0, 1, 2], [2, 2, 3], [1, 0, 3], [1, 3, 1], [0, 0, 0]]))
    value.backward()
    assert value <= 0 and value.isfinite()
    assert (head.transitions.grad[~constraints.transitions] == 0).all()
    assert head.start_transitions.grad[3] == 0 and head.end_transitions.grad[1] == 0
    assert (head.marginals(emissions)[0, :, 3] == 0).all() and (head.marginals(emissions)[-1, :, 1] == 0).all()
    assert all(constraints.transitions[pair] for one in head.decode(emissions) for pair in itertools.pairwise(one))


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16))
def test_half_precision_emissions_are_computed_in_float32(dtype: torch.dtype) -> None:
    _, head = peers(40, False, torch.float32)
    emissions = BIG.emissions.to(dtype).requires_grad_()
    value = head(emissions, BIG_TAGS, BIG.mask)
    assert value.dtype == torch.float32 and torch.equal(value, head(emissions.float(), BIG_TAGS, BIG.mask))
    assert torch.autograd.grad(value, emissions)[0].dtype == dtype
    assert head.to(dtype)(emissions, BIG_TAGS, BIG.mask).dtype == dtype


def test_low_rank_transitions_are_their_product() -> None:
    torch.manual_seed(0)
    thin, full = ChainCRF(40, rank=3).double(), ChainCRF(40).double()
    with torch.no_grad():
        full.start_transitions.copy_(thin.start_transitions)
        full.end_transitions.copy_(thin.end_transitions)
        full.transitions.copy_(thin.transitions_from @ thin.transitions_to.t())
    torch.testing.assert_close(thin(BIG.emissions, BIG_TAGS, BIG.mask), full(BIG.emissions, BIG_TAGS, BIG.mask))
    assert thin.decode(BIG.emissions, BIG.mask) == full.decode(BIG.emissions, BIG.mask)
