"""Tag sequences of one length as an automaton, and the scores of its arcs."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures._chain import Chain
from linearcore.structures._constraints import Constraints

if TYPE_CHECKING:
    from linearcore.structures.automata._automaton import Automaton


def chain_arcs(length: int, num_tags: int, constraints: Constraints | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns source, target and label of the arcs, and the final states; see `Automaton.from_chain`."""
    for name, number in (("length", length), ("num_tags", num_tags)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(complaint(name, "be an integer", repr(number), "for example 10"))
        if number < 1:
            raise ValueError(complaint(name, "be at least 1", number, "use at least one tag and one position"))
    if constraints is not None and constraints.num_tags != num_tags:
        must = f"have {num_tags} tags"
        raise ValueError(complaint("constraints", must, constraints.num_tags, "build both from the same list of tags"))
    if constraints is not None and not constraints.has_path(length):
        must = f"allow a sequence of length {length}"
        raise ValueError(complaint("constraints", must, "none", "allow more transitions, first tags or last tags"))
    state = torch.arange(length * num_tags).reshape(length, num_tags) + 1
    is_useful = _is_useful(length, num_tags, constraints)
    # The arcs into a state follow each other, in the order in which kernels read them.
    before, after = state[:-1, None, :].expand(-1, num_tags, -1), state[1:, :, None].expand(-1, -1, num_tags)
    is_kept = is_useful[:-1, None, :] & is_useful[1:, :, None]
    if constraints is not None:
        is_kept = is_kept & constraints.transitions.cpu().t()
    first = state[0][is_useful[0]]
    source = torch.cat([torch.zeros_like(first), before[is_kept]])
    target = torch.cat([first, after[is_kept]])
    return source, target, (target - 1) % num_tags, state[-1][is_useful[-1]]


def chain_arc_scores(automaton: "Automaton", emissions: Tensor, chain: Chain) -> Tensor:
    """Returns the scores (B, A) of the arcs of `Automaton.from_chain`, so that a path has the score of its tags.

        arc into tag v at position j:  emissions[j, v] + transitions[u, v] for j > 1, start[v] for j = 1; + end[v] for j = L

    Args:
        automaton: from `Automaton.from_chain` with the same length and number of tags.
        emissions: (L, B, |Y|).
        chain: start, transition and end scores, for example `head.chain(emissions)`.

    Raises:
        ValueError: if the automaton has another length or number of tags.

    Example:
        >>> from linearcore.structures import Automaton, Chain
        >>> chain = Chain(torch.zeros(2), torch.tensor([[0.0, 1.0], [2.0, 3.0]]), torch.zeros(2))
        >>> chain_arc_scores(Automaton.from_chain(2, 2), torch.zeros(2, 1, 2), chain)
        tensor([[0., 0., 0., 2., 1., 3.]])

    Differentiable. Time and memory O(B·L·|Y|²).
    """
    length, batch, num_tags = emissions.shape
    last = (automaton.final - 1) // num_tags
    if automaton.max_length != length or bool((last != length - 1).any()) or int(automaton.label.max()) >= num_tags:
        got = f"the longest path has {automaton.max_length} arcs, and emissions have shape {tuple(emissions.shape)}"
        raise ValueError(complaint("automaton", "be the chain of the emissions", got, "use Automaton.from_chain"))
    scores = torch.cat([emissions[:-1], (emissions[-1] + chain.end).unsqueeze(0)]).transpose(0, 1)
    first = scores[:, 0] + chain.start
    others = scores[:, 1:].unsqueeze(-1) + chain.transitions.t()
    dense = torch.cat([first, others.reshape(batch, -1)], -1)
    if dense.shape[-1] == automaton.num_arcs:
        return dense
    position, before = (automaton.target - 1) // num_tags, (automaton.source - 1) % num_tags
    index = (position - 1) * num_tags**2 + num_tags * (automaton.label + 1) + before
    return dense.index_select(-1, torch.where(position == 0, automaton.label, index).to(dense.device))


def _is_useful(length: int, num_tags: int, constraints: Constraints | None) -> Tensor:
    """Returns booleans (L, |Y|): the tag at the position is in a sequence that satisfies the constraints."""
    is_useful = torch.ones(length, num_tags, dtype=torch.bool)
    if constraints is None:
        return is_useful
    transitions, reached, leads_on = constraints.transitions.cpu(), constraints.start.cpu(), constraints.end.cpu()
    for j in range(length):
        is_useful[j] &= reached
        is_useful[length - 1 - j] &= leads_on
        reached, leads_on = transitions[reached].any(0), transitions[:, leads_on].any(1)
    return is_useful
