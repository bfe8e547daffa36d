"""Log-partition function of a linear-chain CRF: rescaled forward–backward with matrix products and an underflow check.

If underflow could change the result by more than rounding error, the recursion is repeated in the log domain.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from linearcore._torch import is_on_host, is_traced, is_transformed, linear, packed_linear
from linearcore.kernels._backend import compute_gradients, resolve_backend
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._precision import full_precision
from linearcore.kernels.compiled import can_compile_crf, compiled_crf
from linearcore.structures import Chain, Sites, path_score

#: Above this batch size cuBLAS is as fast as the Triton kernel.
MAX_FUSED_BATCH = 32
#: With fewer products, packing the matrix does not pay off (measured with 1000 and 4000 columns).
MIN_CALLS_TO_PACK = 20


def log_partition(emissions: Tensor, chain: Chain, mask: Tensor, backend: str = "auto", *, is_full: bool = False) -> Tensor:
    """Returns log Z (B,), the logsumexp of h(x, y) over all tag sequences y; 0 for an empty sequence.

    It is excluded from torch.compile: compiling the unrolled loop takes minutes and gives no speed-up. torch.export uses the
    unrolled recursion in the log domain. Float32 products ignore `torch.set_float32_matmul_precision` and are in full
    precision, because errors accumulate over positions.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores; −inf marks forbidden entries.
        mask: (L, B) booleans; positions with False are skipped.
        backend: "reference" (broadcast logsumexp, differentiable any number of times), "eager" (matrix products with a
            custom backward pass), "compiled" (the same in C, for up to 256 tags; falls back to "eager" after underflow),
            "fused" (in Triton, for small batches) or "auto".
        is_full: the caller knows that the mask is all True, which skips the masking.

    Time O(L·B·|Y|²). Memory: the reference saves L×B×|Y|² numbers for the backward pass; the other backends save three
    tensors of size L×B×|Y| and one of size |Y|×|Y|. After underflow the reference runs with checkpointing, B×|Y|² at a
    time. The underflow check synchronises with the GPU. During CUDA graph capture it cannot, and log Z is NaN instead.
    """
    if torch.compiler.is_exporting():
        return _log_domain(emissions, chain, mask)
    # Not a decorator, which would import the compiler together with this module.
    function = torch.compiler.disable(_log_partition) if torch.compiler.is_compiling() else _log_partition
    values: Tensor = function(emissions, chain, mask, backend, is_full)
    return values


def _log_partition(emissions: Tensor, chain: Chain, mask: Tensor, backend: str, is_full: bool) -> Tensor:
    chosen = resolve_backend(backend, (emissions, *chain), can_compile=can_compile_crf(emissions, chain))
    if chosen == "reference":
        return _log_domain(emissions, chain, mask)
    if chosen == "compiled":
        compiled = compiled_crf(
            emissions, chain, None if is_full else mask, None, lambda scores, parts: _log_domain(scores, parts, mask)
        )
        if compiled is not None:
            return compiled
    values: Tensor = _Partition.apply(emissions, *chain, mask, is_full or _is_full(mask), chosen == "fused")  # type: ignore[no-untyped-call]
    return values


def crf_losses(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> Tensor:
    """Returns log Z − h(x, tags) (B,), the negative log-likelihood; 0 for an empty sequence.

    Arguments as in `log_partition` and `structures.path_score`. On a CPU both are computed in one call if possible.
    """

    def reference(scores: Tensor, parts: Chain) -> Tensor:
        return _log_domain(scores, parts, sites.mask) - path_score(scores, parts, tags, sites)

    if not is_traced() and can_compile_crf(emissions, chain):
        losses = compiled_crf(emissions, chain, None if sites.is_full else sites.mask, tags, reference)
        if losses is not None:
            return losses
    true_score = path_score(emissions, chain, tags, sites)
    return log_partition(emissions, chain, sites.mask, is_full=sites.is_full) - true_score


def posterior(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """Returns P(y_j = v | x) (L, B, |Y|), the gradient of log Z w.r.t. the emissions; 0 where masked. No gradient."""
    if torch.compiler.is_exporting() or is_transformed():
        # torch.export and torch.func do not support this custom autograd function.
        return _log_domain_posterior(emissions, chain, mask)
    with torch.enable_grad():
        leaf = emissions.detach().requires_grad_()
        values = log_partition(leaf, Chain(*(part.detach() for part in chain)), mask)
        return torch.autograd.grad(values.sum(), leaf)[0]


def _log_domain(emissions: Tensor, chain: Chain, mask: Tensor, *, keep_steps: bool = True) -> Tensor:
    """Returns log Z (B,): α_j(v) = logsumexp_i [α_{j−1}(i) + transitions[i, v]] + emissions[j, v]; α_1 = start + emissions.

    With `keep_steps=False` the steps are checkpointed: the backward pass recomputes their B×|Y|² numbers.
    """
    return _log_forward(emissions, chain, mask, keep_steps=keep_steps)[0]


def _log_forward(emissions: Tensor, chain: Chain, mask: Tensor, *, keep_steps: bool = True) -> tuple[Tensor, list[Tensor]]:
    """Returns log Z (B,) and a list of L tensors α (B, |Y|)."""
    has_started = torch.zeros_like(mask[0]) if mask.shape[0] else mask.new_zeros(mask.shape[1])
    alpha = torch.zeros_like(emissions[0]) if mask.shape[0] else emissions.new_zeros(emissions.shape[1:])
    alphas = []
    for j, mask_j in enumerate(mask):
        incoming = chain.start.expand_as(alpha)
        if j > 0:
            step = _step(alpha, chain.transitions) if keep_steps else _checkpointed_step(alpha, chain.transitions)
            incoming = torch.where(has_started.unsqueeze(-1), step, incoming)
        alpha = torch.where(mask_j.unsqueeze(-1), incoming + emissions[j], alpha)
        has_started = has_started | mask_j
        alphas.append(alpha)
    return torch.where(has_started, _logsumexp(alpha + chain.end, -1), alpha.new_zeros(())), alphas


def _log_domain_posterior(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """Returns `posterior` computed in the log domain: exp(α_j + β_j − log Z)."""
    log_z, alphas = _log_forward(emissions, chain, mask)
    beta = chain.end.expand(emissions.shape[1:])
    results = []
    for j in reversed(range(mask.shape[0])):
        mask_j = mask[j].unsqueeze(-1)
        log_marginal = (alphas[j] + beta - log_z.unsqueeze(-1)).masked_fill(~mask_j, -math.inf)
        results.append(log_marginal.exp())
        next_beta = _logsumexp(chain.transitions + (beta + emissions[j]).unsqueeze(1), -1)
        beta = torch.where(mask_j, next_beta, beta)
    return torch.stack(results[::-1]) if results else torch.zeros_like(emissions)


def _step(alpha: Tensor, transitions: Tensor) -> Tensor:
    return _logsumexp(alpha.unsqueeze(-1) + transitions, 1)


def _checkpointed_step(alpha: Tensor, transitions: Tensor) -> Tensor:
    step: Tensor = checkpoint(_step, alpha, transitions, use_reentrant=False, preserve_rng_state=False)
    return step


def _logsumexp(x: Tensor, dim: int) -> Tensor:
    """torch.logsumexp with zero gradient instead of NaN if all terms are −inf."""
    peak = x.detach().amax(dim, keepdim=True)
    all_masked = peak == -math.inf
    peak = peak.masked_fill(all_masked, 0.0)
    total = (x - peak).exp().sum(dim, keepdim=True).masked_fill(all_masked, 1.0)
    return (total.log() + peak).masked_fill(all_masked, -math.inf).squeeze(dim)


class _ForwardBackward(NamedTuple):
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


class _Partition(torch.autograd.Function):
    """`log_partition` with the recursion of `_ForwardBackward`."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, mask: Tensor,
        is_full: bool, is_fused: bool,
    ) -> Tensor:  # fmt: skip
        chain = Chain(start, transitions, end)
        ctx.is_full = is_full
        with full_precision(emissions.device):
            state, values, is_exact = _forward_backward(emissions, chain, mask, is_full, is_fused)
        is_captured = emissions.is_cuda and torch.cuda.is_current_stream_capturing()
        ctx.uses_log_domain = not is_captured and not bool(is_exact)
        if ctx.uses_log_domain:
            ctx.save_for_backward(emissions, *chain, mask)
            return _log_domain(emissions, chain, mask)
        ctx.save_for_backward(emissions, *chain, mask, *state)
        return torch.where(is_exact, values, math.nan) if is_captured else values

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask = ctx.saved_tensors[:5]
        if torch.is_grad_enabled():
            values = _log_domain(inputs[0], Chain(*inputs[1:]), mask)
            needs_grad = ctx.needs_input_grad[:4]
            return *compute_gradients(values, inputs, grad_output, needs_grad, create_graph=True), None, None, None
        if ctx.uses_log_domain:
            with torch.enable_grad():
                leaves = [tensor.detach().requires_grad_() for tensor in inputs]
                values = _log_domain(leaves[0], Chain(*leaves[1:]), mask, keep_steps=False)
            return *compute_gradients(values, leaves, grad_output, ctx.needs_input_grad[:4]), None, None, None
        state = _ForwardBackward(*ctx.saved_tensors[5:])
        with full_precision(grad_output.device):
            results = _gradient(inputs[0], mask, state, grad_output.unsqueeze(-1), ctx.needs_input_grad, is_full=ctx.is_full)
        return *results, None, None, None


def _forward_backward(
    emissions: Tensor, chain: Chain, mask: Tensor, is_full: bool, is_fused: bool
) -> tuple[_ForwardBackward, Tensor, Tensor]:
    """Returns the state, log Z (B,), and a scalar boolean: the underflow error is below rounding error."""
    length, batch, num_tags = emissions.shape
    exp_transitions, column_max, start_offset = _exp_transitions(chain)
    factors, shift = _factors(emissions, column_max)
    a = emissions.new_zeros(length + 1, batch, exp_transitions.shape[0])
    a[0, :, num_tags] = 1.0
    step_mask = None if is_full else mask.unsqueeze(-1)
    fused = fused_kernels_for(emissions) if is_fused and batch <= MAX_FUSED_BATCH else None
    z = (fused.forward_recursion if fused else _forward_recursion)(a, exp_transitions, factors, step_mask)
    b = torch.zeros_like(a)
    end_offset = _zero_if_minus_inf(chain.end.amax())
    b[length, :, :num_tags] = (chain.end - end_offset).exp_()
    b[length, :, num_tags] = 1.0
    z_back = (fused.backward_recursion if fused else _backward_recursion)(b, exp_transitions, factors, step_mask)
    norm = torch.linalg.vecdot(a, b).unsqueeze(-1)
    # Accumulated in float64, to keep precision over hundreds of positions.
    log_scale = (z.double().log() + shift.double()).masked_fill(~mask.unsqueeze(-1), 0.0).sum(0)
    offsets = start_offset.double() + end_offset.double()
    values = (log_scale + norm[length].double().log() + offsets).squeeze(-1).to(emissions.dtype)
    values = values.masked_fill(~mask.any(0), 0.0)
    state = _ForwardBackward(exp_transitions, column_max, a, b, z, norm)
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


def _is_full(mask: Tensor) -> bool:
    """Returns whether the mask is known to be all True; checked only on CPU, to avoid a GPU synchronisation."""
    return is_on_host(mask) and bool(mask.all())


def _underflow_is_negligible(num_tags: int, z: Tensor, z_back: Tensor, norm: Tensor) -> Tensor:
    """Returns a scalar boolean: the error from underflow is smaller than rounding error. False for NaN.

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
    return ((z * norm[1:] >= threshold) & (z_back * norm[:-1] >= threshold)).all() & (norm > 0).all()


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


def _gradient(
    emissions: Tensor, mask: Tensor, state: _ForwardBackward, grad: Tensor, needs_grad: tuple[bool, ...], *, is_full: bool
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
