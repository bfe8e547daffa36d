"""What holds for every chain head, whatever its loss.

Laws: gradcheck and gradgradcheck; a batch is a loop over its chains; a suffix that is off is cut off, a hole is no position
and a tag of −100 is a hole; what lies under a mask is not looked at; tags have no order; layouts and reductions agree;
copies are equal; decoding and confidence fit the mask.
"""

import copy
import itertools
import math
import pickle
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.structures import Constraints, Hamming
from linearcore.surrogates import Exponential, LinearCore
from tests.cases import each

NUM_TAGS = 4
#: The tags of the batch below obey.
CONSTRAINTS = Constraints.forbid(NUM_TAGS, pairs=[(1, 1), (2, 1), (0, 0)], start=[], end=[0])
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 1.25])

#: Keywords go through, those that are set here included.
Make = Callable[..., ChainHead]
HEADS: dict[str, Make] = {
    "lc": partial(LinearCoreChain, NUM_TAGS),
    "lc-pairwise": partial(LinearCoreChain, NUM_TAGS, form="pairwise", surrogate=LinearCore("gamma")),
    "lc-centered": partial(LinearCoreChain, NUM_TAGS, form="centered", normalize=True),
    "lc-exponential": partial(LinearCoreChain, NUM_TAGS, surrogate=Exponential()),
    "lc-weighted": partial(LinearCoreChain, NUM_TAGS, cost=Hamming(WEIGHT)),
    "lc-constrained": partial(LinearCoreChain, NUM_TAGS, constraints=CONSTRAINTS),
    "lc-low-rank": partial(LinearCoreChain, NUM_TAGS, rank=2),
    "lc-unary": partial(LinearCoreChain, NUM_TAGS, unary=0.5),
    "lc-unary-constrained": partial(LinearCoreChain, NUM_TAGS, unary=0.25, form="pairwise", constraints=CONSTRAINTS),
    "lc-unary-low-rank": partial(LinearCoreChain, NUM_TAGS, unary=0.75, rank=2, cost=Hamming(WEIGHT)),
    "crf": partial(ChainCRF, NUM_TAGS),
    "crf-constrained": partial(ChainCRF, NUM_TAGS, constraints=CONSTRAINTS),
    "crf-low-rank": partial(ChainCRF, NUM_TAGS, rank=2),
    "ssvm": partial(ChainSSVM, NUM_TAGS),
    "ssvm-zero-one": partial(ChainSSVM, NUM_TAGS, cost="zero-one"),
    "ssvm-weighted": partial(ChainSSVM, NUM_TAGS, cost=Hamming(WEIGHT)),
    "ssvm-constrained": partial(ChainSSVM, NUM_TAGS, constraints=CONSTRAINTS),
    "ssvm-low-rank": partial(ChainSSVM, NUM_TAGS, rank=2),
}
#: One head of each loss, and one for each option.
SHORT = ("lc", "lc-pairwise", "lc-weighted", "lc-constrained", "lc-low-rank", "lc-unary", "crf", "crf-constrained", "ssvm")
every_head = each("make", HEADS, SHORT)

#: One a chain: on to the end, cut off, with holes, one tag alone.
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 0, 0]]).bool().t()
TAGS = torch.tensor([[0, 2, 3, 0, 1], [3, 3, 2, 0, 0], [1, 0, 0, 0, 3], [2, 0, 0, 0, 0]]).t()


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 1.5 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


EMISSIONS = drawn(*TAGS.shape, NUM_TAGS)


def head_of(make: Make, **options: object) -> ChainHead:
    """A head in float64 whose scores are as large as the emissions."""
    head = make(**options).double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=1 + place)
    return head


def results(
    head: ChainHead, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum"
) -> dict[str, Tensor]:
    """Loss and gradients by name."""
    leaf = emissions.detach().clone().requires_grad_()
    loss = -head(leaf, tags, mask, reduction)
    names, parameters = zip(*head.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss.sum(), [leaf, *parameters])
    return {"loss": loss.detach()} | dict(zip(("emissions", *names), gradients, strict=True))


def same(found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 1e-11) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: name + text
        )


@every_head
def test_gradcheck_and_gradgradcheck(make: Make) -> None:
    """By emissions and parameters, with a hole; the hinges are at points where they are smooth."""
    head = head_of(make)
    names, parameters = zip(*head.named_parameters(), strict=True)
    mask, tags = MASK[:4, [0, 2]], TAGS[:4, [0, 2]]
    tags[3] = torch.tensor([1, 3])
    leaves = [EMISSIONS[:4, [0, 2]].clone(), *(parameter.detach().clone() for parameter in parameters)]

    def losses(emissions: Tensor, *parameters: Tensor) -> Tensor:
        state = dict(zip(names, parameters, strict=True))
        return functional_call(head, state, (emissions, tags, mask, "none"))

    for leaf in leaves:
        leaf.requires_grad_()
    assert gradcheck(losses, leaves, fast_mode=True)
    assert gradgradcheck(losses, leaves, fast_mode=True)


@every_head
def test_a_gradient_that_will_be_differentiated_is_the_same(make: Make) -> None:
    head, leaf = head_of(make), EMISSIONS.clone().requires_grad_()
    loss = head(leaf, TAGS, MASK)
    once = torch.autograd.grad(loss, [leaf, *head.parameters()], retain_graph=True)
    again = torch.autograd.grad(loss, [leaf, *head.parameters()], create_graph=True)
    for expected, found in zip(once, again, strict=True):
        torch.testing.assert_close(found.detach(), expected, rtol=1e-11, atol=1e-11)


@every_head
def test_a_batch_is_a_loop_over_its_chains(make: Make) -> None:
    head = head_of(make)
    together = results(head, EMISSIONS, TAGS, MASK, "none")
    alone = [results(head, EMISSIONS[:, [row]], TAGS[:, [row]], MASK[:, [row]], "none") for row in range(TAGS.shape[1])]
    loop = {name: sum(one[name] for one in alone) for name in together if name not in ("loss", "emissions")}
    loop |= {name: torch.cat([one[name] for one in alone], axis) for name, axis in (("loss", 0), ("emissions", 1))}
    same(together, loop)


@every_head
@pytest.mark.parametrize("length", (1, 3))
def test_a_suffix_that_is_off_is_cut_off(make: Make, length: int) -> None:
    head, tags = head_of(make), TAGS[:, :2].clone()
    tags[length - 1] = torch.tensor([3, 2])
    mask = (torch.arange(len(tags)) < length).unsqueeze(-1).expand_as(tags)
    found = results(head, EMISSIONS[:, :2], tags, mask, "none")
    assert (found["emissions"][length:] == 0).all()
    found["emissions"] = found["emissions"][:length]
    same(found, results(head, EMISSIONS[:length, :2], tags[:length], reduction="none"))
    for ours, cut in zip(head.kbest(EMISSIONS[:, :2], mask, k=3), head.kbest(EMISSIONS[:length, :2], k=3), strict=True):
        ours = ours[:, :length] if ours.dim() == 3 else ours
        torch.testing.assert_close(ours, cut)


@every_head
def test_a_hole_is_no_position(make: Make) -> None:
    head, places = head_of(make), [0, 3, 4]
    found = results(head, EMISSIONS[:, [2]], TAGS[:, [2]], MASK[:, [2]])
    assert (found["emissions"][1:3] == 0).all()
    found["emissions"] = found["emissions"][places]
    same(found, results(head, EMISSIONS[places][:, [2]], TAGS[places][:, [2]]))
    tags, score = head.viterbi(EMISSIONS[:, [2]], MASK[:, [2]])
    expected, expected_score = head.viterbi(EMISSIONS[places][:, [2]])
    assert torch.equal(tags[places], expected) and torch.equal(score, expected_score)
    assert tags[1:3].flatten().tolist() == [-100, -100]


@every_head
@pytest.mark.parametrize("dtype", (torch.int64, torch.int32, torch.int16, torch.int8), ids=str)
def test_a_tag_of_minus_100_is_a_hole(make: Make, dtype: torch.dtype) -> None:
    """Without a mask, and beside one, in which case both count."""
    head = head_of(make)
    expected = results(head, EMISSIONS, TAGS, MASK, "none")
    tags = TAGS.masked_fill(~MASK, -100).to(dtype)
    same(results(head, EMISSIONS, tags, reduction="none"), expected)
    same(results(head, EMISSIONS, tags, torch.ones_like(MASK), "none"), expected)
    half = MASK.clone()
    half[3:] = True
    same(results(head, EMISSIONS, TAGS.masked_fill(~MASK & half, -100), half, "none"), expected)


@every_head
def test_a_tag_of_minus_100_may_come_in_front(make: Make) -> None:
    head, tags = head_of(make), TAGS[:, [0]].clone()
    tags[0] = -100
    found = results(head, EMISSIONS[:, [0]], tags)
    assert (found["emissions"][0] == 0).all()
    found["emissions"] = found["emissions"][1:]
    same(found, results(head, EMISSIONS[1:, [0]], tags[1:]))


@every_head
@pytest.mark.parametrize("padding", (math.nan, math.inf, -math.inf, 1e30))
def test_what_is_under_the_mask_is_not_looked_at(make: Make, padding: float) -> None:
    head = head_of(make)
    emissions = EMISSIONS.masked_fill(~MASK.unsqueeze(-1), padding)
    found = results(head, emissions, TAGS.masked_fill(~MASK, 99), MASK, "none")
    assert (found["emissions"][~MASK] == 0).all()
    same(found, results(head, EMISSIONS, TAGS, MASK, "none"))
    for decode in (
        head.viterbi,
        lambda *given: head.kbest(given[0], given[1], k=3),
        lambda *given: head.beam(given[0], given[1], width=3),
    ):
        for ours, clean in zip(decode(emissions, MASK), decode(EMISSIONS, MASK), strict=True):
            assert torch.equal(ours, clean)
    assert torch.equal(head.confidence(emissions, MASK), head.confidence(EMISSIONS, MASK))


@every_head
def test_masks_may_be_numbers(make: Make) -> None:
    head = head_of(make)
    for dtype in (torch.uint8, torch.int64, torch.float32):
        same(results(head, EMISSIONS, TAGS, MASK.to(dtype)), results(head, EMISSIONS, TAGS, MASK))


@every_head
def test_tags_have_no_order(make: Make) -> None:
    head, order = head_of(make), torch.tensor([2, 0, 3, 1])
    options: dict[str, object] = {}
    if head.constraints is not None:
        allowed = head.constraints
        options["constraints"] = Constraints(allowed.transitions[order][:, order], allowed.start[order], allowed.end[order])
    if isinstance(getattr(head, "cost", None), Hamming) and head.cost.weight is not None:
        options["cost"] = Hamming(head.cost.weight[order])
    other = head_of(make, **options)
    for name, parameter in other.named_parameters():
        parameter.data = parameter.data[order][:, order] if name == "transitions" else parameter.data[order]
    found = results(other, EMISSIONS[..., order], order.argsort()[TAGS], MASK, "none")
    expected = results(head, EMISSIONS, TAGS, MASK, "none")
    torch.testing.assert_close(found["loss"], expected["loss"], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found["emissions"], expected["emissions"][..., order], rtol=1e-11, atol=1e-11)


@every_head
def test_both_layouts_agree(make: Make) -> None:
    time_first, batch_first = head_of(make), head_of(make, batch_first=True)
    emissions, tags, mask = EMISSIONS.transpose(0, 1), TAGS.t(), MASK.t()
    found = results(batch_first, emissions, tags, mask, "none")
    found["emissions"] = found["emissions"].transpose(0, 1)
    same(found, results(time_first, EMISSIONS, TAGS, MASK, "none"))
    for name, options in (("viterbi", {}), ("kbest", {"k": 3}), ("beam", {"width": 2})):
        tags, scores = getattr(batch_first, name)(emissions, mask=mask, **options)
        expected, expected_scores = getattr(time_first, name)(EMISSIONS, mask=MASK, **options)
        assert torch.equal(tags, expected.transpose(-1, -2)) and torch.equal(scores, expected_scores)
    assert torch.equal(batch_first.confidence(emissions, mask), time_first.confidence(EMISSIONS, MASK).t())
    assert batch_first.decode(emissions, mask) == time_first.decode(EMISSIONS, MASK)


@every_head
def test_reductions(make: Make) -> None:
    head = head_of(make)
    tags = TAGS.masked_fill(MASK & (TAGS == 1) & (torch.arange(5).unsqueeze(1) == 4), -100)  # One tag less, by −100.
    tokens = int(MASK.sum()) - 1
    if head.constraints is not None:
        tags, tokens = TAGS, tokens + 1
    none, total, mean, token_mean = (head(EMISSIONS, tags, MASK, how) for how in ("none", "sum", "mean", "token_mean"))
    assert none.shape == (4,) and total.shape == mean.shape == token_mean.shape == ()
    torch.testing.assert_close(total, none.sum())
    torch.testing.assert_close(mean, none.mean())
    torch.testing.assert_close(token_mean, none.sum() / tokens)
    assert torch.equal(head(EMISSIONS, tags, MASK), total)
    assert (none <= 0).all() and (none < 0).any()


@every_head
@pytest.mark.parametrize("shape", ((3, 0), (0, 2), (0, 0)), ids=str)
def test_nothing_to_lose(make: Make, shape: tuple[int, int]) -> None:
    """A batch without chains and chains without positions: no loss, no gradients, nothing to decode."""
    head = head_of(make)
    emissions, tags = torch.zeros(*shape, NUM_TAGS).double(), torch.zeros(shape).long()
    for mask in (None, torch.ones(shape).bool()):
        found = results(head, emissions, tags, mask, "none")
        assert found["loss"].shape == shape[1:] and all((value == 0).all() for value in found.values())
        assert head(emissions, tags, mask) == 0
        assert head.decode(emissions, mask) == [[]] * shape[1]
        for decoded, scores in (head.viterbi(emissions, mask), head.beam(emissions, mask, width=2)):
            assert decoded.shape == shape and scores.tolist() == [0.0] * shape[1]
        assert head.kbest(emissions, mask, k=2)[0].shape == (2, *shape)
        assert head.confidence(emissions, mask).shape == shape
    assert head(emissions, tags, reduction="token_mean").isnan()


@every_head
def test_a_chain_without_tags_loses_nothing(make: Make) -> None:
    """All of −100: no loss and zero gradients, alone and beside others."""
    head = head_of(make)
    found = results(head, EMISSIONS, torch.full_like(TAGS, -100), reduction="none")
    assert all((value == 0).all() for value in found.values())
    tags = TAGS.masked_fill(~MASK, -100)
    tags[:, 1] = -100
    found = results(head, EMISSIONS, tags, reduction="none")
    assert found["loss"][1] == 0 and (found["emissions"][:, 1] == 0).all()
    others = [0, 2, 3]
    expected = results(head, EMISSIONS[:, others], tags[:, others], reduction="none")
    found["loss"], found["emissions"] = found["loss"][others], found["emissions"][:, others]
    same(found, expected)


@every_head
def test_copies_are_equal(make: Make) -> None:
    head = head_of(make)
    expected = results(head, EMISSIONS, TAGS, MASK, "none")
    loaded = make().double()
    loaded.load_state_dict(head.state_dict())
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head)), loaded):
        same(results(other, EMISSIONS, TAGS, MASK, "none"), expected, 0.0)
        assert repr(other) == repr(head)
        other.start_transitions.data.add_(1)
    same(results(head, EMISSIONS, TAGS, MASK, "none"), expected, 0.0)


@every_head
def test_the_state_is_that_of_the_parameters(make: Make) -> None:
    """Constraints move with the module but are no part of what is saved."""
    head = make()
    factors = {"transitions_from", "transitions_to"} if head.rank else {"transitions"}
    assert set(head.state_dict()) == {"start_transitions", "end_transitions"} | factors
    there = head.to("meta")
    assert all(buffer.device.type == "meta" for buffer in there.buffers())
    assert len(list(there.buffers())) == (0 if head.constraints is None else 3)


@every_head
def test_dtypes_of_heads_and_emissions_meet_in_the_wider_one(make: Make) -> None:
    double, single = head_of(make), head_of(make).float()
    assert double(EMISSIONS, TAGS, MASK).dtype == torch.float64
    for head, emissions in ((double, EMISSIONS.float()), (single, EMISSIONS)):
        leaf = emissions.clone().requires_grad_()
        loss = head(leaf, TAGS, MASK)
        loss.backward()
        assert loss.dtype == torch.float64
        assert leaf.grad.dtype == leaf.dtype and head.start_transitions.grad.dtype == head.start_transitions.dtype
        torch.testing.assert_close(loss, double(EMISSIONS, TAGS, MASK), rtol=1e-5, atol=1e-5)
        assert head.viterbi(emissions, MASK)[1].dtype == torch.float64
    same(
        {name: value.double() for name, value in results(single, EMISSIONS.float(), TAGS, MASK).items()},
        results(double, EMISSIONS, TAGS, MASK),
        2e-5,
    )


@every_head
def test_decoded_lists_are_as_long_as_the_mask_says(make: Make) -> None:
    head = head_of(make)
    lengths = MASK.sum(0).tolist()
    assert [len(tags) for tags in head.decode(EMISSIONS, MASK)] == lengths
    for width in (1, 3):
        found = (head.beam(EMISSIONS, MASK, width=width)[1] > -math.inf).tolist()  # Constraints may catch a narrow beam.
        assert all(found) or (head.constraints is not None and width == 1)
        lists = head.decode(EMISSIONS, MASK, width=width)
        assert [len(tags) for tags in lists] == [
            length if is_found else 0 for length, is_found in zip(lengths, found, strict=True)
        ]
        assert all(tag in range(NUM_TAGS) for tags in lists for tag in tags)
    assert [len(tags) for tags in head.decode(EMISSIONS)] == [5] * 4
    tags, _ = head.viterbi(EMISSIONS, MASK)
    assert head.decode(EMISSIONS, MASK) == [tags[MASK[:, row], row].tolist() for row in range(4)]


@every_head
def test_what_was_decoded_can_be_learned(make: Make) -> None:
    head = head_of(make)
    for decoded in (head.viterbi(EMISSIONS, MASK)[0], *head.kbest(EMISSIONS, MASK, k=2)[0][:, :, :3]):
        rows = decoded.shape[1]
        for mask in (None, MASK[:, :rows]):
            loss = -head(EMISSIONS[:, :rows], decoded, mask)
            assert loss.isfinite() and loss >= 0


@every_head
def test_decoding_leaves_no_graph(make: Make) -> None:
    head, leaf = head_of(make), EMISSIONS.clone().requires_grad_()
    for found in (head.viterbi(leaf, MASK)[1], head.beam(leaf, MASK, width=2)[1], head.kbest(leaf, MASK, k=2)[1]):
        assert not found.requires_grad
    assert not head.confidence(leaf, MASK).requires_grad


@every_head
def test_confidence_fits_the_mask(make: Make) -> None:
    head = head_of(make)
    for scale in (1.0, 100.0):
        found = head.confidence(scale * EMISSIONS, MASK)
        assert found.shape == MASK.shape
        assert (found[~MASK] == 0).all()
        assert ((found >= 0) & (found <= 1)).all()
    assert torch.equal(
        head.confidence(EMISSIONS, MASK), head.confidence(EMISSIONS, MASK, tags=head.viterbi(EMISSIONS, MASK)[0])
    )


def test_confidence_of_a_crf_is_the_marginal_of_the_tag() -> None:
    for name in ("crf", "crf-constrained", "crf-low-rank"):
        head = head_of(HEADS[name])
        marginals = head.marginals(EMISSIONS, MASK)
        torch.testing.assert_close(marginals.sum(-1), MASK.double())
        tags, _ = head.viterbi(EMISSIONS, MASK)
        for found, given in ((head.confidence(EMISSIONS, MASK), tags), (head.confidence(EMISSIONS, MASK, TAGS), TAGS)):
            expected = marginals.gather(-1, given.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            torch.testing.assert_close(found, expected)


@every_head
def test_constrained_heads_decode_what_they_allow(make: Make) -> None:
    head = head_of(make)
    if head.constraints is None:
        return
    for tags in (head.viterbi(EMISSIONS)[0], head.beam(EMISSIONS, width=NUM_TAGS)[0], *head.kbest(EMISSIONS, k=4)[0]):
        for row in tags.t().tolist():
            assert all(pair not in ((1, 1), (2, 1), (0, 0)) for pair in itertools.pairwise(row))
            assert row[-1] != 0


@every_head
def test_inputs_stay_as_they_are(make: Make) -> None:
    head = head_of(make)
    given = EMISSIONS.clone(), TAGS.masked_fill(~MASK, -100), MASK.clone()
    state = copy.deepcopy(head.state_dict())
    results(head, *given)
    head.decode(given[0], given[2])
    head.kbest(given[0], given[2], k=2)
    head.confidence(given[0], given[2])
    for now, before in zip(given, (EMISSIONS, TAGS.masked_fill(~MASK, -100), MASK), strict=True):
        assert torch.equal(now, before)
    assert all(torch.equal(value, state[name]) for name, value in head.state_dict().items())


@every_head
@pytest.mark.parametrize("strides", ((1, 0, 2), (2, 1, 0), (1, 2, 0)), ids=str)
def test_strides_do_not_matter(make: Make, strides: tuple[int, int, int]) -> None:
    head = head_of(make)
    back = [strides.index(axis) for axis in range(3)]
    emissions = EMISSIONS.permute(strides).contiguous().permute(back)
    assert torch.equal(emissions, EMISSIONS) and not emissions.is_contiguous()
    tags, mask = TAGS.t().contiguous().t(), MASK.t().contiguous().t()
    leaf = emissions.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(-head(leaf, tags, mask), leaf)
    torch.testing.assert_close(gradient, results(head, EMISSIONS, TAGS, MASK)["emissions"], rtol=1e-11, atol=1e-11)
    assert torch.equal(head.viterbi(emissions, mask)[0], head.viterbi(EMISSIONS, MASK)[0])
