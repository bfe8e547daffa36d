"""Guarantees of a loss, by theorems and by a search for counterexamples."""

import math

from linearcore._checks import positive
from linearcore.analysis._certificate import Certificate, Finding
from linearcore.analysis._counterexample import Counterexample, core_constant, counterexample
from linearcore.analysis._minimum import can_solve
from linearcore.analysis._problem import AnyForm, Problem, problem_on
from linearcore.analysis._worst_case import WorstCase, binary_worst_case, searched_worst_case
from linearcore.losses import check_surrogate
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate


def certify(
    surrogate: Surrogate,
    form: AnyForm,
    num_classes: int | None = None,
    *,
    outputs: Sequences | None = None,
    cost: str | Cost = "zero-one",
    family: str = "free",
    bound: float | None = None,
    starts: int = 300,
    seed: int = 0,
) -> Certificate:
    """Checks convexity, smoothness, consistency and linear regret bound of a surrogate with a form.

    Uses known theorems if they apply, and otherwise a numerical search for counterexamples. Also accepts combinations of
    surrogate and form that the losses reject.

    Args:
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: a multi-class or structured form; see `Problem`. "centered" is the mean over competitors, the sum divided by
            n − 1, so the constant of its regret bound is n − 1 times larger than that of the sum.
        num_classes: n; default 3, or the size of `outputs`.
        outputs: the output space, for structured forms.
        cost: "zero-one", "hamming" or a `Cost`.
        family: class of score functions: "free" (any scores), "unary" or "chain" (sums of local scores). A guarantee holds
            for this family only.
        bound: Λ, an assumption on the scores, not the regret bound: |h(x)| ≤ Λ for two classes, s_v ≥ s̄ − Λ for "centered".
            If given, only theorems are used, no search. For other forms with three or more classes there is no theorem.
        starts: number of starting points of the search.
        seed: random seed of the search.

    Returns:
        A `Certificate`. Use `print` or `to_json()`.

    Example:
        >>> from linearcore import Centered, LinearCore
        >>> from linearcore.analysis import certify
        >>> certify(LinearCore(tau=0.5), Centered(normalize=False), 5).linear_bound.constant
        2.0
        >>> certify(LinearCore(), "pairwise", 3, starts=60).linear_bound.verdict
        'refuted'

    Run time: a few seconds for n ≤ 5 if a search is needed.
    """
    if num_classes is None and outputs is None:
        num_classes = 3
    problem = problem_on(form, num_classes, outputs, cost, family)
    check_surrogate(surrogate)
    if bound is not None:
        positive("bound", bound, "pass the bound of the scores, for example 2.0")
    if not problem.is_convex(surrogate):
        return _unknown(surrogate, problem, bound, "the loss is not convex, so no minimum can be certified")
    finding = _proven_bound(surrogate, problem, bound)
    if finding is None and bound is not None:
        return _bounded(surrogate, problem, bound)
    if finding is None and not can_solve(surrogate, problem):
        reason = "minima of a non-smooth φ are certified only if φ is piecewise linear and margins are linear"
        return _unknown(surrogate, problem, bound, reason)
    example: Counterexample | None = None
    if finding is None:
        example = counterexample(
            surrogate, form, outputs=problem.space, cost=problem.cost, family=problem.family, starts=starts, seed=seed
        )
        finding = _searched_bound(example)
    consistent = _proven_consistent(surrogate, problem, finding) or _searched_consistent(example)
    worst_case = _worst_case(surrogate, problem, finding, example)
    return Certificate(surrogate, problem, True, consistent, finding, bound, worst_case)


def _unknown(surrogate: Surrogate, problem: Problem, bound: float | None, reason: str) -> Certificate:
    finding = Finding("unknown", reason)
    return Certificate(surrogate, problem, problem.is_convex(surrogate), finding, finding, bound)


def _worst_case(
    surrogate: Surrogate, problem: Problem, finding: Finding, example: Counterexample | None
) -> WorstCase | None:
    if finding.constant is not None:
        return WorstCase(1.0, finding.constant, "theorem")
    if problem.is_binary:
        return binary_worst_case(surrogate, None)
    return None if example is None else searched_worst_case(example)


def _bounded(surrogate: Surrogate, problem: Problem, bound: float) -> Certificate:
    """Returns the certificate for scores in [−bound, bound] without a core: T for two classes, otherwise nothing."""
    if not problem.is_binary:
        reason = "no theorem for bounded scores applies; with more classes there is one for 'centered' with a linear core"
        return _unknown(surrogate, problem, bound, reason)
    worst_case = binary_worst_case(surrogate, bound)
    consistent = _theorem(surrogate, "φ is convex with φ'(0) < 0, and scores near 0 are allowed")
    finding = Finding("refuted", "T(t)/t converges to 0 as t → 0")
    if worst_case.exponent == 1:
        finding = Finding("supported", f"T(t) ≥ {1 / worst_case.constant:.4g}·t, computed")
    return Certificate(surrogate, problem, True, consistent, finding, bound, worst_case)


def _proven_bound(surrogate: Surrogate, problem: Problem, bound: float | None) -> Finding | None:
    """Returns the linear bound if it is a theorem. A core of slope −σ on [−w, w] has T(t) ≥ σ·w·t."""
    slope_times_width = core_constant(surrogate, bound)
    if slope_times_width is None or surrogate.core is None:
        return None
    form, space = problem.margin_form, problem.space
    # The bound does not hold if the left tail is steeper than the core, unless bounded scores do not reach that tail.
    size = space.num_tags if problem.is_local else space.size
    reach = math.inf if bound is None else (size - 1) * bound
    is_core_long = surrogate.core[0] <= -reach
    has_bound = form is not None and form.has_linear_bound and is_core_long
    if problem.is_binary:
        return _bound(surrogate, 1 / slope_times_width, "two classes and a linear core")
    if problem.multiclass_form and has_bound and problem.family == "free" and problem.cost_object.is_constant:
        return _bound(surrogate, problem.num_averaged / slope_times_width, _THEOREM)
    has_structured_bound = problem.structured_form is not None and problem.structured_form.has_linear_bound
    if has_structured_bound and is_core_long and problem.family == "free":
        return _bound(surrogate, 1 / slope_times_width, f"{_THEOREM}; not proven for scores that are sums over positions")
    if problem.is_separable and (space.num_tags == 2 or has_bound):
        constant = problem.num_averaged / (slope_times_width * space.length)
        return _bound(surrogate, constant, "with unary scores each position is a separate problem")
    return None


_THEOREM = "the core is linear for all negative margins that occur, and the form has a proven bound"


def _bound(surrogate: Surrogate, constant: float, reason: str) -> Finding:
    return _theorem(surrogate, f"regret ≤ {constant:g} × surrogate regret: {reason}", constant)


def _theorem(surrogate: Surrogate, reason: str, constant: float | None = None) -> Finding:
    """Returns what a theorem says, proven only if the properties of φ are."""
    if surrogate.is_proven:
        return Finding("proven", reason, constant)
    return Finding("supported", f"{reason}, if φ has the properties that were checked numerically", constant)


def _searched_bound(example: Counterexample) -> Finding:
    if example.refutes:
        is_zero = example.ratios[-1] <= 1e-9
        reason = "surrogate regret is zero at a positive target regret" if is_zero else "surrogate regret vanishes faster"
        return Finding("refuted", reason if is_zero else f"{reason} than target regret", counterexample=example)
    reason = f"no ratio below {example.ratio:.3g} was found, which is not a proof"
    return Finding("supported", reason, counterexample=example)


def _proven_consistent(surrogate: Surrogate, problem: Problem, bound: Finding) -> Finding | None:
    if bound.constant is not None:
        return Finding(bound.verdict, "follows from the linear bound")
    is_unbounded = surrogate.core is not None and surrogate.core[1] == math.inf
    if not surrogate.is_c1 or is_unbounded:
        return None
    form = problem.multiclass_form or problem.structured_form
    # A multi-class form minimises the error; a structured form has the cost in its weights, which replace p in the proof.
    if form is not None and problem.family == "free" and (problem.structured_form or problem.cost_object.is_constant):
        reason = form.consistency(surrogate)
        return None if reason is None else _theorem(surrogate, reason)
    if problem.is_separable and problem.margin_form is not None:
        reason = problem.margin_form.consistency(surrogate)
        return None if reason is None else _theorem(surrogate, f"each position is a separate problem; {reason}")
    return None


def _searched_consistent(example: Counterexample | None) -> Finding:
    assert example is not None
    if example.ratio <= 1e-9:
        return Finding("refuted", "a suboptimal prediction has zero surrogate regret", counterexample=example)
    reason = f"surrogate regret was positive for suboptimal predictions at all {example.searched} distributions searched"
    return Finding("supported", reason)
