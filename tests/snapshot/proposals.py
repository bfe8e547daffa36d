"""Proposals over classes, for the families that draw from them."""

import torch

from linearcore.proposals import HardNegatives, InBatch, LogUniform, Mixture, Proposal, Uniform, Unigram
from tests.snapshot.inputs import whole


def proposals(num_classes: int) -> dict[str, Proposal]:
    """Every proposal, with draws that rows share and with draws of their own."""
    counts = whole(50, 9, num_classes)
    table = torch.stack([(torch.arange(num_classes) + step) % num_classes for step in (1, 3)], 1)
    unigram = Unigram(counts=counts)
    every: dict[str, Proposal] = {}
    for shared in (True, False):
        suffix = "" if shared else ", own draws"
        every |= {
            f"Uniform{suffix}": Uniform(shared=shared),
            f"Unigram{suffix}": Unigram(counts=counts, shared=shared),
            f"LogUniform{suffix}": LogUniform(shared=shared),
            f"Mixture{suffix}": Mixture(parts=(Uniform(), unigram, LogUniform()), weights=(1, 2, 3), shared=shared),
            f"InBatch{suffix}": InBatch(shared=shared),
            f"Hard{suffix}": HardNegatives(table=table, rest=unigram, shared=shared),
        }
    every["Unigram without smoothing"] = Unigram(counts=counts, power=1.0, smoothing=0.0)
    every["InBatch with Unigram"] = InBatch(rest=unigram)
    every["Hard with repetitions"] = HardNegatives(table=torch.zeros(num_classes, 2, dtype=torch.long))
    return every
