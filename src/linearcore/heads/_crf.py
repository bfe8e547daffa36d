"""Linear-chain conditional random field."""

from torch import Tensor

from linearcore.heads._chain import ChainHead
from linearcore.kernels import crf_losses, fused_kernels_for, posterior
from linearcore.structures import Sites


class ChainCRF(ChainHead):
    """Linear-chain CRF with torchcrf's interface that scales to thousands of tags.

    `forward` returns the log-likelihood summed over sequences, and `loss` the negative log-likelihood as a mean over tokens:

        log P(y | x) = h(x, y) − log Σ_{y'} exp h(x, y')

    h is the score of a sequence (see `ChainHead`). The sum is computed with matrix products instead of broadcasting, and has
    a custom backward pass. Parameters have torchcrf's names, so a saved torchcrf state loads. Use it for marginal
    probabilities; with many tags, `LinearCoreChain` trains several times faster.

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

    Cost: time O(L·B·|Y|²). Forward pass: L products of (B, |Y|) with (|Y|, |Y|). Backward pass: as many, plus one
    product of (|Y|, L·B) with (L·B, |Y|) for the gradient of the transitions. Memory: a few tensors of size L×B×|Y| and
    |Y|×|Y|. If underflow is detected, the slower log domain is used.
    """

    @property
    def may_underflow(self) -> bool:
        return fused_kernels_for(self.start_transitions) is None

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        return crf_losses(emissions, self.chain(emissions), tags, sites)

    def marginals(self, emissions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Returns P(y_j = v | x) in the shape of `emissions`; 0 where masked. No gradient."""
        batch = self._to_batch(emissions, None, mask)
        probabilities = posterior(batch.emissions, self.chain(batch.emissions), batch.sites.mask)
        return probabilities.transpose(0, 1) if self.batch_first else probabilities

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns the marginal probability of each tag."""
        probabilities = posterior(emissions, self.chain(emissions), sites.mask)
        return probabilities.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
