"""Proposals over whole tag sequences: which outputs of a chain are visited, and with what probability.

| proposal | draws y' given a reference y | made for |
|---|---|---|
| `UniformSequences()` | any sequence | the inner sum of the paper's structured loss |
| `SimilarSequences()` | in proportion to 1 − Hamming | its outer sum |
| `CostlySequences()` | in proportion to Hamming | the centered structured form |
| `Neighbours(sites)` | y with one site, or a few in a row, changed | sums restricted to such changes |
| `MixedSequences(parts, weights)` | one of several proposals at random | bounded weights, wider support |

What the draws are weighted with, so that their average estimates a loss, is in `linearcore.structured`.
"""

from linearcore.proposals.sequences._base import SequenceProposal
from linearcore.proposals.sequences._hamming import CostlySequences, SimilarSequences
from linearcore.proposals.sequences._mixed import MixedSequences
from linearcore.proposals.sequences._neighbours import Neighbours
from linearcore.proposals.sequences._uniform import UniformSequences

__all__ = [
    "CostlySequences",
    "MixedSequences",
    "Neighbours",
    "SequenceProposal",
    "SimilarSequences",
    "UniformSequences",
]
