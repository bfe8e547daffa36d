"""Linear-chain CRF in the log domain for any number of tags: for the sequences whose rescaled recursion may underflow.

The device decides: the kernels are always launched, and return at once for all other sequences.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._crf import finite, log_sum
from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: New tags per tile, and old tags; tags per side of a tile of the transitions' gradient.
BLOCK, DEPTH, TILE = 128, 32, 64


@on_tensor_device
def exact_messages(
    emissions: Tensor, chain: tuple[Tensor, Tensor, Tensor], mask: Tensor, is_rescaled: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Writes log Z to `values` (B,) where `is_rescaled` (B,) is False; returns what `add_exact_gradient` needs.

    Args:
        emissions: (L, B, |Y|), arbitrary where masked.
        chain: start, transitions, end.
        mask: (L, B) booleans.
        is_rescaled: (B,) booleans: the sequence is already computed.
        values: (B,), changed in place.
    """
    emissions, parts = with_unit_stride(emissions), tuple(part.contiguous() for part in chain)
    length, batch, num_tags = emissions.shape
    messages = torch.empty((2, length, batch, num_tags), dtype=torch.float32, device=emissions.device)
    shifts = torch.empty((length, batch), dtype=torch.float32, device=emissions.device)
    ends = torch.empty(batch, dtype=torch.float32, device=emissions.device)
    _messages[(batch, 2)](
        is_rescaled, emissions, *emissions.stride()[:2], *parts, mask.contiguous(), messages, shifts, ends, values,
        length, batch, num_tags, BLOCK=BLOCK, DEPTH=DEPTH, num_warps=8,
    )  # fmt: skip
    return messages, shifts, ends


@on_tensor_device
def add_exact_gradient(
    emissions: Tensor,
    transitions: Tensor,
    end: Tensor,
    mask: Tensor,
    is_rescaled: Tensor,
    state: tuple[Tensor, Tensor, Tensor],
    upstream: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    """Adds the gradients for sequences where `is_rescaled` is False to those of emissions, start, transitions and end."""
    emissions, transitions, mask = with_unit_stride(emissions), transitions.contiguous(), mask.contiguous()
    length, batch, num_tags = emissions.shape
    messages, shifts, ends = state
    norms = torch.empty_like(shifts)
    options = upstream, upstream.stride(0), length, batch, num_tags
    _rows[(length * batch,)](is_rescaled, mask, messages, norms, gradients[0], *options, BLOCK=BLOCK)
    tiles = triton.cdiv(num_tags, TILE)
    _pairs[(tiles, tiles)](
        is_rescaled, emissions, *emissions.stride()[:2], transitions, end.contiguous(), mask, messages, shifts, ends, norms,
        *gradients[1:], *options, TILE=TILE,
    )  # fmt: skip


@triton.jit
def _incoming(
    state, added, has_added, transitions, old_stride, new, new_stride, num_tags, BLOCK: tl.constexpr, DEPTH: tl.constexpr  # noqa: N803
):  # fmt: skip
    """Returns log Σ_i exp(state_i + added_i + transitions[i, v]) for the tags v in `new`."""
    peak = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_tags, DEPTH):
        old = first + tl.arange(0, DEPTH)
        x = tl.load(state + old, mask=old < num_tags, other=float("-inf"))
        if has_added:
            x += tl.load(added + old, mask=old < num_tags, other=0.0).to(tl.float32)
        at = transitions + old[:, None].to(tl.int64) * old_stride + new[None, :].to(tl.int64) * new_stride
        is_pair = (old[:, None] < num_tags) & (new[None, :] < num_tags)
        terms = x[:, None] + tl.load(at, mask=is_pair, other=float("-inf"))
        new_peak = tl.maximum(peak, tl.max(terms, 0))
        shift = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        total = total * tl.exp(peak - shift) + tl.sum(tl.exp(terms - shift[None, :]), 0)
        peak = new_peak
    return tl.log(total) + tl.where(peak == float("-inf"), 0.0, peak)


@triton.jit
def _log_sum_of_row(row, added, num_tags, BLOCK: tl.constexpr):  # noqa: N803
    """Returns log Σ_v exp(row_v + added_v)."""
    peak = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_tags, BLOCK):
        tag = first + tl.arange(0, BLOCK)
        x = tl.load(row + tag, mask=tag < num_tags, other=float("-inf"))
        x += tl.load(added + tag, mask=tag < num_tags, other=0.0)
        new_peak = tl.maximum(peak, x)
        shift = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        total = total * tl.exp(peak - shift) + tl.exp(x - shift)
        peak = new_peak
    return log_sum(tl.log(total) + tl.where(peak == float("-inf"), 0.0, peak))


@triton.jit(do_not_specialize=["length", "batch"])
def _messages(
    is_rescaled, emissions, time_stride, chain_stride, start, transitions, end, mask, messages, shifts, ends, values,
    length, batch, num_tags, BLOCK: tl.constexpr, DEPTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """As in `_crf.py`, with the states in memory. Masked positions repeat the state, that of β with the emissions added."""
    chain = tl.program_id(0).to(tl.int64)
    is_reversed = tl.program_id(1) == 1
    if tl.load(is_rescaled + chain) == 0:
        old_stride = tl.where(is_reversed, 1, num_tags)
        new_stride = tl.where(is_reversed, num_tags, 1)
        states = messages + tl.program_id(1).to(tl.int64) * length * batch * num_tags
        scores = emissions + chain * chain_stride
        has_started = chain < 0
        old_is_on = chain < 0
        old_t = tl.zeros((), tl.int64)
        total = tl.zeros((), tl.float64)
        for step in range(length):
            t = tl.zeros((), tl.int64) + tl.where(is_reversed, length - 1 - step, step)
            site = t * batch + chain
            is_on = tl.load(mask + site) != 0
            old_row = states + (old_t * batch + chain) * num_tags
            old_scores = scores + old_t * time_stride
            has_added = is_reversed & old_is_on
            peak = tl.full((), float("-inf"), tl.float32)
            for first in range(0, num_tags, BLOCK):
                tag = first + tl.arange(0, BLOCK)
                is_tag = tag < num_tags
                value = tl.full((BLOCK,), float("-inf"), tl.float32)
                if has_started:
                    if is_on:
                        value = _incoming(
                            old_row, old_scores, has_added, transitions, old_stride, tag, new_stride, num_tags, BLOCK, DEPTH
                        )
                    else:
                        value = tl.load(old_row + tag, mask=is_tag, other=float("-inf"))
                        if has_added:
                            value += tl.load(old_scores + tag, mask=is_tag, other=0.0).to(tl.float32)
                elif is_on:
                    value = tl.load(start + tag, mask=is_tag, other=float("-inf"))
                    if is_reversed:
                        value = tl.load(end + tag, mask=is_tag, other=float("-inf"))
                if is_on & (is_reversed == 0):
                    value += tl.load(scores + t * time_stride + tag, mask=is_tag, other=float("-inf")).to(tl.float32)
                tl.store(states + site * num_tags + tag, value, mask=is_tag)
                peak = tl.maximum(peak, tl.max(value, 0))
            tl.debug_barrier()
            shift = tl.where(is_on, finite(peak), 0.0)
            for first in range(0, num_tags, BLOCK):
                tag = first + tl.arange(0, BLOCK)
                value = tl.load(states + site * num_tags + tag, mask=tag < num_tags, other=0.0)
                tl.store(states + site * num_tags + tag, value - shift, mask=tag < num_tags)
            tl.debug_barrier()
            total += shift
            tl.store(shifts + site, shift, mask=tl.program_id(1) == 0)
            has_started = has_started | is_on
            old_t, old_is_on = t, is_on
        if tl.program_id(1) == 0:
            last = _log_sum_of_row(states + ((length - 1) * batch + chain) * num_tags, end, num_tags, BLOCK)
            tl.store(ends + chain, last)
            tl.store(values + chain, tl.where(has_started, total + last, 0.0).to(tl.float32))


@triton.jit(do_not_specialize=["length", "batch"])
def _rows(
    is_rescaled, mask, messages, norms, gradient, upstream, upstream_stride, length, batch, num_tags, BLOCK: tl.constexpr  # noqa: N803
):  # fmt: skip
    """n_j = log Σ_v exp(α_j(v) + β_j(v)), and the gradient of the emissions."""
    site = tl.program_id(0).to(tl.int64)
    chain = site % batch
    if (tl.load(is_rescaled + chain) == 0) & (tl.load(mask + site) != 0):
        alpha = messages + site * num_tags
        beta = messages + (tl.zeros((), tl.int64) + length * batch + site) * num_tags
        weight = tl.load(upstream + chain * upstream_stride)
        norm = _log_sum_of_row(alpha, beta, num_tags, BLOCK)
        tl.store(norms + site, norm)
        for first in range(0, num_tags, BLOCK):
            tag = first + tl.arange(0, BLOCK)
            x = tl.load(alpha + tag, mask=tag < num_tags, other=0.0) + tl.load(beta + tag, mask=tag < num_tags, other=0.0)
            result = tl.where((weight != 0) & (norm != float("-inf")), tl.exp(x - norm) * weight, 0.0)
            tl.store(gradient + site * num_tags + tag, result, mask=tag < num_tags)


@triton.jit(do_not_specialize=["length", "batch"])
def _pairs(
    is_rescaled, emissions, time_stride, chain_stride, transitions, end, mask, messages, shifts, ends, norms,
    start_gradient, gradient, end_gradient, upstream, upstream_stride, length, batch, num_tags, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A tile of the gradient of the transitions; tiles of the first row also have the gradients of start and end."""
    old = tl.program_id(0) * TILE + tl.arange(0, TILE)
    new = tl.program_id(1) * TILE + tl.arange(0, TILE)
    is_pair = (old[:, None] < num_tags) & (new[None, :] < num_tags)
    at = old[:, None].to(tl.int64) * num_tags + new[None, :]
    for index in range(batch):
        chain = tl.zeros((), tl.int64) + index
        weight = tl.load(upstream + chain * upstream_stride)
        if (tl.load(is_rescaled + chain) == 0) & (weight != 0):
            last = tl.load(ends + chain)
            is_possible = last != float("-inf")
            matrix = tl.load(transitions + at, mask=is_pair, other=float("-inf"))
            total = tl.zeros((TILE, TILE), tl.float32)
            start_total = tl.zeros((TILE,), tl.float32)
            has_started = chain < 0
            state = messages
            for step in range(length):
                t = tl.zeros((), tl.int64) + step
                site = t * batch + chain
                if tl.load(mask + site) != 0:
                    beta = messages + (tl.zeros((), tl.int64) + length * batch + site) * num_tags
                    right = tl.load(beta + new, mask=new < num_tags, other=float("-inf")) - tl.load(norms + site)
                    if has_started:
                        scores = emissions + t * time_stride + chain * chain_stride
                        right += tl.load(scores + new, mask=new < num_tags, other=float("-inf")).to(tl.float32)
                        left = tl.load(state + old, mask=old < num_tags, other=float("-inf"))
                        total += tl.exp(left[:, None] + matrix + (right - tl.load(shifts + site))[None, :])
                    else:
                        alpha = messages + site * num_tags
                        start_total += tl.exp(tl.load(alpha + new, mask=new < num_tags, other=float("-inf")) + right)
                    has_started = has_started | (chain >= 0)
                state = messages + site * num_tags
            if is_possible:
                old_total = tl.load(gradient + at, mask=is_pair, other=0.0)
                tl.store(gradient + at, old_total + total * weight, mask=is_pair)
                if tl.program_id(0) == 0:
                    is_tag = new < num_tags
                    x = tl.load(state + new, mask=is_tag, other=float("-inf"))
                    x += tl.load(end + new, mask=is_tag, other=float("-inf"))
                    end_total = tl.where(has_started, tl.exp(x - last), 0.0)
                    old_start = tl.load(start_gradient + new, mask=is_tag, other=0.0)
                    old_end = tl.load(end_gradient + new, mask=is_tag, other=0.0)
                    tl.store(start_gradient + new, old_start + start_total * weight, mask=is_tag)
                    tl.store(end_gradient + new, old_end + end_total * weight, mask=is_tag)
