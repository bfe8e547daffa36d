"""Log-partition function over the paths of an acyclic automaton, by levels, with a custom backward pass.

Tensors inside have the batch last, so that the scores of an arc, or of a state, are one contiguous row.
"""

from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients, resolve_backend
from linearcore.kernels._partition import _logsumexp
from linearcore.kernels.compiled import can_compile_automaton, compiled_path_logsumexp
from linearcore.structures.automata import Plan, Sweep


def path_logsumexp(scores: Tensor, plan: Plan, backend: str = "auto") -> Tensor:
    """Returns log Z (B,), the logsumexp of the scores of all paths; −inf if every path has an arc with score −inf.

    Args:
        scores: (B, A), float32 or float64; −inf marks forbidden arcs.
        plan: order of the arcs, on the device of `scores`.
        backend: "reference" (differentiable any number of times), "eager" (custom backward pass), "compiled" (the same in C,
            with the gradient in the forward pass; falls back to "eager" for scores of +inf or NaN) or "auto".

    Time and memory O(B·A); outside C one step of a few operations for each level. Forbidden arcs have gradient 0. Gradients
    of gradients use the reference.
    """
    chosen = resolve_backend(backend, (scores,), can_fuse=False, can_compile=can_compile_automaton(scores))
    if chosen == "reference":
        return _forward(scores, plan.forward)[-2]
    if chosen == "compiled":
        compiled = compiled_path_logsumexp(scores, plan, lambda leaf: _forward(leaf, plan.forward)[-2])
        if compiled is not None:
            return compiled
    values: Tensor = _LogSumExp.apply(scores, plan)  # type: ignore[no-untyped-call]
    return values


def slot_scores(scores: Tensor, sweep: Sweep) -> Tensor:
    """Returns the scores (P, B) of the slots; arcs that the plan added have score 0."""
    rows = torch.cat([scores.t(), scores.new_zeros(1, scores.shape[0])])
    return rows.index_select(0, sweep.arc)


def first_potentials(scores: Tensor, sweep: Sweep) -> Tensor:
    """Returns potentials (R, B) before a pass: 0 in the first row, and −inf in all others."""
    potentials = scores.new_full((sweep.num_rows, scores.shape[0]), -torch.inf)
    potentials[0] = 0.0
    return potentials


def forward_pass(scores: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
    """Returns potentials (R, B) and P(arc | its target) (P, B), which is 0 where no path is allowed. No gradient.

    The potential of a row is the logsumexp of the scores of all paths from the start to it.
    """
    slots, potentials = slot_scores(scores, sweep), first_potentials(scores, sweep)
    lowest = torch.finfo(scores.dtype).min
    for step, neighbour, part, result in sweep.blocks(slots, potentials):
        part.add_(potentials.index_select(0, neighbour))
        block = part.view(len(result), step.width, scores.shape[0])
        peak = block.amax(1, keepdim=True).clamp_(min=lowest)  # If all are −inf, exp gives 0 and the logarithm −inf.
        torch.sum(block.sub_(peak).exp_(), 1, out=result)
        block.div_(result.clamp(min=1.0).unsqueeze(1))  # The sum is at least 1, or 0.
        result.log_().add_(peak.squeeze(1))
    return potentials, slots


def _forward(scores: Tensor, sweep: Sweep) -> Tensor:
    """Returns the potentials; every operation is differentiable."""
    slots, potentials = slot_scores(scores, sweep), first_potentials(scores, sweep)
    for low, high, first, last, width in sweep.steps:
        incoming = potentials.index_select(0, sweep.neighbour[first:last]) + slots[first:last]
        potentials[low:high] = _logsumexp(incoming.view(high - low, width, scores.shape[0]), 1)
    return potentials


def _expected_counts(posteriors: Tensor, plan: Plan, grad: Tensor) -> Tensor:
    """Returns the gradient (B, A): the probability of each arc, times `grad` (B,), from P(arc | its target) (P, B)."""
    sweep, batch = plan.backward, posteriors.shape[-1]
    slots = posteriors.index_select(0, plan.forward_slot)
    rows = posteriors.new_zeros(sweep.num_rows, batch)
    rows[0] = grad
    for step, neighbour, part, result in sweep.blocks(slots, rows):
        part.mul_(rows.index_select(0, neighbour))
        torch.sum(part.view(len(result), step.width, batch), 1, out=result)
    return slots.index_select(0, plan.slot).t()


class _LogSumExp(torch.autograd.Function):
    """`path_logsumexp`. An arc's gradient is that of its target times P(arc | target)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, plan: Plan) -> Tensor:
        potentials, posteriors = forward_pass(scores, plan.forward)
        ctx.plan = plan
        ctx.save_for_backward(scores, posteriors)
        return potentials[-2].clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, None]:
        scores, posteriors = ctx.saved_tensors
        if torch.is_grad_enabled():
            values = _forward(scores, ctx.plan.forward)[-2]
            return compute_gradients(values, [scores], grad_output, [True], create_graph=True)[0], None
        return _expected_counts(posteriors, ctx.plan, grad_output), None
