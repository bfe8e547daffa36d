"""Output structures: tag sequences, their scores, constraints and costs."""

from linearcore.structures._chain import Chain, Sites, path_score, sequence_scores
from linearcore.structures._constraints import Constraints
from linearcore.structures._schemes import bio, bioes, bmes
from linearcore.structures._sequences import FAMILIES, Sequences
from linearcore.structures.costs import COSTS, Cost, Hamming, ZeroOne, resolve_cost

__all__ = [
    "COSTS",
    "FAMILIES",
    "Chain",
    "Constraints",
    "Cost",
    "Hamming",
    "Sequences",
    "Sites",
    "ZeroOne",
    "bio",
    "bioes",
    "bmes",
    "path_score",
    "resolve_cost",
    "sequence_scores",
]
