"""Local scores of a chain, alone or with the log-odds of the true tags, and the gradient of those, one launch each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import by_rows, on_its_device

#: Tags a program looks at at a time.
BLOCK = 1024


@on_its_device
def local_scores(emissions: Tensor, chain: tuple[Tensor, ...], links: tuple[Tensor, ...]) -> Tensor:
    """(L, B, |Y|) float32; see `kernels.local_scores`.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transitions, end.
        links: before, after (L, B), the neighbours' tags; first, last (B,), rows of (L·B) at which chains begin and end.
    """
    return _launch(emissions, chain, links, None)[0]


@on_its_device
def local_log_odds(
    emissions: Tensor, chain: tuple[Tensor, ...], links: tuple[Tensor, ...], tags: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The local scores, and (L·B, 1) each: that of the true tag, the largest of the others, Σ exp(other − largest)."""
    scores, stats = _launch(emissions, chain, links, tags)
    own, peak, total = stats.unsqueeze(-1).unbind()
    return scores, own, peak, total


@on_its_device
def local_gradient(
    scores: Tensor, tags: Tensor, links: tuple[Tensor, ...], peak: Tensor, share: Tensor, slope: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of emissions (in `dtype`), start, transitions and end, where that of the local scores is

    share · exp(s − peak), and the slope at the true tag; rows of share and slope are 0 where masked.
    """
    tags, scores = tags.contiguous(), scores.contiguous()
    links = tuple(part.contiguous() for part in links)
    peak, share, slope = (numbers.contiguous() for numbers in (peak, share, slope))
    length, batch, num_tags = scores.shape
    by_emission = torch.empty(length, batch, num_tags, dtype=dtype, device=scores.device)
    edges = scores.new_zeros(num_tags + 2, num_tags)
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_tags))
        grid = (length * batch, triton.cdiv(num_tags, block))
        _backward[grid](scores, tags, *links, peak, share, slope, by_emission, edges, batch, num_tags, BLOCK=block)
    return by_emission, edges[num_tags], edges[:num_tags], edges[num_tags + 1]


def _launch(
    emissions: Tensor, chain: tuple[Tensor, ...], links: tuple[Tensor, ...], tags: Tensor | None
) -> tuple[Tensor, Tensor]:
    emissions = by_rows(emissions)
    chain, links = (tuple(part.contiguous() for part in parts) for parts in (chain, links))
    tags = None if tags is None else tags.contiguous()
    length, batch, num_tags = emissions.shape
    scores = torch.empty(length, batch, num_tags, dtype=torch.float32, device=emissions.device)
    stats = torch.empty(3, 0 if tags is None else length * batch, dtype=torch.float32, device=emissions.device)
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_tags))
        _forward[(length * batch,)](
            emissions, emissions.stride(0), emissions.stride(1), *chain, *links, scores,
            scores if tags is None else tags, stats, length * batch, batch, num_tags, HAS_TAGS=tags is not None, BLOCK=block,
        )  # fmt: skip
    return scores, stats


@triton.jit
def _forward(
    emissions, by_time, by_chain, start, transitions, end, before, after, first, last, scores, tags, stats,
    rows, batch, num_tags, HAS_TAGS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chain = row % batch
    base = emissions + (row // batch) * by_time + chain * by_chain
    is_first = tl.load(first + chain) == row
    is_last = tl.load(last + chain) == row
    left = tl.load(before + row) * num_tags
    right = tl.load(after + row)
    label = -1
    if HAS_TAGS:
        label = tl.load(tags + row)
    # The least float and not −inf: −inf − (−inf) would be no number.
    largest = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    summed = tl.zeros((BLOCK,), tl.float32)
    own = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, num_tags, BLOCK):
        here = begin + tl.arange(0, BLOCK)
        inside = here < num_tags
        value = tl.load(base + here, mask=inside, other=0.0).to(tl.float32)
        if is_first:
            value += tl.load(start + here, mask=inside, other=0.0)
        else:
            value += tl.load(transitions + left + here, mask=inside, other=0.0)
        if is_last:
            value += tl.load(end + here, mask=inside, other=0.0)
        else:
            value += tl.load(transitions + here.to(tl.int64) * num_tags + right, mask=inside, other=0.0)
        tl.store(scores + row * num_tags + here, value, mask=inside)
        if HAS_TAGS:
            own = tl.where(here == label, value, own)
            value = tl.where((here == label) | (here >= num_tags), -float("inf"), value)
            larger = tl.maximum(largest, value)
            summed = summed * tl.exp(largest - larger) + tl.exp(value - larger)
            largest = larger
    if HAS_TAGS:
        top = tl.max(largest, 0)
        # All but one of the lanes are 0, and −inf + 0 is −inf still. No lane at all has a label out of range.
        is_label = (label >= 0) & (label < num_tags)
        tl.store(stats + row, tl.where(is_label, tl.sum(own, 0), float("nan")))
        tl.store(stats + rows + row, top)
        tl.store(stats + 2 * rows + row, tl.sum(summed * tl.exp(largest - top), 0))


@triton.jit
def _backward(
    scores, tags, before, after, first, last, peak, share, slope, by_emission, edges, batch, num_tags,
    BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chain = row % batch
    here = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = here < num_tags
    value = tl.load(scores + row * num_tags + here, mask=inside, other=0.0)
    result = tl.exp(value - tl.load(peak + row)) * tl.load(share + row)
    result = tl.where(here == tl.load(tags + row), tl.load(slope + row), result)
    tl.store(by_emission + row * num_tags + here, result.to(by_emission.dtype.element_ty), mask=inside)
    counts = inside & (result != 0)
    # `edges` has the transitions' rows, then start, then end.
    to_row = tl.load(before + row)
    if tl.load(first + chain) == row:
        to_row = tl.full((), num_tags, tl.int64)
    tl.atomic_add(edges + to_row * num_tags + here, result, mask=counts)
    if tl.load(last + chain) == row:
        # Not `num_tags.to(…)`: Triton passes a 1 as a plain Python number.
        tl.atomic_add(edges + (tl.full((), num_tags, tl.int64) + 1) * num_tags + here, result, mask=counts)
    else:
        tl.atomic_add(edges + here.to(tl.int64) * num_tags + tl.load(after + row), result, mask=counts)
