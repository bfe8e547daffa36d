"""Best paths and samples of an acyclic automaton.

Paths are traced from the end to the start, where they stay: slot 0 is an arc that leaves it.
"""

import torch
from torch import Tensor

from linearcore.kernels._automaton import first_potentials, forward_pass, slot_scores
from linearcore.kernels.compiled import compiled_best_path
from linearcore.structures.automata import PADDING, Plan, Sweep


def best_path(scores: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """Returns the arcs (B, M) of a path with the highest score, −100 after its end, and its score (B,). No gradient.

    If every path has score −inf, the arcs are −100. Time O(B·A), in C where possible. Memory there 4 or 8 rows of scores for
    each thread, elsewhere B×A for the scores and B×states for the search.
    """
    return compiled_best_path(scores, plan) or _best_path(scores, plan)


def _best_path(scores: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """`best_path` in torch operations, level by level."""
    sweep, scores = plan.forward, scores.detach()
    slots, values = slot_scores(scores, sweep), first_potentials(scores, sweep)
    choice = torch.zeros_like(values, dtype=torch.int64)
    for step, neighbour, part, value, index in sweep.blocks(slots, values, choice):
        incoming = values.index_select(0, neighbour).add_(part)
        torch.max(incoming.view(len(value), step.width, scores.shape[0]), 1, out=(value, index))
    slot = choice.add_(sweep.first.unsqueeze(-1))
    column = torch.arange(scores.shape[0], device=scores.device)
    previous = sweep.neighbour[slot].mul_(scores.shape[0]).add_(column)
    end = (sweep.num_rows - 2) * scores.shape[0] + column
    return _trace_back(plan, previous, slot, end, values[-2]), values[-2]


def best_paths(scores: Tensor, plan: Plan, k: int) -> tuple[Tensor, Tensor]:
    """Returns the arcs (k, B, M) of the k best paths, best first, −100 after their ends, and scores (k, B). No gradient.

    If fewer than k paths have a finite score, the others have score −inf and arcs −100. Time O(B·k·A), memory B×k×states
    for the search.
    """
    sweep, scores = plan.forward, scores.detach()
    batch, slots = scores.shape[0], slot_scores(scores, sweep).unsqueeze(-1)
    # values[s, b, r]: the r-th best score of paths from the start to s. At the start only the empty path exists.
    values = scores.new_full((sweep.num_rows, batch, k), -torch.inf)
    values[0, :, 0] = 0.0
    choice = torch.zeros_like(values, dtype=torch.int64)
    for step, neighbour, part, value, index in sweep.blocks(slots, values, choice):
        incoming = values.index_select(0, neighbour).add_(part)
        if step.width == 1:  # The predecessor's paths, in their order.
            value[:], index[:] = incoming, torch.arange(k, device=scores.device)
            continue
        value[:], index[:] = incoming.view(len(value), step.width, batch, k).transpose(1, 2).flatten(2).topk(k)
    slot = (choice // k).add_(sweep.first[:, None, None])
    place = torch.arange(batch * k, device=scores.device).view(batch, k)
    previous = (sweep.neighbour[slot] * batch + place // k) * k + choice % k
    end = (sweep.num_rows - 2) * batch * k + place
    return _trace_back(plan, previous, slot, end, values[-2]).transpose(0, 1), values[-2].t()


def sample_paths(scores: Tensor, plan: Plan, num_samples: int, generator: torch.Generator | None) -> Tensor:
    """Returns the arcs (K, B, M) of independent samples with probability exp(score − log Z), −100 after their ends.

    Paths are sampled from the end to the start, each arc given its target. If every path has score −inf, the arcs are −100.

    Args:
        scores: (B, A).
        plan: order of the arcs.
        num_samples: K.
        generator: random number generator on the device of `scores`; None for torch's default.

    Time O(B·A + K·B·M·log A), memory B×A.
    """
    sweep, scores = plan.forward, scores.detach().double()
    potentials, posteriors = forward_pass(scores, sweep)
    table = _cumulative_probabilities(posteriors, sweep)
    batch, size = scores.shape[0], (plan.max_length + 1, scores.shape[0], num_samples)
    uniform = torch.rand(size, dtype=torch.float64, device=scores.device, generator=generator)
    row = torch.full((batch, num_samples), sweep.num_rows - 2, device=scores.device)
    arcs = []
    for values in uniform:
        # Row r has the values from r to r + 1 for itself. Rounding must not lead to the next row.
        above = (row + 1).double()
        key = torch.minimum(values.add_(row), torch.nextafter(above, torch.zeros_like(above)))
        slot = torch.searchsorted(table, key, right=True)
        arcs.append(sweep.arc[slot].masked_fill_(row == 0, PADDING))
        row = sweep.neighbour[slot]
    paths = _left_aligned(torch.stack(arcs, -1)[..., 1:])  # The arc into the end was added by the plan.
    return paths.masked_fill_((potentials[-2] == -torch.inf)[:, None, None], PADDING).transpose(0, 1)


def _cumulative_probabilities(table: Tensor, sweep: Sweep) -> Tensor:
    """Returns an increasing table (B, P): the row of each slot plus the cumulative probability of the row's slots."""
    for step, _, part in sweep.blocks(table):
        block = part.view(len(part) // step.width, step.width, table.shape[-1]).cumsum_(1)
        # Exactly 1 at the end. Rows that no path reaches have no probabilities; any increasing values will do for them.
        block.div_(block[:, -1:].clone()).nan_to_num_(nan=1.0)
    return table.add_(sweep.row.unsqueeze(-1)).t().contiguous()


def _trace_back(plan: Plan, previous: Tensor, slot: Tensor, end: Tensor, values: Tensor) -> Tensor:
    """Returns the arcs (…, M) of paths, given the position before each position, from the positions `end` (…)."""
    sweep = plan.forward
    before, arc = previous.flatten(), sweep.arc[slot].index_fill_(0, end.new_zeros(1), PADDING).flatten()
    positions = [end]
    for _ in range(plan.max_length):
        positions.append(before.take(positions[-1]))
    arcs = _left_aligned(arc[torch.stack(positions, -1)[..., 1:]])  # The arc into the end was added by the plan.
    return arcs.masked_fill_((values == -torch.inf).unsqueeze(-1), PADDING)


def _left_aligned(backwards: Tensor) -> Tensor:
    """Reverses paths (…, M), whose padding stays at the end."""
    length = (backwards != PADDING).sum(-1, keepdim=True)
    index = length - 1 - torch.arange(backwards.shape[-1], device=backwards.device)
    return backwards.gather(-1, torch.where(index < 0, index + backwards.shape[-1], index))
