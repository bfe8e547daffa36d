"""Proposals over whole tag sequences: distributions with known probabilities, for importance sampling.

| proposal | samples y' given a reference y | use for |
|---|---|---|
| `UniformSequences()` | uniform over all sequences | the inner sum of the paper's structured loss |
| `SimilarSequences(n)` | proportional to the overlap of aligned n-grams, 1 − Hamming for n = 1 | the outer sum |
| `CostlySequences()` | proportional to Hamming | the centered structured form |
| `Neighbours(sites)` | y with one tag, or several tags in a row, changed | sums restricted to such changes |
| `MovedNgrams(n)` | proportional to the product of n-gram counts, at any place | clipped n-grams and BLEU |
| `EditedSequences()` | y with one tag deleted and one inserted | costs that forgive a shift |
| `ModelSequences(emissions, chain)` | from the model, as in a CRF | sums over what the model confuses |
| `ListedSequences(candidates)` | uniform over a list, such as the k best | sums restricted to the list |
| `MixedSequences(parts, weights)` | one of several proposals, chosen at random | bounded weights, larger support |

Only `UniformSequences`, `ModelSequences` and mixtures with one of them can sample every sequence (`has_full_support`).
`linearcore.structured` computes the importance weights.
"""

from linearcore.proposals.sequences._base import SequenceProposal
from linearcore.proposals.sequences._costly import CostlySequences
from linearcore.proposals.sequences._edited import EditedSequences
from linearcore.proposals.sequences._listed import ListedSequences
from linearcore.proposals.sequences._mixed import MixedSequences
from linearcore.proposals.sequences._model import ModelSequences
from linearcore.proposals.sequences._moved import MovedNgrams
from linearcore.proposals.sequences._neighbours import Neighbours
from linearcore.proposals.sequences._similar import SimilarSequences
from linearcore.proposals.sequences._uniform import UniformSequences

__all__ = [
    "CostlySequences",
    "EditedSequences",
    "ListedSequences",
    "MixedSequences",
    "ModelSequences",
    "MovedNgrams",
    "Neighbours",
    "SequenceProposal",
    "SimilarSequences",
    "UniformSequences",
]
