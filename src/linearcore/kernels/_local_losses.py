"""A form over the local scores of every site of a chain."""

from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._backend import choose_backend, wanted_gradients
from linearcore.kernels._dense import dense_rows
from linearcore.kernels._form import FormKernel
from linearcore.kernels._fused import fused_for
from linearcore.kernels._labels import Labels
from linearcore.kernels._local import links, local_scores
from linearcore.kernels._logodds import LogOddsKernel
from linearcore.structures import Chain, Sites


def local_losses(
    kernel: FormKernel, emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str = "auto"
) -> Tensor:
    """(L, B): the form's loss at every site; where masked it means nothing. Arguments as in `local_scores`.

    Time O(L·B·|Y|). For log-odds on an accelerator it is one launch forward and one backward, beside what belongs to φ.
    """
    is_plain = any(choose_backend(backend, part) == "plain" for part in (emissions, *chain))
    if not is_plain and isinstance(kernel, LogOddsKernel) and _can_fuse(emissions, chain):
        rows: Tensor = _FusedLogOdds.apply(kernel, emissions, *chain, tags, sites)  # type: ignore[no-untyped-call]
    else:
        scores = local_scores(emissions, chain, tags, sites, backend)
        rows = dense_rows(kernel, scores.reshape(-1, scores.shape[-1]), Labels(tags.reshape(-1)), backend)
    return rows.view(tags.shape)


def _can_fuse(emissions: Tensor, chain: Chain) -> bool:
    # The fused gradient adds up in whatever order the device likes.
    return not torch.are_deterministic_algorithms_enabled() and fused_for(emissions, *chain) is not None


class _FusedLogOdds(torch.autograd.Function):
    """`local_losses` for log-odds, fused. A second derivative differentiates the plain definition."""

    @staticmethod
    def forward(
        ctx: Any, kernel: LogOddsKernel, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        tags: Tensor, sites: Sites,
    ) -> Tensor:  # fmt: skip
        fused = fused_for(emissions)
        assert fused is not None
        linked = links(tags, sites)
        scores, own, peak, total = fused.local_log_odds(emissions, (start, transitions, end), linked, tags)
        margin = (own - peak) - total.log()
        ctx.kernel, ctx.sites = kernel, sites
        ctx.save_for_backward(emissions, start, transitions, end, tags, *linked, scores, peak, total, margin)
        return kernel.surrogate._value(margin).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        emissions, start, transitions, end, tags, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():
            given = (emissions, start, transitions, end)
            losses = local_losses(ctx.kernel, emissions, Chain(*given[1:]), tags, ctx.sites, "plain")
            wanted = ctx.needs_input_grad[1:5]
            found = wanted_gradients(losses, given, upstream.view(tags.shape), wanted, create_graph=True)
            return None, *found, None, None
        linked, (scores, peak, total, margin) = tuple(saved[:4]), saved[4:]
        slope, share = ctx.kernel.slope_and_share(margin, total, upstream.unsqueeze(-1))
        fused = fused_for(emissions)
        assert fused is not None
        found = fused.local_gradient(scores, tags, linked, peak, share, slope, emissions.dtype)
        return None, *found, None, None
