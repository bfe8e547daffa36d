"""Local scores: differences of whole sequences' scores, and the fast path against the reference."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from linearcore.kernels import local_scores, low_rank_scores
from linearcore.structures import Chain, Sites, path_score

NUM_TAGS = 4
MASKS = {
    "full": torch.ones(5, 3).bool(),
    "ragged": torch.arange(5).unsqueeze(1) < torch.tensor([5, 1, 3]),
    "holes": torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0]]).bool(),
    "single": torch.ones(1, 2).bool(),
    "no chains": torch.ones(3, 0).bool(),
    "no positions": torch.ones(0, 3).bool(),
}
every_mask = pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
both_dtypes = pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))


def drawn(mask: Tensor, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Chain, Tensor]:
    """Emissions, a chain and tags for a mask."""
    generator = torch.Generator().manual_seed(int(mask.sum()))
    sizes = ((*mask.shape, NUM_TAGS), (NUM_TAGS,), (NUM_TAGS, NUM_TAGS), (NUM_TAGS,))
    emissions, *own = (torch.randn(size, dtype=torch.float64, generator=generator).to(dtype) for size in sizes)
    return emissions, Chain(*own), torch.randint(NUM_TAGS, tuple(mask.shape), generator=generator)


def where_on(tensor: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask.unsqueeze(-1), tensor, tensor.new_zeros(()))


def value_and_gradients(
    emissions: Tensor, chain: Chain, tags: Tensor, mask: Tensor, upstream: Tensor, backend: str
) -> list[Tensor]:
    """The scores and the gradients of emissions, start, transitions and end."""
    leaves = [tensor.detach().requires_grad_() for tensor in (emissions, *chain)]
    scores = local_scores(leaves[0], Chain(*leaves[1:]), tags, Sites.of(mask), backend)
    return [where_on(scores.detach(), mask), *torch.autograd.grad(scores, leaves, upstream)]


@every_mask
@both_backends
def test_differences_are_those_of_whole_sequences(mask: Tensor, backend: str) -> None:
    emissions, chain, tags = drawn(mask)
    sites = Sites.of(mask)
    scores = local_scores(emissions, chain, tags, sites, backend)
    assert scores.shape == emissions.shape
    truth = path_score(emissions, chain, tags, sites)
    for time, column in mask.nonzero().tolist():
        for tag in range(NUM_TAGS):
            changed = tags.clone()
            changed[time, column] = tag
            expected = (path_score(emissions, chain, changed, sites) - truth)[column]
            found = scores[time, column, tag] - scores[time, column, tags[time, column]]
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@every_mask
@both_dtypes
@pytest.mark.parametrize("contiguous", (True, False), ids=("contiguous", "strided"))
def test_eager_is_the_reference(mask: Tensor, dtype: torch.dtype, contiguous: bool) -> None:
    emissions, chain, tags = drawn(mask, dtype)
    upstream = where_on(torch.cos(torch.arange(emissions.numel(), dtype=dtype)).view(emissions.shape), mask)
    if not contiguous:
        emissions = emissions.transpose(0, 1).contiguous().transpose(0, 1)
        chain = chain._replace(transitions=chain.transitions.t().contiguous().t())
        upstream = upstream.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    reference, eager = (value_and_gradients(emissions, chain, tags, mask, upstream, way) for way in ("reference", "eager"))
    tolerance = 1e-13 if dtype == torch.float64 else 3e-6
    for theirs, ours in zip(reference, eager, strict=True):
        assert ours.dtype == dtype and ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    assert mask.numel() == 0 or reference[3].abs().sum() > 0 or len(mask) == 1


@both_backends
def test_only_what_is_asked_for_has_a_gradient(backend: str) -> None:
    emissions, chain, tags = drawn(MASKS["holes"])
    expected = value_and_gradients(emissions, chain, tags, MASKS["holes"], torch.ones_like(emissions), backend)[1:]
    for place in range(4):
        inputs = [tensor.detach().requires_grad_(place == index) for index, tensor in enumerate((emissions, *chain))]
        scores = local_scores(inputs[0], Chain(*inputs[1:]), tags, Sites.of(MASKS["holes"]), backend)
        (found,) = torch.autograd.grad(scores.sum(), inputs[place])
        if place == 0:
            assert torch.equal(found, expected[0])
        else:
            # Upstream is 1 where masked too here, which means nothing but must be the same nothing.
            torch.testing.assert_close(found, expected[place])


@both_backends
def test_inputs_stay_as_they_are(backend: str) -> None:
    emissions, chain, tags = drawn(MASKS["holes"])
    before = [tensor.clone() for tensor in (emissions, *chain, tags)]
    local_scores(emissions, chain, tags, Sites.of(MASKS["holes"]), backend)
    for old, new in zip(before, (emissions, *chain, tags), strict=True):
        assert torch.equal(old, new)


@both_backends
@pytest.mark.parametrize("mask", (MASKS["holes"], MASKS["single"]), ids=("holes", "single"))
def test_gradcheck_and_gradgradcheck(mask: Tensor, backend: str) -> None:
    emissions, chain, tags = drawn(mask)
    leaves = [tensor.clone().requires_grad_() for tensor in (emissions, *chain)]

    def scores(emissions: Tensor, *own: Tensor) -> Tensor:
        # Squared, so that there is a second derivative at all.
        return where_on(local_scores(emissions, Chain(*own), tags, Sites.of(mask), backend), mask) ** 2

    assert gradcheck(scores, leaves, fast_mode=True)
    assert gradgradcheck(scores, leaves, fast_mode=True)


@pytest.mark.parametrize("place", range(4), ids=("emissions", "start", "transitions", "end"))
def test_forward_mode_with_respect_to_each_input(place: int) -> None:
    emissions, chain, tags = drawn(MASKS["holes"])
    sites, inputs = Sites.of(MASKS["holes"]), [emissions, *chain]
    direction = torch.cos(torch.arange(inputs[place].numel(), dtype=torch.float64)).view(inputs[place].shape)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(part, direction) if at == place else part for at, part in enumerate(inputs)]
        tangent = forward_ad.unpack_dual(local_scores(duals[0], Chain(*duals[1:]), tags, sites, "reference")).tangent
    # It is linear: what the input alone gives.
    alone = [direction if at == place else torch.zeros_like(part) for at, part in enumerate(inputs)]
    expected = local_scores(alone[0], Chain(*alone[1:]), tags, sites, "reference")
    torch.testing.assert_close(where_on(tangent, sites.mask), where_on(expected, sites.mask))


@every_mask
@both_dtypes
@pytest.mark.parametrize("rank", (1, 3))
def test_low_rank_is_the_product_written_out(mask: Tensor, dtype: torch.dtype, rank: int) -> None:
    emissions, chain, tags = drawn(mask, dtype)
    emissions = emissions.transpose(0, 1).contiguous().transpose(0, 1)
    generator = torch.Generator().manual_seed(rank)
    factors = [torch.randn(NUM_TAGS, rank, dtype=torch.float64, generator=generator).to(dtype) for _ in range(2)]
    sites, upstream = Sites.of(mask), where_on(torch.sin(1 + emissions), mask)
    results = []
    for is_written_out in (True, False):
        leaves = [tensor.detach().requires_grad_() for tensor in (emissions, chain.start, *factors, chain.end)]
        first, start, left, right, end = leaves
        if is_written_out:
            scores = local_scores(first, Chain(start, left @ right.t(), end), tags, sites, "reference")
        else:
            scores = low_rank_scores(first, start, (left, right), end, tags, sites)
        assert scores.shape == emissions.shape and scores.dtype == dtype
        results.append([where_on(scores.detach(), mask), *torch.autograd.grad(scores, leaves, upstream)])
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def low_rank_case(mask: Tensor, rank: int = 3) -> tuple[list[Tensor], Tensor]:
    """Emissions, start, two factors and end, in float32, and tags."""
    emissions, chain, tags = drawn(mask, torch.float32)
    generator = torch.Generator().manual_seed(rank)
    return [emissions, chain.start, *(torch.randn(2, NUM_TAGS, rank, generator=generator)), chain.end], tags


@every_mask
@pytest.mark.parametrize("half", (torch.bfloat16, torch.float16), ids=str)
def test_low_rank_products_in_half_precision(mask: Tensor, half: torch.dtype) -> None:
    """The scores and gradients of float32, but for rounding, and in float32."""
    given, tags = low_rank_case(mask)
    sites, upstream = Sites.of(mask), where_on(torch.sin(1 + given[0]), mask)
    results = []
    for dtype in (None, half):
        leaves = [part.clone().requires_grad_() for part in given]
        emissions, start, source, target, end = leaves
        scores = low_rank_scores(emissions, start, (source, target), end, tags, sites, dtype)
        assert scores.dtype == torch.float32
        results.append([where_on(scores.detach(), mask), *torch.autograd.grad(scores, leaves, upstream)])
    assert torch.equal(results[0][1], results[1][1])  # Emissions are added as they are.
    for exact, found in zip(*results, strict=True):
        most = exact.abs().max().item() if exact.numel() else 0.0
        torch.testing.assert_close(found, exact, rtol=0, atol=8 * torch.finfo(half).eps * (1 + most))


def test_low_rank_gradients_are_added_up_in_float32() -> None:
    """Thousands of sites with the same neighbour: in bfloat16 the sum would stop growing at 256 times what is added."""
    mask = torch.ones(2049, 2, dtype=torch.bool)
    source, target, edge = torch.ones(2, 1).requires_grad_(), torch.ones(2, 1).requires_grad_(), torch.zeros(2)
    tags = torch.zeros_like(mask, dtype=torch.long)
    scores = low_rank_scores(
        torch.zeros(2049, 2, 2), edge, (source, target), edge, tags, Sites.of(mask, is_full=True), torch.bfloat16
    )
    for gradient in torch.autograd.grad(scores[..., 0].sum(), [source, target]):
        # Once for every site that has the neighbour, once for every one that has the tag.
        assert gradient.flatten().tolist() == [2 * 4096, 0]
