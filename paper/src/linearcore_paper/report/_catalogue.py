"""The experiments in the order of the page: where each belongs in the paper and what it asks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One experiment.

    Attributes:
        name: as `linearcore reproduce` knows it, and the name of its folder.
        title: its heading on the page.
        place: where the paper has it.
        question: what it asks, in a sentence.
    """

    name: str
    title: str
    place: str
    question: str


CATALOGUE: tuple[Entry, ...] = (
    Entry(
        "surrogates",
        "The surrogates",
        "Figure 1 and Table 1",
        "What do the losses look like, and which of them are convex, smooth and linearly consistent?",
    ),
    Entry(
        "rates",
        "Rates of convergence",
        "Figure 2, section 3.4",
        "How fast does the excess error of a biased coin fall with the excess surrogate risk?",
    ),
    Entry(
        "thresholds",
        "Rates for different cores",
        "Figure 9, appendix C",
        "Does the rate stay linear for narrow and for wide cores?",
    ),
    Entry(
        "vanishing-core",
        "A vanishing core",
        "Figure 10, appendix C",
        "What is left of the rate when the core shrinks to nothing?",
    ),
    Entry(
        "surfaces",
        "Three-class surfaces",
        "Figure 3, section 4.1",
        "What does the sum loss look like over the scores of three classes?",
    ),
    Entry(
        "gradients",
        "Gradients against the margin",
        "Figure 4, section 4.3",
        "How hard does each loss push a sample, given its margin?",
    ),
    Entry(
        "counterexample",
        "The search for counterexamples",
        "against Theorems 4.1 and 5.1",
        "Is the surrogate regret of a wrong answer always at least τ times its target regret?",
    ),
    Entry(
        "noise",
        "Learning from wrong labels",
        "Table 2, section 4.3",
        "Which loss keeps its test accuracy when training labels are wrong?",
    ),
    Entry(
        "gradient-histogram",
        "Gradients of clean and wrong labels",
        "Figure 5, section 4.3",
        "Late in training, how hard do wrong labels still push?",
    ),
    Entry(
        "optimization",
        "Stalling and converging",
        "Figure 6, section 5.3",
        "At a fixed step, does the hinge stall where the linear core converges?",
    ),
    Entry(
        "convergence",
        "Sequence tagging against the clock",
        "Figure 11, appendix E",
        "How fast does the test error of a synthetic tagger fall?",
    ),
    Entry(
        "scalability",
        "Cost against the number of tags",
        "Figure 7, section 5.4; Figure 12, appendix E",
        "How does the time of one step grow with the tag set?",
    ),
    Entry(
        "tagging",
        "Tagging with 4,000 tags",
        "Figure 8, section 5.5",
        "How long until a tagger reaches 83 % accuracy?",
    ),
    Entry(
        "variance",
        "Variance of sampled gradients",
        "Theorem 5.3, appendix J",
        "Does the variance stay under its bound, whatever the size of the output space?",
    ),
    Entry(
        "ngram",
        "Training for n‑gram overlap",
        "appendix K",
        "Does training for a target beat training for Hamming cost on that target?",
    ),
)

NAMES = tuple(entry.name for entry in CATALOGUE)
