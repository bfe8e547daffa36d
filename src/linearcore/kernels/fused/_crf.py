"""Linear-chain CRF with up to 128 tags: one launch forward for both directions, one launch backward for all gradients.

All sums are in the log domain, so that no score underflows: with few tags the |Y|² exponentials of a step cost less than the
launch of a product would. A program keeps the matrix of transitions in registers over all positions of a sequence.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride
from linearcore.kernels.fused._launch import Launcher, block_size

#: Largest number of tags: the matrix of transitions has to fit in the registers of a program.
MAX_TAGS = 128
#: Programs that share the positions in the backward pass; each has transition gradients of its own, summed at the end.
PROGRAMS = 256
#: Positions from which on there are four times as many programs.
MANY = 16384
#: Positions of the true sequence that are scored at a time.
POSITIONS = 128


@on_tensor_device
def crf_messages(
    emissions: Tensor,
    chain: tuple[Tensor, Tensor, Tensor],
    sites: tuple[Tensor, Tensor, Tensor],
    tags: Tensor | None,
    *,
    has_gradient: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns log Z (B,), minus the score of `tags` if there are any, and what `crf_gradient` needs.

    Args:
        emissions: (L, B, |Y|), arbitrary where masked.
        chain: start, transitions, end.
        sites: mask, previous and following (L, B), as in `Sites`.
        tags: (L, B) int64 in range, arbitrary where masked; or None.
        has_gradient: whether to compute the messages (2, L, B, |Y|) and shifts (L, B), which are empty otherwise.
    """
    emissions, parts = with_unit_stride(emissions), tuple(part.contiguous() for part in chain)
    mask, previous, following = (part.contiguous() for part in sites)
    tags = None if tags is None else tags.contiguous()
    length, batch, num_tags = emissions.shape
    values = emissions.new_zeros(batch)
    messages = emissions.new_empty((2, length, batch, num_tags) if has_gradient else (0,), dtype=torch.float32)
    shifts = emissions.new_empty((length, batch) if has_gradient else (0,), dtype=torch.float32)
    if batch and length:
        block = block_size(num_tags)
        _launch_messages(
            (batch, 2 if has_gradient else 1, 1),
            (emissions, *parts, mask, previous, following, mask if tags is None else tags, messages, shifts, values),
            (*emissions.stride()[:2], length, batch, num_tags), given=8, HAS_TAGS=tags is not None,
            HAS_GRADIENT=has_gradient, BLOCK=block, POSITIONS=POSITIONS, num_warps=_warps(block),
        )  # fmt: skip
    return values, messages, shifts


@on_tensor_device
def crf_gradient(
    emissions: Tensor,
    transitions: Tensor,
    sites: tuple[Tensor, Tensor, Tensor],
    tags: Tensor | None,
    messages: Tensor,
    shifts: Tensor,
    upstream: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the gradients of emissions, start, transitions and end, for the gradient `upstream` (B,) of the values."""
    emissions, transitions = with_unit_stride(emissions), transitions.contiguous()
    mask, previous, following = (part.contiguous() for part in sites)
    length, batch, num_tags = emissions.shape
    gradient = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    programs = max(1, min(PROGRAMS if length * batch < MANY else 4 * PROGRAMS, length * batch))
    parts = emissions.new_empty((programs, num_tags + 2, num_tags), dtype=torch.float32)
    block, tags_or_mask = block_size(num_tags), mask if tags is None else tags.contiguous()
    _launch_gradient(
        (programs, 1, 1),
        (emissions, upstream, transitions, mask, previous, following, tags_or_mask, messages, shifts, gradient, parts),
        (*emissions.stride()[:2], upstream.stride(0), length, batch, num_tags), given=7,
        HAS_TAGS=tags is not None, BLOCK=block, num_warps=_warps(block, is_backward=True),
    )  # fmt: skip
    total = parts.sum(0)
    return gradient, total[num_tags], total[:num_tags], total[num_tags + 1]


def _warps(block: int, *, is_backward: bool = False) -> int:
    """Returns the fastest number of warps for 8 and 1024 sequences of 128 positions on an H200."""
    return {16: 1, 32: 2, 64: 2 if is_backward else 8}.get(block, 16)


@triton.jit
def log_sum(x):
    """Returns log Σ exp(x) of a vector; −inf if all of x is."""
    peak = tl.max(x, 0)
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    return tl.log(tl.sum(tl.exp(x - peak), 0)) + peak


@triton.jit
def _log_sums(x):
    """Returns `log_sum` of each row of a matrix."""
    peak = tl.max(x, 1)
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    return tl.log(tl.sum(tl.exp(x - peak[:, None]), 1)) + peak


@triton.jit
def finite(x):
    """Returns x, or 0 if it is infinite or NaN."""
    return tl.where(tl.abs(x) < float("inf"), x, 0.0)


@triton.jit
def _score(
    base, time_stride, start, transitions, end, mask, previous, following, tags, chain, length, batch, num_tags,
    POSITIONS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns h(x, tags) of one sequence in float64."""
    total = tl.zeros((POSITIONS,), tl.float64)
    for first in range(0, length, POSITIONS):
        t = first + tl.arange(0, POSITIONS)
        site = t.to(tl.int64) * batch + chain
        is_on = tl.load(mask + site, mask=t < length, other=0) != 0
        tag = tl.load(tags + site, mask=is_on, other=0)
        before = tl.load(previous + site, mask=is_on, other=-1)
        old_tag = tl.load(tags + before * batch + chain, mask=is_on & (before >= 0), other=0)
        is_last = is_on & (tl.load(following + site, mask=is_on, other=0) >= length)
        score = tl.load(base + t.to(tl.int64) * time_stride + tag, mask=is_on, other=0.0).to(tl.float32).to(tl.float64)
        score += tl.load(transitions + old_tag * num_tags + tag, mask=is_on & (before >= 0), other=0.0)
        score += tl.load(start + tag, mask=is_on & (before < 0), other=0.0)
        total += score + tl.load(end + tag, mask=is_last, other=0.0)
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=["length", "batch"])
def _messages(
    emissions, start, transitions, end, mask, previous, following, tags, messages, shifts, values, time_stride, chain_stride,
    length, batch, num_tags, HAS_TAGS: tl.constexpr, HAS_GRADIENT: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
    POSITIONS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """α_j = log Σ_i exp(α_{j−1}(i) + transitions[i]) + emissions[j], and β, which is the same for the reversed sequence.

    The largest α of each position is subtracted, and summed in float64. β is stored before the emissions are added.
    """
    chain = tl.program_id(0).to(tl.int64)
    is_reversed = tl.program_id(1) == 1
    tag = tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    old_stride = tl.where(is_reversed, 1, num_tags)
    new_stride = tl.where(is_reversed, num_tags, 1)
    # Rows are the new tags and columns the old ones: Triton gives whole rows to a thread, since it knows no stride, so that
    # sums over rows need no communication.
    matrix = tl.load(
        transitions + tag[:, None] * new_stride + tag[None, :] * old_stride,
        mask=is_tag[:, None] & is_tag[None, :], other=float("-inf"),
    )  # fmt: skip
    last = tl.load(end + tag, mask=is_tag, other=float("-inf"))
    first = tl.where(is_reversed, last, tl.load(start + tag, mask=is_tag, other=float("-inf")))
    base = emissions + chain * chain_stride
    t = tl.where(is_reversed, length - 1, 0)
    direction = tl.where(is_reversed, -1, 1)
    # Loaded one step ahead: a step takes about as long as a load.
    is_on = tl.load(mask + t.to(tl.int64) * batch + chain) != 0
    scores = tl.load(base + t.to(tl.int64) * time_stride + tag, mask=is_tag, other=float("-inf")).to(tl.float32)
    has_started = t < 0
    state = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((), tl.float64)
    for _ in range(length):
        next_t = tl.maximum(tl.minimum(t + direction, length - 1), 0)
        next_is_on = tl.load(mask + next_t.to(tl.int64) * batch + chain) != 0
        next_scores = tl.load(base + next_t.to(tl.int64) * time_stride + tag, mask=is_tag, other=float("-inf")).to(
            tl.float32
        )
        message = tl.where(has_started, _log_sums(state[None, :] + matrix), first)
        new_state = message + scores
        shift = finite(tl.max(new_state, 0))
        state = tl.where(is_on, new_state - shift, state)
        total += tl.where(is_on, shift, 0.0)
        has_started = has_started | is_on
        if HAS_GRADIENT:
            site = t.to(tl.int64) * batch + chain
            rows = messages + (tl.program_id(1).to(tl.int64) * length * batch + site) * num_tags
            tl.store(rows + tag, tl.where(is_reversed, message - finite(tl.max(message, 0)), state), mask=is_tag)
            tl.store(shifts + site, shift, mask=tl.program_id(1) == 0)
        t, is_on, scores = next_t, next_is_on, next_scores
    if tl.program_id(1) == 0:
        value = tl.where(has_started, total + log_sum(state + last), 0.0)
        if HAS_TAGS:
            value -= _score(
                base, time_stride, start, transitions, end, mask, previous, following, tags, chain, length, batch, num_tags,
                POSITIONS,
            )  # fmt: skip
        tl.store(values + chain, value.to(tl.float32))


@triton.jit(do_not_specialize=["length", "batch"])
def _gradient(
    emissions, upstream, transitions, mask, previous, following, tags, messages, shifts, gradient, parts, time_stride,
    chain_stride, upstream_stride, length, batch, num_tags, HAS_TAGS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """P(y_j = v) = exp(α_j(v) + β_j(v) − n_j), where n_j is the logsumexp over v; likewise for pairs of tags."""
    tag = tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    at_pair = tag[:, None] * num_tags + tag[None, :]
    is_pair = is_tag[:, None] & is_tag[None, :]
    matrix = tl.load(transitions + at_pair, mask=is_pair, other=float("-inf"))
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    start_total = tl.zeros((BLOCK,), tl.float32)
    end_total = tl.zeros((BLOCK,), tl.float32)
    num_sites = length.to(tl.int64) * batch
    for site in range(tl.program_id(0).to(tl.int64), num_sites, tl.num_programs(0)):
        chain = site % batch
        t = site // batch
        is_on = tl.load(mask + site) != 0
        weight = tl.load(upstream + chain * upstream_stride)
        alpha = tl.load(messages + site * num_tags + tag, mask=is_tag, other=float("-inf"))
        beta = tl.load(messages + (num_sites + site) * num_tags + tag, mask=is_tag, other=float("-inf"))
        norm = log_sum(alpha + beta)
        is_counted = is_on & (weight != 0) & (norm != float("-inf"))
        result = tl.where(is_counted, tl.exp(alpha + beta - norm), 0.0)
        own = -1
        if HAS_TAGS:
            own = tl.load(tags + site, mask=is_on, other=-1)
            result -= tl.where(tag == own, 1.0, 0.0)
        result = tl.where(is_on & (weight != 0), result * weight, 0.0)
        tl.store(gradient + site * num_tags + tag, result.to(gradient.dtype.element_ty), mask=is_tag)
        if is_on & (weight != 0):
            before = tl.load(previous + site)
            if before < 0:
                start_total += result
            else:
                scores = tl.load(
                    emissions + t * time_stride + chain * chain_stride + tag, mask=is_tag, other=float("-inf")
                ).to(tl.float32)
                right = scores + beta - (norm + tl.load(shifts + site))
                left = tl.load(messages + (before * batch + chain) * num_tags + tag, mask=is_tag, other=float("-inf"))
                pairs = tl.where(is_counted, tl.exp(left[:, None] + matrix + right[None, :]), 0.0)
                if HAS_TAGS:
                    old = tl.load(tags + before * batch + chain)
                    pairs -= tl.where((tag[:, None] == old) & (tag[None, :] == own), 1.0, 0.0)
                total += pairs * weight
            if tl.load(following + site) >= length:
                end_total += result
    parts += tl.program_id(0).to(tl.int64) * (num_tags + 2) * num_tags
    tl.store(parts + at_pair, total, mask=is_pair)
    tl.store(parts + num_tags * num_tags + tag, start_total, mask=is_tag)
    tl.store(parts + (num_tags + 1) * num_tags + tag, end_total, mask=is_tag)


_launch_messages, _launch_gradient = Launcher(_messages), Launcher(_gradient)
