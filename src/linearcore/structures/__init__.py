"""Output structures: tag sequences, their scores, constraints and costs."""

from linearcore.structures._chain import Chain, Sites, path_score, sequence_scores
from linearcore.structures._constraints import Constraints
from linearcore.structures._schemes import bio, bioes, bmes
from linearcore.structures._sequences import FAMILIES, Sequences
from linearcore.structures.costs import (
    COST_NAMES,
    COSTS,
    AlignedNgram,
    Bleu,
    ClippedNgram,
    Cost,
    EditDistance,
    Hamming,
    SpanF1,
    TokenF1,
    ZeroOne,
    ngram_kernel,
    resolve_cost,
)

__all__ = [
    "COSTS",
    "COST_NAMES",
    "FAMILIES",
    "AlignedNgram",
    "Bleu",
    "Chain",
    "ClippedNgram",
    "Constraints",
    "Cost",
    "EditDistance",
    "Hamming",
    "Sequences",
    "Sites",
    "SpanF1",
    "TokenF1",
    "ZeroOne",
    "bio",
    "bioes",
    "bmes",
    "ngram_kernel",
    "path_score",
    "resolve_cost",
    "sequence_scores",
]
