"""Guarantees of a loss, by theorems and by a search for counterexamples."""

import math

from linearcore.analysis._certificate import Certificate, Finding
from linearcore.analysis._counterexample import Counterexample, core_constant, counterexample
from linearcore.analysis._minimum import can_solve
from linearcore.analysis._problem import AnyForm, Problem, problem_on
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
    starts: int = 300,
    seed: int = 0,
) -> Certificate:
    """Checks convexity, smoothness, consistency and linear regret bound of a surrogate with a form.

    Uses known theorems if they apply, and otherwise a numerical search for counterexamples. Also accepts combinations of
    surrogate and form that the losses reject.

    Args:
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: a multi-class or structured form; see `Problem`. A mean over n − 1 competitors, the default of "centered", has
            n − 1 times the constant of the sum.
        num_classes: n; default 2, or the size of `outputs`.
        outputs: the output space, for structured forms.
        cost: "zero-one", "hamming" or a `Cost`.
        family: class of score functions: "free" (any scores), "unary" or "chain" (sums of local scores). A guarantee holds
            for this family only.
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
        num_classes = 2
    problem = problem_on(form, num_classes, outputs, cost, family)
    check_surrogate(surrogate)
    if not problem.is_convex(surrogate):
        return _unknown(surrogate, problem, "the loss is not convex, so no minimum can be certified")
    bound = _proven_bound(surrogate, problem)
    if bound is None and not can_solve(surrogate, problem):
        reason = "minima of a non-smooth φ are certified only if φ is piecewise linear and margins are linear"
        return _unknown(surrogate, problem, reason)
    example: Counterexample | None = None
    if bound is None:
        example = counterexample(
            surrogate, form, outputs=problem.space, cost=problem.cost, family=problem.family, starts=starts, seed=seed
        )
        bound = _searched_bound(example)
    consistent = _proven_consistent(surrogate, problem, bound) or _searched_consistent(example)
    return Certificate(surrogate, problem, True, consistent, bound)


def _unknown(surrogate: Surrogate, problem: Problem, reason: str) -> Certificate:
    finding = Finding("unknown", reason)
    return Certificate(surrogate, problem, problem.is_convex(surrogate), finding, finding)


def _proven_bound(surrogate: Surrogate, problem: Problem) -> Finding | None:
    """Returns the linear bound if it is a theorem. A core of slope −σ on [−w, w] has T(t) ≥ σ·w·t."""
    slope_times_width = core_constant(surrogate)
    if slope_times_width is None or surrogate.core is None:
        return None
    form, space = problem.margin_form, problem.space
    # The bound does not hold if the left tail is steeper than the core.
    has_bound = form is not None and form.has_linear_bound and surrogate.core[0] == -math.inf
    is_separable = problem.is_local and problem.family == "unary" and problem.cost_object.is_error_fraction
    if space.size == 2 and problem.cost_object.is_constant:
        return _bound(surrogate, 1 / slope_times_width, "two classes and a linear core")
    if problem.multiclass_form and has_bound and problem.family == "free" and problem.cost_object.is_constant:
        return _bound(surrogate, problem.num_averaged / slope_times_width, _THEOREM)
    has_structured_bound = problem.structured_form is not None and problem.structured_form.has_linear_bound
    if has_structured_bound and surrogate.core[0] == -math.inf and problem.family == "free":
        return _bound(surrogate, 1 / slope_times_width, f"{_THEOREM}; not proven for scores that are sums over positions")
    if is_separable and (space.num_tags == 2 or has_bound):
        constant = problem.num_averaged / (slope_times_width * space.length)
        return _bound(surrogate, constant, "with unary scores each position is a separate problem")
    return None


_THEOREM = "the core is linear for all negative margins, and the form has a proven bound"


def _bound(surrogate: Surrogate, constant: float, reason: str) -> Finding:
    condition = "" if surrogate.is_proven else ", if the base has the properties that were checked numerically"
    return Finding("proven", f"regret ≤ {constant:g} × surrogate regret: {reason}{condition}", constant)


def _searched_bound(example: Counterexample) -> Finding:
    if example.refutes:
        is_zero = example.ratios[-1] <= 1e-9
        reason = "surrogate regret is zero at a positive target regret" if is_zero else "surrogate regret vanishes faster"
        return Finding("refuted", reason if is_zero else f"{reason} than target regret", counterexample=example)
    reason = f"no ratio below {example.ratio:.3g} was found, which is not a proof"
    return Finding("supported", reason, counterexample=example)


def _proven_consistent(surrogate: Surrogate, problem: Problem, bound: Finding) -> Finding | None:
    if bound.verdict == "proven":
        return Finding("proven", "follows from the linear bound")
    is_unbounded = surrogate.core is not None and surrogate.core[1] == math.inf
    if not surrogate.is_c1 or is_unbounded or problem.family != "free" or not problem.cost_object.is_constant:
        return None
    reason = problem.multiclass_form.consistency(surrogate) if problem.multiclass_form else None
    return None if reason is None else Finding("proven", reason)


def _searched_consistent(example: Counterexample | None) -> Finding:
    assert example is not None
    if example.ratio <= 1e-9:
        return Finding("refuted", "a suboptimal prediction has zero surrogate regret", counterexample=example)
    reason = f"surrogate regret was positive for suboptimal predictions at all {example.searched} distributions searched"
    return Finding("supported", reason)
