"""The log-partition of a chain: rescaled forward–backward in matrix products, with an underflow check.

Where a number that matters could have underflowed, the recursion is repeated in the log domain.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from linearcore._torch import is_on_host, is_transformed, linear, packed_linear
from linearcore.kernels._backend import resolve_backend, wanted_gradients
from linearcore.kernels._fused import fused_for
from linearcore.kernels._precision import full_precision
from linearcore.structures import Chain

#: With more chains than this a library's matrix product is as fast as the fused one.
MOST_FUSED_CHAINS = 32
#: Fewer products than this do not pay for packing the matrix (measured with 1000 and 4000 columns).
WORTH_PACKING = 20


def log_partition(emissions: Tensor, chain: Chain, mask: Tensor, backend: str = "auto", *, is_full: bool = False) -> Tensor:
    """(B,): log Z, the logsumexp of h(x, y) over all tag sequences y; 0 for a chain without tags.

    torch.compile leaves it as it is: unrolled over the positions it would take minutes to compile and gain nothing.
    torch.export gets the log domain, unrolled. Float32 products are in full precision, whatever
    `torch.set_float32_matmul_precision` says, since the errors of a recursion add up.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: the chain's own scores; −inf forbids.
        mask: (L, B) booleans; where it is False the position is skipped.
        backend: "reference" (broadcast logsumexp, any number of derivatives), "eager" (matrix products, with a backward
            pass of its own), "fused" (the same in Triton, for few chains) or "auto".
        is_full: the mask is known to be all True, which saves a step in each step.

    Time O(L·B·|Y|²). Memory: the reference keeps L×B×|Y|² numbers for the backward pass; the products keep 3·L×B×|Y| and one
    |Y|×|Y|. Where a number that matters could have underflowed, the reference is run instead, with one step's B×|Y|² at a
    time; finding out waits for the device. While a CUDA graph is being captured nothing can wait, and log Z is NaN there.
    """
    if torch.compiler.is_exporting():
        return _plain(emissions, chain, mask)
    # Not as a decorator: that would import the compiler with this module.
    run = torch.compiler.disable(_log_partition) if torch.compiler.is_compiling() else _log_partition
    values: Tensor = run(emissions, chain, mask, backend, is_full)
    return values


def _log_partition(emissions: Tensor, chain: Chain, mask: Tensor, backend: str, is_full: bool) -> Tensor:
    chosen = resolve_backend(backend, (emissions, *chain))
    if chosen == "reference":
        return _plain(emissions, chain, mask)
    values: Tensor = _Partition.apply(emissions, *chain, mask, is_full or _is_full(mask), chosen == "fused")  # type: ignore[no-untyped-call]
    return values


def posterior(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """(L, B, |Y|): P(y_j = v | x), the gradient of log Z by the emissions; 0 where masked. Itself not differentiable."""
    if torch.compiler.is_exporting() or is_transformed():  # Neither can hold a backward pass of its own.
        return _plain_posterior(emissions, chain, mask)
    with torch.enable_grad():
        leaf = emissions.detach().requires_grad_()
        values = log_partition(leaf, Chain(*(part.detach() for part in chain)), mask)
        return torch.autograd.grad(values.sum(), leaf)[0]


def _plain(emissions: Tensor, chain: Chain, mask: Tensor, *, keep_steps: bool = True) -> Tensor:
    """α_j(v) = logsumexp_i [α_{j−1}(i) + transitions[i, v]] + emissions[j, v], with α = start in place of a missing sum.

    Without `keep_steps` the backward pass repeats each step instead of keeping its B×|Y|² numbers.
    """
    return _log_forward(emissions, chain, mask, keep_steps=keep_steps)[0]


def _log_forward(emissions: Tensor, chain: Chain, mask: Tensor, *, keep_steps: bool = True) -> tuple[Tensor, list[Tensor]]:
    """(B,) log Z, and L × (B, |Y|) α."""
    begun = torch.zeros_like(mask[0]) if mask.shape[0] else mask.new_zeros(mask.shape[1])
    alpha = torch.zeros_like(emissions[0]) if mask.shape[0] else emissions.new_zeros(emissions.shape[1:])
    rows = []
    for j, here in enumerate(mask):
        arrive = chain.start.expand_as(alpha)
        if j > 0:
            step = _step(alpha, chain.transitions) if keep_steps else _repeated_step(alpha, chain.transitions)
            arrive = torch.where(begun.unsqueeze(-1), step, arrive)
        alpha = torch.where(here.unsqueeze(-1), arrive + emissions[j], alpha)
        begun = begun | here
        rows.append(alpha)
    return torch.where(begun, _logsumexp(alpha + chain.end, -1), alpha.new_zeros(())), rows


def _plain_posterior(emissions: Tensor, chain: Chain, mask: Tensor) -> Tensor:
    """`posterior` in the log domain, by α and β: exp(α_j + β_j − log Z)."""
    log_z, alphas = _log_forward(emissions, chain, mask)
    beta = chain.end.expand(emissions.shape[1:])
    found = []
    for j in reversed(range(mask.shape[0])):
        here = mask[j].unsqueeze(-1)
        log_share = (alphas[j] + beta - log_z.unsqueeze(-1)).masked_fill(~here, -math.inf)
        found.append(log_share.exp())
        onward = _logsumexp(chain.transitions + (beta + emissions[j]).unsqueeze(1), -1)
        beta = torch.where(here, onward, beta)
    return torch.stack(found[::-1]) if found else torch.zeros_like(emissions)


def _step(alpha: Tensor, transitions: Tensor) -> Tensor:
    return _logsumexp(alpha.unsqueeze(-1) + transitions, 1)


def _repeated_step(alpha: Tensor, transitions: Tensor) -> Tensor:
    step: Tensor = checkpoint(_step, alpha, transitions, use_reentrant=False, preserve_rng_state=False)
    return step


def _logsumexp(x: Tensor, dim: int) -> Tensor:
    """torch.logsumexp, with zero gradient instead of NaN where all terms are −inf."""
    peak = x.detach().amax(dim, keepdim=True)
    nothing = peak == -math.inf
    peak = peak.masked_fill(nothing, 0.0)
    total = (x - peak).exp().sum(dim, keepdim=True).masked_fill(nothing, 1.0)
    return (total.log() + peak).masked_fill(nothing, -math.inf).squeeze(dim)


class _Recursion(NamedTuple):
    """Both directions of the scaled recursion over |Y| tags and one more state, in which a chain is until it begins.

        a_j = (a_{j−1} E) ⊙ x_j / z_j          b_{j−1} = ((b_j ⊙ x_j) Eᵀ) / z'_j

    with E = exp(transitions − column maxima), its extra row for start, x_j = exp(emissions + column maxima − their own
    maximum), and z, z' such that the largest entry of each a and b is 1. P(y_j = v) = a_j(v) b_j(v) / n_j, n_j = a_j · b_j.

    Attributes:
        weights: (W, |Y|) E; W is |Y| + 1, and zero rows up to a multiple of 8 for the sake of fast products.
        peaks: (|Y|,) the column maxima.
        a, b: (L + 1, B, W); position 0 is before the first one.
        z: (L, B, 1).
        norm: (L + 1, B, 1) n.
    """

    weights: Tensor
    peaks: Tensor
    a: Tensor
    b: Tensor
    z: Tensor
    norm: Tensor


class _Partition(torch.autograd.Function):
    """`log_partition` by `_Recursion`."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, mask: Tensor,
        is_full: bool, is_fused: bool,
    ) -> Tensor:  # fmt: skip
        chain = Chain(start, transitions, end)
        ctx.is_full = is_full
        with full_precision(emissions.device):
            run, values, is_certain = _recursion(emissions, chain, mask, is_full, is_fused)
        is_captured = emissions.is_cuda and torch.cuda.is_current_stream_capturing()
        ctx.is_plain = not is_captured and not bool(is_certain)
        if ctx.is_plain:
            ctx.save_for_backward(emissions, *chain, mask)
            return _plain(emissions, chain, mask)
        ctx.save_for_backward(emissions, *chain, mask, *run)
        return torch.where(is_certain, values, math.nan) if is_captured else values

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        *given, mask = ctx.saved_tensors[:5]
        if torch.is_grad_enabled():
            values = _plain(given[0], Chain(*given[1:]), mask)
            wanted = ctx.needs_input_grad[:4]
            return *wanted_gradients(values, given, upstream, wanted, create_graph=True), None, None, None
        if ctx.is_plain:
            with torch.enable_grad():
                leaves = [tensor.detach().requires_grad_() for tensor in given]
                values = _plain(leaves[0], Chain(*leaves[1:]), mask, keep_steps=False)
            return *wanted_gradients(values, leaves, upstream, ctx.needs_input_grad[:4]), None, None, None
        run = _Recursion(*ctx.saved_tensors[5:])
        with full_precision(upstream.device):
            found = _gradient(given[0], mask, run, upstream.unsqueeze(-1), ctx.needs_input_grad, is_full=ctx.is_full)
        return *found, None, None, None


def _recursion(
    emissions: Tensor, chain: Chain, mask: Tensor, is_full: bool, is_fused: bool
) -> tuple[_Recursion, Tensor, Tensor]:
    """The recursion, (B,) log Z, and () whether that is certain."""
    length, batch, num_tags = emissions.shape
    weights, peaks, level_of_start = _weights(chain)
    factors, level = _factors(emissions, peaks)
    a = emissions.new_zeros(length + 1, batch, weights.shape[0])
    a[0, :, num_tags] = 1.0
    here = None if is_full else mask.unsqueeze(-1)
    fused = fused_for(emissions) if is_fused and batch <= MOST_FUSED_CHAINS else None
    z = (fused.forwards if fused else _forwards)(a, weights, factors, here)
    b = torch.zeros_like(a)
    level_of_end = _finite(chain.end.amax())
    b[length, :, :num_tags] = (chain.end - level_of_end).exp_()
    b[length, :, num_tags] = 1.0
    z_back = (fused.backwards if fused else _backwards)(b, weights, factors, here)
    norm = torch.linalg.vecdot(a, b).unsqueeze(-1)
    # A few numbers a chain, added in float64: over hundreds of positions float32 would lose digits for nothing.
    levels = (z.double().log() + level.double()).masked_fill(~mask.unsqueeze(-1), 0.0).sum(0)
    edges = level_of_start.double() + level_of_end.double()
    values = (levels + norm[length].double().log() + edges).squeeze(-1).to(emissions.dtype)
    values = values.masked_fill(~mask.any(0), 0.0)
    return _Recursion(weights, peaks, a, b, z, norm), values, _certificate(num_tags, z, z_back, norm)


def _forwards(a: Tensor, weights: Tensor, factors: Tensor, here: Tensor | None) -> Tensor:
    """Fills a[1:] and returns (L, B, 1) z."""
    length, batch, num_tags = factors.shape
    z, arrived = factors.new_empty(length, batch, 1), factors.new_empty(batch, num_tags)
    multiply = Multiplier(weights, batch, length)
    for j in range(length):
        multiply(a[j], out=arrived)
        torch.mul(arrived, factors[j], out=a[j + 1, :, :num_tags])
        if here is not None:
            torch.where(here[j], a[j + 1], a[j], out=a[j + 1])
        torch.amax(a[j + 1], -1, keepdim=True, out=z[j])
        a[j + 1].div_(z[j])
    return z


def _backwards(b: Tensor, weights: Tensor, factors: Tensor, here: Tensor | None) -> Tensor:
    """Fills b[:-1] and returns (L, B, 1) z'."""
    length, batch, num_tags = factors.shape
    z, left = factors.new_empty(length, batch, 1), factors.new_empty(batch, num_tags)
    multiply = Multiplier(weights.t(), batch, length)
    for j in reversed(range(length)):
        torch.mul(b[j + 1, :, :num_tags], factors[j], out=left)
        multiply(left, out=b[j])
        if here is not None:
            torch.where(here[j], b[j], b[j + 1], out=b[j])
        torch.amax(b[j], -1, keepdim=True, out=z[j])
        b[j].div_(z[j])
    return z


def _is_full(mask: Tensor) -> bool:
    """Whether all positions are known to have a tag; a device is not asked, since the answer would be awaited."""
    return is_on_host(mask) and bool(mask.all())


def _certificate(num_tags: int, z: Tensor, z_back: Tensor, norm: Tensor) -> Tensor:
    """() boolean: what underflow can have taken away is less than rounding.

    All terms are positive, so that underflow only ever takes away. Entries of a, E and x are at most 1, so that in one
    step an entry of (a E) ⊙ x loses at most `tiny` for each of its |Y| + 1 entries of a, of E and of their products, as
    much again for x, and once for the last product: less than 4(|Y| + 1) + 1 times in all. After the division by z_j an
    entry of a_j lacks that times tiny/z_j, and with it the paths through it, whose weight on the other side is at most 1
    (b ≤ 1): of Z, the share (|Y| + 1)·(4|Y| + 5)·tiny / (z_j n_j). The same with b. Summed over all positions this bounds
    the relative error of Z and the absolute one of every marginal. As computed, n_j is too small if anything, so the
    bound holds with it. NaN is never certain.
    """
    info = torch.finfo(z.dtype)
    steps = max(1, 2 * z.shape[0])
    least = steps * (num_tags + 1) * (4 * num_tags + 5) * info.tiny / info.eps
    return ((z * norm[1:] >= least) & (z_back * norm[:-1] >= least)).all() & (norm > 0).all()


def _weights(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """(W, |Y|) E, (|Y|,) the column maxima of transitions and start, and () what was taken out of start beforehand.

    A constant between start and transitions means nothing; left in, it would make all entries of one of them small.
    """
    num_tags = chain.start.shape[0]
    level = _finite(chain.start.amax()) - _finite(chain.transitions.amax())
    weights = chain.transitions.new_full((8 * (num_tags // 8 + 1), num_tags), -math.inf)
    weights[:num_tags] = chain.transitions
    weights[num_tags] = chain.start - level
    peaks = _finite(weights.amax(0))
    return weights.sub_(peaks).exp_(), peaks, level


def _factors(emissions: Tensor, peaks: Tensor) -> tuple[Tensor, Tensor]:
    """(L, B, |Y|) x and (L, B, 1) the maxima that were taken out of it."""
    factors = emissions + peaks
    level = _finite(factors.amax(-1, keepdim=True))
    return factors.sub_(level).exp_(), level


def _finite(peak: Tensor) -> Tensor:
    # Where all is forbidden there is no maximum to take out, and −inf − (−inf) would be NaN.
    return peak.masked_fill(peak == -math.inf, 0.0)


def _gradient(
    emissions: Tensor, mask: Tensor, run: _Recursion, upstream: Tensor, wanted: tuple[bool, ...], *, is_full: bool
) -> list[Tensor | None]:
    """Of emissions, start, transitions and end: upstream (B, 1) times their marginals."""
    length, _, num_tags = emissions.shape
    absent = ~mask.unsqueeze(-1)
    share = (upstream / run.norm[1:]).masked_fill(absent, 0.0)
    inner = run.b[1:, :, :num_tags]
    by_emission = (run.a[1:, :, :num_tags] * inner).mul_(share) if wanted[0] else None
    by_start = by_transition = by_end = None
    if wanted[1] or wanted[2]:
        flow = _factors(emissions, run.peaks)[0].mul_(inner).mul_(share / run.z)
        if not is_full:
            flow.masked_fill_(absent, 0.0)  # What padding holds may be anything, NaN included.
        # Σ over positions and chains of P(y_{j−1} = i, y_j = v), all in one product.
        marginals = torch.mm(run.a[:length].flatten(0, 1).t(), flow.flatten(0, 1)).mul_(run.weights)
        by_start, by_transition = marginals[num_tags], marginals[:num_tags]
    if wanted[3]:
        share = (upstream / run.norm[length]).masked_fill(~mask.any(0).unsqueeze(-1), 0.0)
        by_end = (run.a[length] * run.b[length]).mul_(share)[:, :num_tags].sum(0)
    return [by_emission, by_start, by_transition, by_end]


class Multiplier:
    """x ↦ x @ matrix for x (B, K), to be called `times` times.

    On a CPU a product of a few rows is bound by reading the matrix, and the BLAS behind torch.mm lays it out anew for every
    call. oneDNN can do that once: half the time with 1000 columns, a third with 4000. Used for float32, where torch has it.

    Args:
        matrix: (K, N).
        rows: B, which the layout is made for.
        times: how often it will be called.
    """

    def __init__(self, matrix: Tensor, rows: int, times: int) -> None:
        self._matrix = matrix
        self._packed: Tensor | None = None
        if times >= WORTH_PACKING and rows > 1:
            self._packed = packed_linear(matrix, rows)

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """x @ matrix, written to `out` (B, N)."""
        if self._packed is None:
            return torch.mm(x, self._matrix, out=out)
        return out.copy_(linear(x, self._packed))
