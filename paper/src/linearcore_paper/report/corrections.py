"""Corrections to the paper: its statement, the correct statement, and the experiments that show the difference."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Correction:
    """One correction.

    Attributes:
        letter: letter that tests, docstrings and experiments cite.
        title: the correction in a few words.
        place: place in the paper.
        paper: statement of the paper.
        instead: correct statement, and the reason.
        experiments: experiments with results about it.
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
        "The proof minimises each pair of classes separately, but no scores have these margins at the same time. Near a tie "
        "the surrogate regret decreases with the square of the target regret. The centered form has a linear bound for "
        "one-sided surrogates.",
        ("counterexample",),
    ),
    Correction(
        "b",
        "The printed step increases the loss",
        "Algorithm 1",
        "A step follows φ′(h(y″) − h(y′)) times the difference of gradients ∇h(y″) − ∇h(y′).",
        "The loss is φ(h(y′) − h(y″)), so y′ and y″ are swapped in both the argument and the difference. Inside the core "
        "the slope is −1 in both cases, and the step has the wrong sign.",
        (),
    ),
    Correction(
        "c",
        "The printed sampler never draws the true output",
        "Algorithm 1",
        "Outputs are sampled in proportion to their Hamming distance from the true output and weighted by their similarity.",
        "The true output has distance 0, hence probability 0, but the largest weight. Importance weights cannot correct for "
        "an output that is never sampled. Every output with positive weight needs a positive probability.",
        (),
    ),
    Correction(
        "d",
        "Slopes are bounded by 1 only for one-sided surrogates",
        "Theorem 5.3, proof",
        "The derivative of a linear-core surrogate never exceeds 1 in size.",
        "This holds for one-sided surrogates with a monotone base. The second tail of a two-sided surrogate is steeper than "
        "the core, and the slope of the quartic is unbounded on both sides.",
        ("gradients", "surrogates"),
    ),
    Correction(
        "e",
        "The quartic example is not monotone",
        "Section 3.1",
        "Φ(z) = az + z⁴/12 + K shows that a twice differentiable surrogate exists.",
        "It does, but its loss increases for margins above τ + (3a)^⅓, so it penalises samples that are classified "
        "correctly by a large margin. The gamma base is C2, monotone and Lipschitz.",
        ("surrogates",),
    ),
    Correction(
        "f",
        "T(t) is at least τ·t, and changing τ is a shift",
        "Appendix C",
        "The family in τ is an affine rescaling, with T(t) ≥ t/τ.",
        "Inserting u = τ into the infimum gives T(t) ≥ τ·t, which is tight as t → 0, so t/τ is not a bound for any τ < 1. "
        "A one-sided φ at τ is φ at 1, shifted by 1 − τ.",
        ("thresholds",),
    ),
    Correction(
        "g",
        "The variance bound holds for the average, not the sum",
        "Theorem 5.3",
        "The variance of the stochastic gradient is at most 4R²/K, whatever the number of outputs.",
        "This holds for a loss averaged over outputs. The importance weights of Algorithm 1 make the gradient unbiased for "
        "the sum, and its variance then grows with the square of the number of terms.",
        ("variance",),
    ),
    Correction(
        "h",
        "The cited noise is not more frequent near the boundary",
        "Section 4.3",
        "Labels are wrong more often where images are ambiguous.",
        "The cited generator samples the noise rate of each image independently of the image; only the wrong class depends "
        "on its features. Noise that increases towards the boundary is another protocol. Wrong labels are also concentrated "
        "on few classes: above 50 % noise the most likely label of an image can be wrong, and a loss that fits the labels "
        "better can predict worse.",
        ("noise",),
    ),
    Correction(
        "i",
        "Tuned GCE is cross-entropy only as q → 0",
        "Table 2",
        "Generalised cross-entropy with the best q stays within 0.07 points of cross-entropy.",
        "Its gradient is that of cross-entropy times p to the power q, which is far from 1 unless q is near 0. A fair "
        "baseline is chosen on held-out data from a grid that contains the usual q = 0.7. Tuned in this way, with scale and "
        "weight decay, GCE is much better than the paper's cross-entropy up to 50 % noise, but not better than "
        "cross-entropy with the same tuning budget.",
        ("noise",),
    ),
    Correction(
        "j",
        "Huber smoothing can keep the linear rate",
        "Appendix A",
        "Smoothing the hinge by a quadratic piece destroys the linear rate.",
        "Only if the piece reaches margin zero. With width γ < 1 the smoothed hinge is a linear-core surrogate with "
        "τ = 1 − γ and a truncated quadratic tail, so T(t) ≥ (1 − γ)·t.",
        (),
    ),
    Correction(
        "k",
        "A vanishing core does not always mean slope ½",
        "Appendix C, Figure 10",
        "As τ → 0 the rate falls back to a square root.",
        "It does if the base has curvature at zero. A C2 base has none, T(t) behaves like t to the power 4/3, and the slope "
        "tends to ¾.",
        ("vanishing-core",),
    ),
    Correction(
        "l",
        "Slope 1 is a limit",
        "Section 3.4 and appendix C",
        "The log-log slope is 1 over δ from 1e-4 to 1e-1 for every τ from 0.1 to 5.",
        "T(t) = τt + κt² + …, so the local slope is 1 only as δ → 0. A linear fit over the plotted range gives a lower "
        "slope, and the difference is larger for a narrower core.",
        ("rates", "thresholds"),
    ),
    Correction(
        "m",
        "The hinge stalls only with full gradients and few samples",
        "Section 5.3, Figure 6",
        "With stochastic gradients and a fixed step size the hinge oscillates while the linear core converges.",
        "The difference appears only with full gradients and fewer than 1/λ samples, when the hinge has its minimum at the "
        "kink. With one sample per step both losses stop improving at the level of the gradient noise.",
        ("optimization", "optimization-rates"),
    ),
    Correction(
        "n",
        "Most of the cost of a CRF comes from its implementation",
        "Section 5.5, Figure 8",
        "A CRF with 4000 tags must store 4000 × 4000 transitions for every position, which limits the batch size to 8, and "
        "needs 17.4 and 15.4 times as long to reach 83 %.",
        "This holds for the CRF of public libraries. A CRF with matrix products and a custom backward pass has the same "
        "gradient and stores |Y| numbers per position; it removes most of the difference in speed. The linear core is still "
        "faster, by a smaller factor.",
        ("tagging", "scalability"),
    ),
    Correction(
        "o",
        "A constant gradient is the largest, also for wrong labels",
        "Section 4.3, Figure 5",
        "The gradient of wrong labels is at most 1, so they do not move the boundary.",
        "With one competing class and at the same scores, the linear core has a larger gradient than cross-entropy for "
        "every label, and the largest inside the core, also for wrong labels. It does learn fewer wrong labels, but the "
        "peak of the histogram does not explain it. As a mean over the competing classes its total gradient is smaller, "
        "relative to the same weight decay.",
        ("gradient-histogram", "noise"),
    ),
    Correction(
        "p",
        "Algorithm 1, corrected, does not train, and a step is not 23 times faster",
        "Abstract, Algorithm 1, Figures 7 and 11",
        "Sampling pairs of whole sequences converges to the optimal error within seconds. With 400 tags a step is 23 times "
        "faster than that of a structured SVM.",
        "With (b) and (c) corrected the estimator is unbiased, but the error stays above that of decoding without "
        "transitions, also with many samples: almost all pairs of sequences are far from the truth and from each other. "
        "Candidates at single positions do train. The factor of 23 is reached only with thousands of tags, or against a "
        "slow search.",
        ("convergence", "scalability"),
    ),
    Correction(
        "q",
        "An unbiased sampled gradient does not need a smooth loss",
        "Abstract, sections 1 and 5.3, appendix E",
        "Smoothness enables an unbiased stochastic gradient estimator and keeps its variance bounded.",
        "The gradient of a sum is a sum, for every φ with a subgradient. The hinge in the same double sum has an unbiased "
        "sampled subgradient, and the same variance bound, which uses only the Lipschitz constant. The structured SVM needs "
        "a search because it is a maximum and not a sum. What smoothness improves is the rate of the optimiser.",
        (),
    ),
    Correction(
        "r",
        "C1 alone does not give the rate O(1/T)",
        "Abstract, sections 1 and 5.3",
        "The surrogates are globally C1, so gradient descent has the rate O(1/T) and Nesterov's method O(1/T²).",
        "These rates need a Lipschitz derivative, that is a finite supremum of φ″. It is infinite for the two-sided "
        "exponential and for the quartic, the paper's only C2 example: with any fixed step size, a step from far enough "
        "increases the loss. Logistic, truncated quadratic and gamma have it on both sides.",
        ("optimization-rates", "surrogates"),
    ),
    Correction(
        "s",
        "The cost of an output must not exceed 1",
        "Section 5, Proposition 3.1 and Theorem 5.1",
        "ℓ is any non-negative cost, and outputs are weighted by 1 − ℓ.",
        "A cost above 1 gives a negative weight. The sum loss is then neither convex nor bounded below, and the lemma of "
        "the proof, which needs non-negative weights, does not apply. Divide the cost by its maximum.",
        (),
    ),
    Correction(
        "t",
        "The convolutional Fenchel–Young loss has a closed form and argmax decoding",
        "Appendix A",
        "With more than two classes the loss of Cao et al. is implicit, each gradient needs a solver, and predictions are "
        "not the argmax of the scores.",
        "With π the projection of the scores onto the simplex the loss is CE(s − π, y) + 1 − π_y. One sort computes it. π "
        "has the argmax of the scores, and 0-1 regret ≤ n · surrogate regret for argmax predictions. It is smooth and has a "
        "linear bound with more than two classes, which the paper's sum loss does not have (a).",
        (),
    ),
    Correction(
        "u",
        "The rate comes neither from the slope nor from non-zero curvature at the origin",
        "Sections 1, 3.2 and 4.2, appendix C",
        "Smooth losses have a vanishing gradient, or vanishing curvature, at the origin; the fast rate comes from the "
        "non-vanishing curvature of the linear segment.",
        "Every consistent convex loss has φ′(0) < 0. Curvature is positive for the smooth losses and zero for the linear "
        "core, as appendix A says. With φ″(0) > 0, T(t) is about φ′(0)² t²/(2φ″(0)). With a core the minimal risk has a "
        "kink at t = 0, and T(t) is about τt.",
        ("rates", "optimization-rates"),
    ),
    Correction(
        "v",
        "All theorems assume a complete hypothesis set",
        "Abstract, Theorems 3.2, 3.4, 4.1 and 5.1, appendix A",
        "The bounds hold for restricted and misspecified hypothesis sets, and minimising the surrogate minimises the regret "
        "against the best competitor in the set.",
        "Every theorem assumes that h(x) takes all values. With |h(x)| ≤ Λ < 1 the constant 1 becomes 1/Λ. For "
        "misspecified sets the inequality contains minimizability gaps: a linear model can minimise the surrogate and have "
        "a larger 0-1 error than another linear model.",
        (),
    ),
    Correction(
        "w",
        "F1 and BLEU are not sums over histories",
        "Appendix K",
        "With states that hold the last n − 1 labels, F1 and BLEU are additive, and the linear rate is preserved.",
        "Aligned n-grams and unclipped n-gram counts are additive. F1 is a ratio, and BLEU clips its counts and takes a "
        "geometric mean; neither is a sum over windows of any fixed number of labels. The linear rate is not preserved, "
        "because the sum loss has none (a).",
        (),
    ),
)
