"""Which guarantees are theorems, and which have to be searched for."""

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
    """What a surrogate guarantees with a form: theorems where there are any, a certified search where there are none.

    Pairs that the losses refuse can be certified too; that is how one sees why.

    Args:
        surrogate: φ.
        form: a multi-class form or a structured one; see `Problem`. With a mean over n − 1 competitors, as "centered" has
            it, the constant of a linear bound is n − 1 times that of the sum.
        num_classes: n; left out, 2 (or what `outputs` says).
        outputs: the output space, for structured forms.
        cost: "zero-one", "hamming" or a `Cost`.
        family: "free", "unary" or "chain": which scores the model can give. A guarantee holds for that family only.
        starts: how hard to search.
        seed: of the search.

    Returns:
        A `Certificate`; `print` it, or take its `to_json()`.

    Example:
        >>> from linearcore import Centered, LinearCore
        >>> from linearcore.analysis import certify
        >>> certify(LinearCore(tau=0.5), Centered(normalize=False), 5).linear_bound.constant
        2.0
        >>> certify(LinearCore(), "pairwise", 3, starts=60).linear_bound.verdict
        'refuted'

    Cost: nothing where a theorem decides, else a search of a few seconds for n ≤ 5.
    """
    if num_classes is None and outputs is None:
        num_classes = 2
    problem = problem_on(form, num_classes, outputs, cost, family)
    check_surrogate(surrogate)
    if not problem.is_convex(surrogate):
        return _unknown(surrogate, problem, "the loss is not convex, so that no minimum can be certified")
    bound = _proven_bound(surrogate, problem)
    if bound is None and not can_solve(surrogate, problem):
        return _unknown(surrogate, problem, "minima of a φ with kinks are certified for straight lines and linear margins")
    found: Counterexample | None = None
    if bound is None:
        found = counterexample(
            surrogate, form, outputs=problem.space, cost=problem.cost, family=problem.family, starts=starts, seed=seed
        )
        bound = _searched_bound(found)
    consistent = _proven_consistent(surrogate, problem, bound) or _searched_consistent(found)
    return Certificate(surrogate, problem, True, consistent, bound)


def _unknown(surrogate: Surrogate, problem: Problem, reason: str) -> Certificate:
    finding = Finding("unknown", reason)
    return Certificate(surrogate, problem, problem.is_convex(surrogate), finding, finding)


def _proven_bound(surrogate: Surrogate, problem: Problem) -> Finding | None:
    """The linear bounds that are theorems. With a core of slope −σ on [−w, w]: T(t) ≥ σ·w·t."""
    share = core_constant(surrogate)
    if share is None or surrogate.core is None:
        return None
    form, space = problem.own_form, problem.space
    # A tail that is steeper than the core would lose the bound.
    has_bound = form is not None and form.has_linear_bound and surrogate.core[0] == -math.inf
    by_site = problem.is_local and problem.family == "unary" and problem.own_cost.is_share
    if space.size == 2 and problem.own_cost.is_constant:
        return _bound(surrogate, 1 / share, "two classes and a linear core")
    if problem.over_classes and has_bound and problem.family == "free" and problem.own_cost.is_constant:
        return _bound(surrogate, problem.num_averaged / share, _BY_MOVING)
    has_bound_over_outputs = problem.over_outputs is not None and problem.over_outputs.has_linear_bound
    if has_bound_over_outputs and surrogate.core[0] == -math.inf and problem.family == "free":
        return _bound(surrogate, 1 / share, f"{_BY_MOVING}; this says nothing of scores that are sums over sites")
    if by_site and (space.num_tags == 2 or has_bound):
        return _bound(surrogate, problem.num_averaged / (share * space.length), "unary scores part into one problem a site")
    return None


_BY_MOVING = "moving the predicted score to the core's end pays for it"


def _bound(surrogate: Surrogate, constant: float, reason: str) -> Finding:
    proviso = "" if surrogate.is_proven else ", as far as the base was checked"
    return Finding("proven", f"regret ≤ {constant:g} × surrogate regret: {reason}{proviso}", constant)


def _searched_bound(found: Counterexample) -> Finding:
    if found.refutes:
        how = "is zero where target regret is not" if found.ratios[-1] <= 1e-9 else "vanishes faster than target regret"
        return Finding("refuted", f"surrogate regret {how}", counterexample=found)
    reason = f"no ratio below {found.ratio:.3g} was found, which is no proof"
    return Finding("supported", reason, counterexample=found)


def _proven_consistent(surrogate: Surrogate, problem: Problem, bound: Finding) -> Finding | None:
    if bound.verdict == "proven":
        return Finding("proven", "follows from the linear bound")
    endless = surrogate.core is not None and surrogate.core[1] == math.inf
    if not surrogate.is_c1 or endless or problem.family != "free" or not problem.own_cost.is_constant:
        return None
    reason = problem.over_classes.consistency(surrogate) if problem.over_classes else None
    return None if reason is None else Finding("proven", reason)


def _searched_consistent(found: Counterexample | None) -> Finding:
    assert found is not None
    if found.ratio <= 1e-9:
        return Finding("refuted", "a suboptimal output costs no surrogate regret at all", counterexample=found)
    return Finding("supported", f"every suboptimal answer among {found.searched} searched costs surrogate regret")
