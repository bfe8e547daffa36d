"""Rescaled forward–backward of a linear-chain CRF with matrix products, its gradient, and its underflow check."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._torch import linear, packed_linear
from linearcore.kernels._fused import fused_kernels_for
from linearcore.structures import Chain

#: With fewer products, packing the matrix does not pay off (measured with 1000 and 4000 columns).
MIN_CALLS_TO_PACK = 20


class ForwardBackward(NamedTuple):
    """State of the rescaled forward–backward recursion over |Y| tags and one initial state, before the first tag.

        a_j = (a_{j−1} E) ⊙ x_j / z_j          b_{j−1} = ((b_j ⊙ x_j) Eᵀ) / z'_j

    E = exp(transitions − column maxima), with one more row for the start scores. x_j = exp(emissions + column maxima),
    divided by its maximum over tags. z and z' are such that the largest entry of each a and b is 1. The marginals are
    P(y_j = v) = a_j(v) b_j(v) / n_j with n_j = a_j · b_j.

    Attributes:
        exp_transitions: (W, |Y|) E; W is |Y| + 1, padded with zero rows to a multiple of 8 for speed.
        column_max: (|Y|,) the column maxima.
        a, b: (L + 1, B, W); index 0 is the initial state.
        z: (L, B, 1).
        norm: (L + 1, B, 1) n.
    """

    exp_transitions: Tensor
    column_max: Tensor
    a: Tensor
    b: Tensor
    z: Tensor
    norm: Tensor


def forward_backward(
    emissions: Tensor, chain: Chain, mask: Tensor, is_full: bool, is_fused: bool
) -> tuple[ForwardBackward, Tensor, Tensor]:
    """Returns the state, log Z (B,), and booleans (B,): the underflow error is below rounding error."""
    length, batch, num_tags = emissions.shape
    exp_transitions, column_max, start_offset = _exp_transitions(chain)
    factors, shift = _factors(emissions, column_max)
    a = emissions.new_zeros(length + 1, batch, exp_transitions.shape[0])
    a[0, :, num_tags] = 1.0
    b = torch.zeros_like(a)
    end_offset = _zero_if_minus_inf(chain.end.amax())
    b[length, :, :num_tags] = (chain.end - end_offset).exp_()
    b[length, :, num_tags] = 1.0
    fused = fused_kernels_for(emissions) if is_fused and emissions.numel() else None
    if fused is not None:
        z, z_back = fused.recursions(a, b, exp_transitions, factors, mask)
    else:
        step_mask = None if is_full else mask.unsqueeze(-1)
        z = _forward_recursion(a, exp_transitions, factors, step_mask)
        z_back = _backward_recursion(b, exp_transitions, factors, step_mask)
    norm = torch.linalg.vecdot(a, b).unsqueeze(-1)
    # Accumulated in float64, to keep precision over hundreds of positions.
    log_scale = (z.double().log() + shift.double()).masked_fill(~mask.unsqueeze(-1), 0.0).sum(0)
    offsets = start_offset.double() + end_offset.double()
    values = (log_scale + norm[length].double().log() + offsets).squeeze(-1).to(emissions.dtype)
    values = values.masked_fill(~mask.any(0), 0.0)
    state = ForwardBackward(exp_transitions, column_max, a, b, z, norm)
    return state, values, _underflow_is_negligible(num_tags, z, z_back, norm)


def _forward_recursion(a: Tensor, exp_transitions: Tensor, factors: Tensor, step_mask: Tensor | None) -> Tensor:
    """Fills a[1:] and returns z (L, B, 1)."""
    length, batch, num_tags = factors.shape
    z, product = factors.new_empty(length, batch, 1), factors.new_empty(batch, num_tags)
    multiply = Multiplier(exp_transitions, batch, length)
    for j in range(length):
        multiply(a[j], out=product)
        torch.mul(product, factors[j], out=a[j + 1, :, :num_tags])
        if step_mask is not None:
            torch.where(step_mask[j], a[j + 1], a[j], out=a[j + 1])
        torch.amax(a[j + 1], -1, keepdim=True, out=z[j])
        a[j + 1].div_(z[j])
    return z


def _backward_recursion(b: Tensor, exp_transitions: Tensor, factors: Tensor, step_mask: Tensor | None) -> Tensor:
    """Fills b[:-1] and returns z' (L, B, 1)."""
    length, batch, num_tags = factors.shape
    z, product = factors.new_empty(length, batch, 1), factors.new_empty(batch, num_tags)
    multiply = Multiplier(exp_transitions.t(), batch, length)
    for j in reversed(range(length)):
        torch.mul(b[j + 1, :, :num_tags], factors[j], out=product)
        multiply(product, out=b[j])
        if step_mask is not None:
            torch.where(step_mask[j], b[j], b[j + 1], out=b[j])
        torch.amax(b[j], -1, keepdim=True, out=z[j])
        b[j].div_(z[j])
    return z


def _underflow_is_negligible(num_tags: int, z: Tensor, z_back: Tensor, norm: Tensor) -> Tensor:
    """Returns booleans (B,): the error from underflow is smaller than rounding error. False for NaN.

    All terms are positive, so underflow can only decrease them. Entries of a, E and x are at most 1. In one step, an entry
    of (a E) ⊙ x loses at most `tiny` for each of the |Y| + 1 entries of a, of E and of their products, the same again for
    x, and once for the last product: less than (4(|Y| + 1) + 1)·tiny. After the division by z_j the loss of an entry of a_j
    is at most this divided by z_j. The paths through the entry continue with weight b ≤ 1, so the relative loss of Z is at
    most (|Y| + 1)·(4|Y| + 5)·tiny / (z_j n_j). The same holds for b. The sum over all positions bounds the relative error
    of Z and the absolute error of each marginal. The computed n_j is a lower bound of the exact one, so the bound is valid.
    """
    info = torch.finfo(z.dtype)
    steps = max(1, 2 * z.shape[0])
    threshold = steps * (num_tags + 1) * (4 * num_tags + 5) * info.tiny / info.eps
    is_negligible = ((z * norm[1:] >= threshold) & (z_back * norm[:-1] >= threshold)).all(0) & (norm > 0).all(0)
    return is_negligible.squeeze(-1)


def _exp_transitions(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """Returns E (W, |Y|), the column maxima of transitions and start (|Y|,), and the offset () subtracted from start.

    A constant offset between start and transitions does not change the distribution; removing it avoids underflow.
    """
    num_tags = chain.start.shape[0]
    offset = _zero_if_minus_inf(chain.start.amax()) - _zero_if_minus_inf(chain.transitions.amax())
    exp_transitions = chain.transitions.new_full((8 * (num_tags // 8 + 1), num_tags), -math.inf)
    exp_transitions[:num_tags] = chain.transitions
    exp_transitions[num_tags] = chain.start - offset
    column_max = _zero_if_minus_inf(exp_transitions.amax(0))
    return exp_transitions.sub_(column_max).exp_(), column_max, offset


def _factors(emissions: Tensor, column_max: Tensor) -> tuple[Tensor, Tensor]:
    """Returns x (L, B, |Y|) and the subtracted maxima (L, B, 1)."""
    factors = emissions + column_max
    offset = _zero_if_minus_inf(factors.amax(-1, keepdim=True))
    return factors.sub_(offset).exp_(), offset


def _zero_if_minus_inf(peak: Tensor) -> Tensor:
    # If all entries are −inf nothing is subtracted, since −inf − (−inf) is NaN.
    return peak.masked_fill(peak == -math.inf, 0.0)


def marginal_gradients(
    emissions: Tensor, mask: Tensor, state: ForwardBackward, grad: Tensor, needs_grad: tuple[bool, ...], *, is_full: bool
) -> list[Tensor | None]:
    """Returns the gradients of emissions, start, transitions and end: grad (B, 1) times the marginals."""
    length, _, num_tags = emissions.shape
    is_masked = ~mask.unsqueeze(-1)
    scale = (grad / state.norm[1:]).masked_fill(is_masked, 0.0)
    beta = state.b[1:, :, :num_tags]
    grad_emissions = (state.a[1:, :, :num_tags] * beta).mul_(scale) if needs_grad[0] else None
    grad_start = grad_transitions = grad_end = None
    if needs_grad[1] or needs_grad[2]:
        messages = _factors(emissions, state.column_max)[0].mul_(beta).mul_(scale / state.z)
        if not is_full:
            messages.masked_fill_(is_masked, 0.0)  # Padding may contain NaN.
        # Sum of P(y_{j−1} = i, y_j = v) over positions and sequences, in one product.
        marginals = torch.mm(state.a[:length].flatten(0, 1).t(), messages.flatten(0, 1)).mul_(state.exp_transitions)
        grad_start, grad_transitions = marginals[num_tags], marginals[:num_tags]
    if needs_grad[3]:
        scale = (grad / state.norm[length]).masked_fill(~mask.any(0).unsqueeze(-1), 0.0)
        grad_end = (state.a[length] * state.b[length]).mul_(scale)[:, :num_tags].sum(0)
    return [grad_emissions, grad_start, grad_transitions, grad_end]


class Multiplier:
    """Computes x @ matrix for x (B, K), `num_calls` times with the same matrix.

    On a CPU a product with few rows is limited by memory bandwidth, and torch.mm converts the layout of the matrix in every
    call. oneDNN converts it once: half the time with 1000 columns, a third with 4000. Used for float32 if available.

    Args:
        matrix: (K, N).
        rows: B, for which the layout is optimised.
        num_calls: number of products.
    """

    def __init__(self, matrix: Tensor, rows: int, num_calls: int) -> None:
        self._matrix = matrix
        self._packed: Tensor | None = None
        if num_calls >= MIN_CALLS_TO_PACK and rows > 1:
            self._packed = packed_linear(matrix, rows)

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """Writes x @ matrix to `out` (B, N) and returns it."""
        if self._packed is None:
            return torch.mm(x, self._matrix, out=out)
        return out.copy_(linear(x, self._packed))
