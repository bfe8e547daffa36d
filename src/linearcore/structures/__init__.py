"""Output structures: tag sequences and acyclic automata, their scores, constraints and costs."""

from linearcore.structures._chain import Chain, Sites, path_score
from linearcore.structures._constraints import Constraints
from linearcore.structures._schemes import bio, bioes, bmes
from linearcore.structures._sequences import FAMILIES, Sequences
from linearcore.structures.automata import Automaton, Expansion, chain_arc_scores, read_att, write_att
from linearcore.structures.costs import COSTS, Cost, Hamming, ZeroOne, resolve_cost

__all__ = [
    "COSTS",
    "FAMILIES",
    "Automaton",
    "Chain",
    "Constraints",
    "Cost",
    "Expansion",
    "Hamming",
    "Sequences",
    "Sites",
    "ZeroOne",
    "bio",
    "bioes",
    "bmes",
    "chain_arc_scores",
    "path_score",
    "read_att",
    "resolve_cost",
    "write_att",
]
