"""Which guarantees are theorems, and which have to be searched for."""

import math

from linearcore.analysis._certificate import Certificate, Finding
from linearcore.analysis._counterexample import Counterexample, counterexample
from linearcore.analysis._problem import Problem
from linearcore.losses import Centered, Form
from linearcore.structures import Sequences
from linearcore.surrogates import Surrogate


def certify(
    surrogate: Surrogate,
    form: str | Form,
    num_classes: int | None = None,
    *,
    outputs: Sequences | None = None,
    cost: str = "zero-one",
    family: str = "free",
    starts: int = 300,
    seed: int = 0,
) -> Certificate:
    """What a surrogate guarantees with a form: theorems where there are any, a certified search where there are none.

    Pairs that the losses refuse can be certified too; that is how one sees why.

    Args:
        surrogate: φ.
        form: a multi-class form (a sum over competitors, unless a `Form` says otherwise) or a structured one.
        num_classes: n; left out, 2 (or what `outputs` says).
        outputs: the output space, for structured forms.
        cost: "zero-one" or "hamming".
        family: "free", "unary" or "chain": which scores the model can give. A guarantee holds for that family only.
        starts: how hard to search.
        seed: of the search.

    Returns:
        A `Certificate`; `print` it, or take its `to_json()`.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import certify
        >>> certify(LinearCore(tau=0.5), "centered", 5).linear_bound.constant
        2.0
        >>> certify(LinearCore(), "pairwise", 3, starts=60).linear_bound.verdict
        'refuted'

    Cost: nothing where a theorem decides, else a search of a few seconds for n ≤ 5.
    """
    problem = Problem(form, outputs if outputs is not None else (num_classes or 2), cost, family)
    if not problem.is_convex(surrogate):
        unknown = Finding("unknown", "the loss is not convex, so that no minimum can be certified")
        return Certificate(surrogate, problem, False, unknown, unknown)
    bound = _proven_bound(surrogate, problem)
    found: Counterexample | None = None
    if bound is None:
        found = counterexample(surrogate, form, outputs=problem.space, cost=cost, family=family, starts=starts, seed=seed)
        bound = _searched_bound(found)
    consistent = _proven_consistent(surrogate, problem, bound) or _searched_consistent(found)
    return Certificate(surrogate, problem, True, consistent, bound)


def _proven_bound(surrogate: Surrogate, problem: Problem) -> Finding | None:
    """The linear bounds that are theorems. With a core of slope σ on [−w, w]: T(t) ≥ σ·w·t."""
    if surrogate.core is None:
        return None
    low, high = surrogate.core
    slope = -float(surrogate.derivative(0.0))
    name, space = problem.form_name, problem.space
    one_sided = low == -math.inf
    if space.size == 2 and name in ("pairwise", "centered", "logodds"):
        constant = 1 / (slope * min(high, -low))
        return Finding("proven", f"regret ≤ {constant:g} × surrogate regret: two classes and a linear core", constant)
    if name == "centered" and one_sided and problem.family == "free" and problem.cost == "zero-one":
        times = space.size - 1 if isinstance(problem.form, Centered) and problem.form.normalize else 1
        return _by_moving(times / (slope * high), "any free scores")
    if name == "structured-centered" and one_sided and problem.family == "free":
        return _by_moving(1 / (slope * high), "scores that may be any function of the output, and for no smaller family")
    if name == "local-centered" and one_sided and problem.family == "unary" and problem.cost == "hamming":
        constant = 1 / (slope * high * space.length)
        return Finding(
            "proven", f"regret ≤ {constant:g} × surrogate regret: unary scores part into one problem a site", constant
        )
    return None


def _by_moving(constant: float, scope: str) -> Finding:
    reason = (
        f"regret ≤ {constant:g} × surrogate regret for {scope}: moving the predicted score to the core's end pays for it"
    )
    return Finding("proven", reason, constant)


def _searched_bound(found: Counterexample) -> Finding:
    if found.refutes:
        return Finding("refuted", "surrogate regret vanishes faster than target regret", counterexample=found)
    reason = f"no ratio below {found.ratio:.3g} was found, which is no proof"
    return Finding("supported", reason, counterexample=found)


def _proven_consistent(surrogate: Surrogate, problem: Problem, bound: Finding) -> Finding | None:
    if bound.verdict == "proven":
        return Finding("proven", "follows from the linear bound")
    if not surrogate.is_c1 or problem.family != "free" or problem.cost != "zero-one":
        return None
    if problem.form_name == "centered":
        return Finding("proven", "at the minimum (1 − p_v) f'(s_v − mean) is the same for all v, and f' rises")
    if problem.form_name == "pairwise" and surrogate.is_monotone:
        return Finding("proven", "swapping the scores of two classes lowers the risk if the likelier one was behind")
    if problem.form_name == "logodds" and surrogate.is_monotone:
        return Finding("proven", "the log-odds rise with the score, so the likelier of two classes has the higher one")
    return None


def _searched_consistent(found: Counterexample | None) -> Finding:
    assert found is not None
    if found.ratio <= 1e-9:
        return Finding("refuted", "a suboptimal output costs no surrogate regret at all", counterexample=found)
    return Finding("supported", f"every suboptimal answer among {found.searched} searched costs surrogate regret")
