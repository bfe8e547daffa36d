"""Log-partition function of a linear-chain CRF: rescaled forward–backward with matrix products and an underflow check.

If underflow could change the result by more than rounding error, the recursion is repeated in the log domain.
"""

import math
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from linearcore._torch import is_on_host, is_traced, is_transformed
from linearcore.kernels._backend import compute_gradients, resolve_backend
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._fused_crf import fused_crf
from linearcore.kernels._precision import full_precision
from linearcore.kernels._rescaled import ForwardBackward, forward_backward, marginal_gradients
from linearcore.kernels.compiled import can_compile_crf, compiled_crf
from linearcore.structures import Chain, Sites, path_score


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
            "fused" (in Triton: up to 128 tags in the log domain with one launch, more as in "eager") or "auto".
        is_full: the caller knows that the mask is all True, which skips the masking.

    Time O(L·B·|Y|²). Memory: the reference saves L×B×|Y|² numbers for the backward pass; the other backends save three
    tensors of size L×B×|Y| and one of size |Y|×|Y|. After underflow the reference runs with checkpointing, B×|Y|² at a
    time. The underflow check of "eager" synchronises with the GPU; during CUDA graph capture it cannot, and log Z is NaN
    instead. "fused" never synchronises: the kernels find the sequences that need the log domain.
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
    if chosen == "fused" and (kernels := _few_tag_kernels(emissions)):
        sites = Sites.of(mask, is_full=is_full)
        return fused_crf(kernels, emissions, chain, sites, None, lambda scores, parts: _log_domain(scores, parts, mask))
    values: Tensor = _Partition.apply(emissions, *chain, mask, is_full or _is_full(mask), chosen == "fused")  # type: ignore[no-untyped-call]
    return values


def _few_tag_kernels(emissions: Tensor) -> ModuleType | None:
    """Returns the fused kernels if they compute the whole recursion in one launch."""
    kernels = fused_kernels_for(emissions)
    return kernels if kernels is not None and 0 < emissions.shape[-1] <= kernels.MAX_TAGS else None


def crf_losses(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> Tensor:
    """Returns log Z − h(x, tags) (B,), the negative log-likelihood; 0 for an empty sequence.

    Arguments as in `log_partition` and `structures.path_score`. Both are computed in one call if possible.
    """

    def reference(scores: Tensor, parts: Chain) -> Tensor:
        return _log_domain(scores, parts, sites.mask) - path_score(scores, parts, tags, sites)

    if not is_traced() and can_compile_crf(emissions, chain):
        losses = compiled_crf(emissions, chain, None if sites.is_full else sites.mask, tags, reference)
        if losses is not None:
            return losses
    if resolve_backend("auto", (emissions, *chain)) == "fused" and (kernels := _few_tag_kernels(emissions)):
        return fused_crf(kernels, emissions, chain, sites, tags, reference)
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


class _Partition(torch.autograd.Function):
    """`log_partition` with the recursion of `ForwardBackward`."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, mask: Tensor,
        is_full: bool, is_fused: bool,
    ) -> Tensor:  # fmt: skip
        chain = Chain(start, transitions, end)
        ctx.is_full = is_full
        with full_precision(emissions.device):
            state, values, is_exact = forward_backward(emissions, chain, mask, is_full, is_fused)
        ctx.uses_log_domain, ctx.kernels = False, None
        if is_fused and emissions.numel():
            return _with_exact_values(ctx, emissions, chain, mask, state, values, is_exact)
        is_exact = is_exact.all()
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
        state = ForwardBackward(*ctx.saved_tensors[5:11])
        needs_grad = ctx.needs_input_grad if ctx.kernels is None else (True,) * 4
        with full_precision(grad_output.device):
            results = marginal_gradients(inputs[0], mask, state, grad_output.unsqueeze(-1), needs_grad, is_full=ctx.is_full)
        if ctx.kernels is not None:
            is_exact, *messages = ctx.saved_tensors[11:]
            ctx.kernels.add_exact_gradient(
                inputs[0], inputs[2], inputs[3], mask, is_exact, tuple(messages), grad_output, tuple(results)
            )
        return *results, None, None, None


def _with_exact_values(
    ctx: Any, emissions: Tensor, chain: Chain, mask: Tensor, state: ForwardBackward, values: Tensor, is_exact: Tensor
) -> Tensor:
    """Returns log Z (B,), in the log domain where the recursion is not exact; saves what the backward pass needs.

    The device decides, so nothing is synchronised. The state of sequences that are not exact is cleared.
    """
    ctx.kernels = fused_kernels_for(emissions)
    messages = ctx.kernels.exact_messages(emissions, tuple(chain), mask, is_exact, values)
    is_inexact = ~is_exact.view(-1, 1)
    for part, value in ((state.a, 0.0), (state.b, 0.0), (state.z, 1.0), (state.norm, 1.0)):
        part.masked_fill_(is_inexact, value)
    ctx.save_for_backward(emissions, *chain, mask, *state, is_exact, *messages)
    return values


def _is_full(mask: Tensor) -> bool:
    """Returns whether the mask is known to be all True; checked only on CPU, to avoid a GPU synchronisation."""
    return is_on_host(mask) and bool(mask.all())
