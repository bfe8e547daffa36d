"""The structured support-vector machine."""

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.heads._chain import ChainHead, checked_cost
from linearcore.kernels import kbest, local_scores, resolve_backend, viterbi
from linearcore.structures import Chain, Constraints, Cost, Sites, path_score


class ChainSSVM(ChainHead):
    """A structured SVM: the loss is the hinge of the most violated sequence.

        hamming     max_{y'} [h(x, y') + Σ_j w[y_j] 1[y'_j ≠ y_j]] − h(x, y)          margin rescaling
        zero-one    max(0, 1 + max_{y'≠y} h(x, y') − h(x, y))

    Found by one search a step, Viterbi with the costs added to the emissions, or the two best sequences. The Hamming cost
    is a count here and not a share, so that long chains ask for as much at each position as short ones. Take it for
    comparison, or where the decision alone matters; its loss is not smooth and says nothing about probabilities.

    Args:
        num_tags, batch_first, rank, constraints, strict_mask, validate: as in `linearcore.heads.ChainHead`.
        cost: "hamming", "zero-one", `Hamming(weight)` with a weight for each true tag, or a `Cost` that is a sum over sites.

    Example:
        >>> import torch
        >>> head = ChainSSVM(num_tags=5, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 3, 5, requires_grad=True), torch.tensor([[0, 2, 3], [1, 4, -100]])
        >>> head.loss(emissions, tags).backward()
        >>> head.decode(emissions)[0] == head.viterbi(emissions)[0][0].tolist()
        True

    Cost: that of `viterbi`, O(L·B·|Y|²), and O(L·B) for the gradient beside its dense buffers.
    """

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        cost: str | Cost = "hamming",
        rank: int | None = None,
        constraints: Constraints | None = None,
        strict_mask: bool = True,
        validate: bool = True,
    ) -> None:
        super().__init__(
            num_tags, batch_first, rank=rank, constraints=constraints, strict_mask=strict_mask, validate=validate
        )
        self.cost = checked_cost(cost, num_tags)
        if not (self.cost.is_constant or self.cost.is_additive):
            must = "be a sum over sites, or 1 for every wrong answer, to be searched"
            raise ValueError(complaint("cost", must, type(self.cost).__name__, "take 'hamming' or 'zero-one'"))

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        chain = self.chain(emissions)
        if self.cost.is_constant:
            rival, cost = _other(emissions, chain, tags, sites)
        else:
            rival, cost = _costly(emissions, chain, tags, sites, self.cost)
        against = path_score(emissions, chain, rival, sites)
        own = path_score(emissions, chain, tags, sites)
        # Not below zero: the truth itself is among the rivals, or the hinge says so.
        return (cost + against - own).clamp(min=0.0)

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """The tag's share of the softmax over all tags at its position, its neighbours being as they are.

        A number to sort by: the loss has no probabilities, so that 0.9 does not mean right nine times in ten.
        """
        chain = self.chain(emissions)
        scores = local_scores(emissions, chain, tags, sites, resolve_backend("auto", (emissions, *chain)))
        return scores.softmax(-1).gather(-1, tags.unsqueeze(-1)).squeeze(-1)


def _costly(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, cost: Cost) -> tuple[Tensor, Tensor]:
    """The tags (L, B) that maximise score plus cost, and what they cost (B,)."""
    each = cost.site_costs(tags, emissions.shape[-1], emissions.dtype)
    with torch.no_grad():
        rival = viterbi(emissions + each, chain, sites)[0].clamp(min=0)
    return rival, each.gather(-1, rival.unsqueeze(-1)).squeeze(-1).masked_fill(~sites.mask, 0.0).sum(0)


def _other(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> tuple[Tensor, Tensor]:
    """The best tags (L, B) that are not the truth, and 1 (B,); the truth and 0 where there is nothing else."""
    found, scores = kbest(emissions, chain, sites, 2)
    found = found.clamp(min=0)
    is_truth = ((found[0] == tags) | ~sites.mask).all(0)
    rival = torch.where(is_truth, found[1], found[0])
    is_there = torch.where(is_truth, scores[1], scores[0]) > -torch.inf
    is_there = is_there & sites.mask.any(0)
    return torch.where(is_there, rival, tags), is_there.to(emissions.dtype)
