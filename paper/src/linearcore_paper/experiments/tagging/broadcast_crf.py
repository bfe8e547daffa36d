"""The usual linear-chain CRF, as fast as broadcasting gets: the baseline that a reader would write."""

import torch
from torch import Tensor, nn


class BroadcastCRF(nn.Module):
    """log P(y | x) with one logsumexp over (B, |Y|, |Y|) a position, torchcrf's parameters, and autograd's backward pass.

    Nothing is done that need not be: the emissions are taken apart once and not position by position (whose gradient would
    be a full array each), they are added after the sum and not before, and the score of the true tags has no loop.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.start_transitions = nn.Parameter(torch.zeros(num_tags))
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.end_transitions = nn.Parameter(torch.zeros(num_tags))

    def forward(self, emissions: Tensor, tags: Tensor) -> Tensor:
        """The log-likelihood of tags (L, B) under emissions (L, B, |Y|), summed over the chains."""
        first, *others = emissions.unbind(0)
        alpha = self.start_transitions + first
        for row in others:
            alpha = torch.logsumexp(alpha.unsqueeze(-1) + self.transitions, 1) + row
        log_z = torch.logsumexp(alpha + self.end_transitions, -1)
        own = emissions.gather(-1, tags.unsqueeze(-1)).sum((0, 2)) + self.transitions[tags[:-1], tags[1:]].sum(0)
        return (own + self.start_transitions[tags[0]] + self.end_transitions[tags[-1]] - log_z).sum()
