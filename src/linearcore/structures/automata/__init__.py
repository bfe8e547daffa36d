"""Acyclic automata: an output is a path, such as a tag sequence, a word of a lexicon or a path of a lattice.

    Automaton             states and arcs; builders; number of paths; history expansion
    read_att, write_att   the text format of OpenFst, pynini and k2
    chain_arc_scores      arc scores of a chain from emissions and transitions

`linearcore.structured.PathDistribution` has the operations on arc scores.
"""

from linearcore.structures.automata._att import read_att, write_att
from linearcore.structures.automata._automaton import PADDING, Automaton
from linearcore.structures.automata._chain import chain_arc_scores
from linearcore.structures.automata._history import Expansion
from linearcore.structures.automata._sweep import Plan, Sweep

__all__ = ["PADDING", "Automaton", "Expansion", "Plan", "Sweep", "chain_arc_scores", "read_att", "write_att"]
