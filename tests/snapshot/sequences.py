"""Proposals over whole tag sequences."""

from linearcore.proposals.sequences import (
    CostlySequences,
    MixedSequences,
    Neighbours,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)


def sequence_proposals() -> dict[str, SequenceProposal]:
    """Every one."""
    return {
        "UniformSequences": UniformSequences(),
        "SimilarSequences": SimilarSequences(),
        "CostlySequences": CostlySequences(),
        "Neighbours(1)": Neighbours(1),
        "Neighbours(2)": Neighbours(2),
        "MixedSequences": MixedSequences((UniformSequences(), Neighbours(), SimilarSequences()), (1.0, 3.0, 2.0)),
    }
