"""Linear-chain structured support-vector machine."""

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.heads._chain import ChainHead, cost_for_tags
from linearcore.kernels import kbest, local_scores, resolve_backend, viterbi
from linearcore.structures import Chain, Constraints, Cost, Sites, path_score


class ChainSSVM(ChainHead):
    """Structured SVM: a margin loss against the most violating sequence.

        hamming     max_{y'} [h(x, y') + Σ_j w[y_j] 1[y'_j ≠ y_j]] − h(x, y)          margin rescaling
        zero-one    max(0, 1 + max_{y'≠y} h(x, y') − h(x, y))

    h is the score of a sequence (see `ChainHead`), and w[v] the weight of tag v in `Hamming(weight)`, 1 without weights.

    The maximum is found by Viterbi with the costs added to the emissions (hamming) or by 2-best Viterbi (zero-one). The
    Hamming cost is a count and not a fraction, so the required margin per position does not depend on the length. Use
    `ChainSSVM` as a baseline, or if you need no probabilities. The loss is not smooth.

    Args:
        num_tags, batch_first, rank, constraints, strict_mask, validate: as in `linearcore.heads.ChainHead`.
        cost: "hamming", "zero-one", `Hamming(weight)` with a weight for each true tag, or a `Cost` with `is_additive`.

    Example:
        >>> import torch
        >>> head = ChainSSVM(num_tags=5, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 3, 5, requires_grad=True), torch.tensor([[0, 2, 3], [1, 4, -100]])
        >>> head.loss(emissions, tags).backward()
        >>> head.decode(emissions)[0] == head.viterbi(emissions)[0][0].tolist()
        True

    Cost: that of `viterbi`, O(L·B·|Y|²), plus O(L·B) and dense buffers for the gradient.
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
        self.cost = cost_for_tags(cost, num_tags)
        if not (self.cost.is_constant or self.cost.is_additive):
            must = "be a sum over positions, or 1 for every wrong sequence"
            raise ValueError(complaint("cost", must, type(self.cost).__name__, "use 'hamming' or 'zero-one'"))

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        chain = self.chain(emissions)
        if self.cost.is_constant:
            violator, cost = _best_wrong(emissions, chain, tags, sites)
        else:
            violator, cost = _cost_augmented(emissions, chain, tags, sites, self.cost)
        violator_score = path_score(emissions, chain, violator, sites)
        true_score = path_score(emissions, chain, tags, sites)
        # Never negative: the maximum includes the true sequence (hamming), or the hinge clamps (zero-one).
        return (cost + violator_score - true_score).clamp(min=0.0)

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns the softmax probability of each tag over all tags at its position, given its neighbours.

        Use it for ranking only: it is not calibrated, since the loss does not define probabilities.
        """
        chain = self.chain(emissions)
        scores = local_scores(emissions, chain, tags, sites, resolve_backend("auto", (emissions, *chain)))
        return scores.softmax(-1).gather(-1, tags.unsqueeze(-1)).squeeze(-1)


def _cost_augmented(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, cost: Cost) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) that maximise score plus cost, and their cost (B,), NaN if a score is NaN."""
    site_costs = cost.site_costs(tags, emissions.shape[-1], emissions.dtype)
    with torch.no_grad():
        violator, scores = viterbi(emissions + site_costs, chain, sites)
    violator = violator.clamp(min=0)
    costs = site_costs.gather(-1, violator.unsqueeze(-1)).squeeze(-1).masked_fill(~sites.mask, 0.0).sum(0)
    return violator, costs.masked_fill(scores.isnan(), torch.nan)


def _best_wrong(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> tuple[Tensor, Tensor]:
    """Returns the best tags (L, B) that differ from `tags`, and cost 1 (B,); `tags` and 0 if no other sequence exists."""
    best_two, scores = kbest(emissions, chain, sites, 2)
    best_two = best_two.clamp(min=0)
    is_true = ((best_two[0] == tags) | ~sites.mask).all(0)
    violator = torch.where(is_true, best_two[1], best_two[0])
    has_violator = torch.where(is_true, scores[1], scores[0]) > -torch.inf
    has_violator = has_violator & sites.mask.any(0)
    cost = has_violator.to(emissions.dtype).masked_fill(scores.isnan().any(0), torch.nan)
    return torch.where(has_violator, violator, tags), cost
