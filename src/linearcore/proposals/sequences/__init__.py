"""Proposals over whole tag sequences: distributions with known probabilities, for importance sampling.

| proposal | samples y' given a reference y | use for |
|---|---|---|
| `UniformSequences()` | uniform over all sequences | the inner sum of the paper's structured loss |
| `SimilarSequences()` | proportional to 1 − Hamming | the outer sum of the paper's structured loss |
| `CostlySequences()` | proportional to Hamming | the centered structured form |
| `Neighbours(sites)` | y with one tag, or several tags in a row, changed | sums restricted to such changes |
| `MixedSequences(parts, weights)` | one of several proposals, chosen at random | bounded weights, larger support |

`linearcore.structured` computes the importance weights.
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
