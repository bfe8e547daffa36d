"""The conditional random field."""

from typing import ClassVar

from torch import Tensor

from linearcore.heads._chain import ChainHead
from linearcore.kernels import log_partition, posterior
from linearcore.structures import Sites, path_score


class ChainCRF(ChainHead):
    """An exact linear-chain CRF: everything torchcrf.CRF does, with thousands of tags.

    The output of `forward` is the log-likelihood, and `loss` is its negative:

        log P(y | x) = h(x, y) − log Σ_{y'} exp h(x, y')

    by matrix products instead of broadcasting, with a hand-written backward pass. Parameters have torchcrf's names, so that
    a saved torchcrf state loads. Take it for posterior probabilities; `LinearCoreChain` trains several times faster where
    tags are many.

    Args:
        num_tags, batch_first, rank, constraints, strict_mask, validate: as in `linearcore.heads.ChainHead`.

    Example:
        >>> import torch
        >>> head = ChainCRF(num_tags=5)
        >>> emissions = torch.zeros(3, 2, 5, requires_grad=True)  # (length, batch, tags)
        >>> loss = head.loss(emissions, torch.tensor([[0, 1], [2, 4], [3, 1]]))
        >>> loss.backward()
        >>> head.marginals(emissions).sum(-1)
        tensor([[1., 1.],
                [1., 1.],
                [1., 1.]])

    Cost: time O(L·B·|Y|²), in L products of (B, |Y|) with (|Y|, |Y|) each way and one of (|Y|, L·B) with (L·B, |Y|). Memory
    a few L×B×|Y| and |Y|². Scores that would underflow are found out and done in the log domain, slowly (`log_partition`).
    """

    may_underflow: ClassVar[bool] = True

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        chain = self.chain(emissions)
        own = path_score(emissions, chain, tags, sites)
        return log_partition(emissions, chain, sites.mask, is_full=sites.is_full) - own

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """P(y_j = v | x) for all positions and tags, in the shape of `emissions`; 0 where masked. No gradient."""
        batch = self._batch(emissions, None, mask)
        found = posterior(batch.emissions, self.chain(batch.emissions), batch.sites.mask)
        return found.transpose(0, 1) if self.batch_first else found

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """The posterior probability of each tag, whatever the others are."""
        found = posterior(emissions, self.chain(emissions), sites.mask)
        return found.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
