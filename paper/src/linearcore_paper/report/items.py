"""Every definition, statement, algorithm, figure and table of the paper, in its order, with the claims that check it.

Verdicts, numbers and commands come from the records of the experiments. Numbers of statements are those of the printed
paper: statements share one counter in each section, and appendices have letters.
"""

from dataclasses import dataclass

#: Name of an experiment, and a part of the texts of its claims; "" means all claims of the paper.
Check = tuple[str, str]


@dataclass(frozen=True)
class Item:
    """One item of the paper.

    Attributes:
        name: number in the paper, or the section of an item without a number.
        label: its `\\label` in the paper's source; "" if it has none.
        says: what it says or shows, in a few words.
        checks: the claims that check it. The first one gives the number in the report.
        corrections: letters of corrections to it, besides those of the claims.
    """

    name: str
    label: str
    says: str
    checks: tuple[Check, ...]
    corrections: tuple[str, ...] = ()


ITEMS: tuple[Item, ...] = (
    Item("Table 1", "tab:loss_comparison", "Convexity, smoothness and rate of six losses", (("surrogates", "Table 1"),)),
    Item("Section 2", "", "Definition of the minimizability gap", (("statements", "Section 2"),), ("v",)),
    Item("Figure 1", "fig:extensions", "Curves of the surrogates", (("surrogates", "Linear-core surrogates"),)),
    Item("Eq. (1)", "eq:Phi", "Definition of the two-sided surrogate", (("statements", "Eq. (1)"),)),
    Item("Eq. (2)", "eq:Phi_one", "Definition of the one-sided surrogate", (("statements", "Eq. (2)"),)),
    Item(
        "Proposition 3.1",
        "prop:properties",
        "The surrogates are convex and C1, and C2 if Φ''(0) = 0",
        (("surrogates", "Linear-core surrogates"), ("surrogates", "Φ''(0) = 0"), ("surfaces", "convex in the scores")),
        ("s",),
    ),
    Item("Theorem 3.2", "thm:T-binary", "Formula of the transformation T", (("statements", "Theorem 3.2"),), ("v",)),
    Item("Lemma 3.3", "lemma:lin-binary", "T(t) ≥ t, two-sided", (("statements", "Lemma 3.3"),)),
    Item("Theorem 3.4", "thm:bound-binary", "Linear bound, two classes", (("statements", "Theorem 3.4"),), ("v",)),
    Item("Lemma 3.5", "lemma:lin-binary-one", "T(t) ≥ t, one-sided", (("statements", "Lemma 3.5"),)),
    Item("Corollary 3.6", "cor:bound-binary-one", "Linear bound, one-sided", (("statements", "Corollary 3.6"),), ("v",)),
    Item("Figure 2", "fig:rates", "Rates on a biased coin", (("rates", ""),), ("u",)),
    Item("Eq. (3)", "eq:sum_loss", "Definition of the sum loss", (("statements", "Eq. (3)"),)),
    Item("Figure 3", "fig:multi_surfaces", "Surfaces of the loss for three classes", (("surfaces", ""),)),
    Item("Theorem 4.1", "thm:bound-multi", "Linear bound, many classes", (("counterexample", "Theorem 4.1"),), ("v",)),
    Item("Figure 4", "fig:gradient_invariance", "Gradient against margin", (("gradients", ""),)),
    Item("Table 2", "tab:noise_robustness", "Accuracy with wrong labels on CIFAR-10", (("noise", ""),)),
    Item("Figure 5", "fig:gradient_invariance_hist", "Gradients of right and wrong labels", (("gradient-histogram", ""),)),
    Item("Section 5", "", "Definition of the structured sum loss", (("statements", "Section 5"),), ("s",)),
    Item("Theorem 5.1", "thm:bound-struct", "Linear bound, structured", (("counterexample", "Theorem 5.1"),), ("s", "v")),
    Item(
        "Remark 5.2",
        "",
        "Linear bounds instead of square-root bounds in all three settings",
        (("counterexample", "Theorem 4.1"), ("counterexample", "Theorem 5.1"), ("statements", "Theorem 3.4")),
    ),
    Item(
        "Section 5.3",
        "",
        "Rates O(1/T) and O(1/T²) of gradient methods, O(1/√T) for the hinge",
        (("optimization-rates", "rate O("), ("optimization-rates", "C1 and therefore")),
        ("q",),
    ),
    Item("Figure 6", "fig:optimization_trajectories", "Steps of a fixed size", (("optimization", ""),)),
    Item(
        "Algorithm 1",
        "alg:struct_sgd",
        "Training with sampled pairs of outputs",
        (("convergence", "Algorithm 1"),),
        tuple("bcp"),
    ),
    Item("Theorem 5.3", "thm:variance_bound", "Variance of the sampled gradient", (("variance", ""),), ("q",)),
    Item("Figure 7", "fig:scalability", "Time of a step against the number of tags", (("scalability", "23 times"),), ("p",)),
    Item("Figure 8", "fig:efficiency", "Time to accuracy with 4000 tags", (("tagging", ""),)),
    Item(
        "Eq. (4)", "eq:generalized_phi", "Definition of the family in τ", (("statements", "Eq. (4)"), ("thresholds", "t/τ"))
    ),
    Item("Figure 9", "fig:stability_thresholds", "Rates for τ from 0.1 to 5", (("thresholds", ""),)),
    Item("Figure 10", "fig:vanishing_core", "Rates as τ → 0", (("vanishing-core", ""),)),
    Item("Appendix D", "", "Closed forms for three classes", (("statements", "Appendix D"),)),
    Item("Figure 11", "fig:struct_efficiency", "Test error against time", (("convergence", ""),), ("p",)),
    Item("Figure 12", "fig:scalability_full", "Time of a step, full details", (("scalability", ""),), ("p",)),
    Item("Appendix F", "", "Definitions of conditional error and regret", (("statements", "Appendix F"),)),
    Item("Lemma H.1", "lemma:explicit_assumption_01", "Regret of the 0-1 loss", (("statements", "Lemma H.1"),)),
    Item("Lemma H.2", "lem:restricted-interval-optimizer", "Infimum over the core", (("statements", "Lemma H.2"),)),
    Item("Lemma I.1", "lemma:explicit_assumption_01-struct", "Regret of a cost", (("statements", "Lemma I.1"),)),
    Item("Appendix K", "app:rational_kernels", "The linear core extends to F1 and BLEU", (("ngram", "The advantages"),)),
    Item("Appendix K, additivity", "", "N-gram overlap is additive over histories", (("ngram", "N-gram overlap"),)),
    Item("Appendix K, F1 and BLEU", "", "F1 and BLEU are rational kernels", (("ngram", "F1 and BLEU become"),)),
    Item("Appendix K, estimator", "", "The unbiased estimator generalises", (("ngram", "The unbiased estimator"),), ("c",)),
    Item("Appendix K, sampling", "", "No high-variance sampling is needed", (("ngram", "Proposals over"),), ("g",)),
    Item("Appendix K, rate", "", "The linear rate is preserved", (("ngram", "The linear rate"),), ("w",)),
    Item("Appendix K, step", "", "A step costs O(1)", (("ngram", "A step costs"),)),
)
