"""Where the paper needs a correction, letter by letter: what it says, what is true instead, which experiments show it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Correction:
    """One correction.

    Attributes:
        letter: as tests, docstrings and experiments cite it.
        title: the correction in a few words.
        place: where the paper says it.
        paper: what the paper says.
        instead: what holds, and why.
        experiments: those whose results bear on it.
    """

    letter: str
    title: str
    place: str
    paper: str
    instead: str
    experiments: tuple[str, ...]


CORRECTIONS: tuple[Correction, ...] = (
    Correction(
        "a",
        "The sum loss has no linear bound beyond two classes",
        "Theorems 4.1 and 5.1",
        "Target regret is at most the surrogate regret of the sum loss, with any number of classes or outputs.",
        "The proof adds up the minima of single pairs, but margins that are best pair by pair do not add up. Near a tie the "
        "surrogate regret falls with the square of the target regret. The centered form does have a linear bound, for "
        "one-sided surrogates.",
        ("counterexample",),
    ),
    Correction(
        "b",
        "The printed step climbs",
        "Algorithm 1",
        "A step follows φ′(h(y″) − h(y′)) times the difference of gradients ∇h(y″) − ∇h(y′).",
        "The loss is φ(h(y′) − h(y″)), so both the argument and the difference are the wrong way round. Inside the core "
        "the slope is −1 either way, and what is left is a wrong sign.",
        (),
    ),
    Correction(
        "c",
        "The printed sampler never draws the truth",
        "Algorithm 1",
        "Outputs are drawn in proportion to their Hamming distance from the truth and weighted by their similarity to it.",
        "The truth has distance 0, hence probability 0, and carries the largest weight of all. No importance weight repairs "
        "a term that never comes. A sampler must reach every output of positive weight.",
        (),
    ),
    Correction(
        "d",
        "Slopes are bounded by 1 on one side only",
        "Theorem 5.3, proof",
        "The derivative of a linear-core surrogate never exceeds 1 in size.",
        "True for one-sided surrogates with a monotone base. The second tail of a two-sided one is steeper than the core, "
        "and the quartic grows without bound on both sides.",
        ("gradients", "surrogates"),
    ),
    Correction(
        "e",
        "The quartic example rises again",
        "Section 3.1",
        "Φ(z) = az + z⁴/12 + K shows that a twice differentiable surrogate exists.",
        "It does, but its loss grows again for margins beyond τ + (3a)^⅓: samples that are right by far are pushed back. "
        "The gamma base is C2, monotone and Lipschitz at once.",
        ("surrogates",),
    ),
    Correction(
        "f",
        "T(t) is at least τ·t, and τ is a shift",
        "Appendix C",
        "The family in τ is an affine rescaling, with T(t) ≥ t/τ.",
        "Putting u = τ into the infimum gives T(t) ≥ τ·t, and that is tight as t → 0, so t/τ fails for every τ < 1. A "
        "one-sided φ at τ is φ at 1, shifted by 1 − τ.",
        ("thresholds",),
    ),
    Correction(
        "g",
        "The variance bound is for the average",
        "Theorem 5.3",
        "The variance of the stochastic gradient is at most 4R²/K, whatever the number of outputs.",
        "That is so for a loss averaged over outputs. The importance weights of Algorithm 1 make it unbiased for the sum, "
        "and the variance then grows with the square of the number of terms.",
        ("variance",),
    ),
    Correction(
        "h",
        "The cited noise does not gather near the boundary",
        "Section 4.3",
        "Labels are wrong more often where images are ambiguous.",
        "The cited generator draws the rate of each image independently of the image; only which wrong class it gets "
        "depends on its features. Noise that grows towards the boundary is another protocol. And wrong classes have "
        "favourites: above 50 % the likeliest label of an image can be a wrong one, and a loss that learns labels better "
        "can answer worse.",
        ("noise",),
    ),
    Correction(
        "i",
        "Tuned GCE is cross-entropy only as q → 0",
        "Table 2",
        "Generalised cross-entropy with the best q stays within 0.07 points of cross-entropy.",
        "Its gradient is that of cross-entropy times p to the power q, which is far from 1 unless q is near 0. A grid with "
        "the usual q = 0.7, chosen on held-out data, is the fair rival. So chosen, with scale and weight decay, GCE is far "
        "ahead of cross-entropy as in the paper up to 50 %, and not ahead of cross-entropy with as many tries of its own.",
        ("noise",),
    ),
    Correction(
        "j",
        "Huber smoothing can keep the linear rate",
        "Appendix A",
        "Smoothing the hinge by a quadratic piece costs the linear rate.",
        "Only if the piece reaches zero. With width γ < 1 the smoothed hinge is itself a linear-core surrogate, with "
        "τ = 1 − γ and a truncated quadratic tail, so T(t) ≥ (1 − γ)·t.",
        (),
    ),
    Correction(
        "k",
        "A vanishing core does not always mean slope ½",
        "Appendix C, Figure 10",
        "As τ → 0 the rate falls back to a square root.",
        "It does when the base is curved at zero. A C2 base has no curvature there, T(t) behaves like t to the power 4/3, "
        "and the slope tends to ¾.",
        ("vanishing-core",),
    ),
    Correction(
        "l",
        "Slope 1 is a limit",
        "Section 3.4 and appendix C",
        "The log-log slope is 1 over δ from 1e-4 to 1e-1 for every τ from 0.1 to 5.",
        "T(t) = τt + κt² + …, so the local slope is 1 only as δ → 0. A straight fit over the plotted range is lower, the "
        "more so the narrower the core.",
        ("rates", "thresholds"),
    ),
    Correction(
        "m",
        "When the hinge stalls, and when both do",
        "Section 5.3, Figure 6",
        "With stochastic gradients at a fixed step the hinge chatters while the linear core converges.",
        "The contrast needs full gradients and fewer than 1/λ samples, where the hinge has its minimum at the kink. With "
        "one sample a step both losses settle at a floor of noise.",
        ("optimization",),
    ),
    Correction(
        "n",
        "Most of what a CRF takes is a matter of how it is written",
        "Section 5.5, Figure 8",
        "A CRF with 4000 tags must hold 4000 × 4000 transitions for every position, which forces batches of 8, and takes "
        "17.4 and 15.4 times as long to 83 %.",
        "That is the CRF of public libraries. Written as matrix products with a backward pass of its own it has the same "
        "gradient, holds |Y| numbers a position, and is faster by a factor that is most of the one it was beaten by. "
        "The linear core stays ahead of it, by less.",
        ("tagging", "scalability"),
    ),
    Correction(
        "o",
        "A constant push is the hardest there is",
        "Section 4.3, Figure 5",
        "That wrong labels push with 1 and no more keeps the boundary from moving for them.",
        "Against one competitor and at the same scores the linear core pushes every label harder than cross-entropy does, "
        "and all in the core, wrong ones among them, the hardest. It does learn fewer of them; the peak does not explain it."
        " As a mean over the competitors it pushes less in all, against the same weight decay.",
        ("gradient-histogram", "noise"),
    ),
)
