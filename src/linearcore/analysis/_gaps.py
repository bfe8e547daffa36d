"""Minimizability gaps of linear hypothesis sets on a finite sample."""

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis._infimum import infimum
from linearcore.analysis._minimum import NotSolvedError
from linearcore.analysis._problem import Problem
from linearcore.analysis._sample import Sample, as_sample
from linearcore.forms import FORMS, Form
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class MinimizabilityGap:
    """M(H) = inf_{h∈H} E[ℓ(h, x, y)] − E_x[ inf_{h∈H} E[ℓ(h, x, y) | x] ].

    Attributes:
        gap: M(H) ≥ 0.
        best_in_class: the first term.
        pointwise: the second.
        residual: the worst certificate among all minimisations (see `minimal_risk`); 0 for the 0-1 loss, which is
            enumerated.
    """

    gap: float
    best_in_class: float
    pointwise: float
    residual: float


def minimizability_gap(
    surrogate: Surrogate,
    form: str | Form,
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    intercept: bool = True,
    num_classes: int | None = None,
) -> MinimizabilityGap:
    """The minimizability gap of a surrogate loss for linear scores on a finite sample.

        M(H) = inf_{h∈H} E[ℓ(h, x, y)] − E_x[ inf_{h∈H} E[ℓ(h, x, y) | x] ],        H = {x ↦ Wx + b}

    Expectations are over the sample: equal rows are one input, at which labels have the frequencies of those rows. W has no
    bound, so at any one input other than 0 the scores may be any numbers; at x = 0 without an intercept they are 0. For
    two classes "pairwise" is the binary loss φ(y·h(x)) of h(x) = ⟨w, x⟩ + b. Where an infimum is approached only by growing
    scores, as on separable data, it is its limit that is returned.

    Args:
        surrogate: φ.
        form: a multi-class form, by name or as a `Form`.
        features: (n, d).
        labels: (n,): class indices, or −1 and +1.
        intercept: whether there is a b.
        num_classes: C; left out, the largest label + 1.

    Raises:
        ValueError: if features or labels do not fit.
        NotSolvedError: if a certificate does not hold.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import minimizability_gap
        >>> square = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
        >>> xor = minimizability_gap(LinearCore("truncated_quadratic"), "pairwise", square, [0, 0, 1, 1])
        >>> xor.best_in_class, xor.pointwise, xor.gap
        (1.5, 0.0, 1.5)

    Cost: Newton steps on a matrix with d·(C − 1) rows, each from N·C² margins for pairwise, N·C for the others, and a linear
    program with as many constraints; meant for hundreds of inputs.

    Reference: section 2 of the paper.
    """
    sample = as_sample(features, labels, intercept=intercept, num_classes=num_classes)
    problem = Problem(form, sample.num_classes)
    if problem.over_classes is None:
        must = f"be one of {', '.join(map(repr, FORMS))}"
        raise ValueError(complaint("form", must, repr(form), "hypotheses score classes here"))
    best, residual = infimum(surrogate, problem, sample.design, sample.masses)
    pointwise = 0.0
    for is_zero, mass, distribution in _distinct(sample):
        one = torch.zeros(1, 0) if is_zero else torch.ones(1, 1)
        value, own_residual = infimum(surrogate, problem, one.double(), distribution.unsqueeze(0))
        pointwise, residual = pointwise + mass * value, max(residual, own_residual)
    return MinimizabilityGap(best - pointwise, best, pointwise, residual)


def _distinct(sample: Sample) -> list[tuple[bool, float, Tensor]]:
    """Inputs with the same label distribution taken together: is x = 0, their mass, p(y | x)."""
    mass = sample.masses.sum(-1)
    conditional = torch.cat([sample.is_zero.double().unsqueeze(-1), sample.masses / mass.unsqueeze(-1)], -1)
    rows, which = conditional.unique(dim=0, return_inverse=True)
    total = mass.new_zeros(len(rows)).index_add(0, which, mass)
    return [(bool(row[0]), float(weight), row[1:]) for row, weight in zip(rows, total, strict=True)]


def zero_one_gap(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    intercept: bool = True,
    num_classes: int | None = None,
    most: int = 2000,
) -> MinimizabilityGap:
    """The minimizability gap of the 0-1 loss for linear scores on a tiny sample, exactly.

    Ways to answer all inputs are looked at in the order of their error; the first that linear scores can give, with no ties,
    has the least. There are C^N ways, so this is for a dozen inputs, or for samples that few changes make separable.

    Args:
        features, labels, intercept, num_classes: as in `minimizability_gap`.
        most: give up after this many ways.

    Raises:
        ValueError: if features or labels do not fit.
        NotSolvedError: if the first `most` ways are all impossible.

    Example:
        >>> from linearcore.analysis import zero_one_gap
        >>> zero_one_gap([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]).gap
        0.25

    Cost: a linear program with N·(C − 1) constraints for each way.
    """
    sample = as_sample(features, labels, intercept=intercept, num_classes=num_classes)
    # Every linear function ties at such an input, which is an error for all and part of no gap.
    always = float(sample.masses[sample.is_zero].sum())
    design, masses = sample.design[~sample.is_zero].numpy(), sample.masses[~sample.is_zero].numpy()
    order = np.argsort(-masses, axis=1, kind="stable")
    extra = masses.max(1, keepdims=True) - np.take_along_axis(masses, order, 1)
    pointwise = float(masses.sum() - masses.max(1).sum()) + always
    # Entries: what an answer costs above the pointwise best, the place of each answer in `order`, the last place changed.
    queue: list[tuple[float, tuple[int, ...], int]] = [(0.0, (0,) * len(masses), 0)]
    for _ in range(most):
        if not queue:
            break
        cost, places, last = heapq.heappop(queue)
        if _possible(design, order[np.arange(len(order)), np.array(places, dtype=np.intp)], masses.shape[1]):
            return MinimizabilityGap(cost, pointwise + cost, pointwise, 0.0)
        for at in range(last, len(places)):
            if (place := places[at] + 1) < masses.shape[1]:
                more = cost + float(extra[at, place] - extra[at, place - 1])
                heapq.heappush(queue, (more, (*places[:at], place, *places[at + 1 :]), at))
    raise NotSolvedError(f"none of the {most} best ways to answer {len(masses)} inputs is linear; raise `most`")


def _possible(design: npt.NDArray[np.float64], answers: npt.NDArray[np.intp], num_classes: int) -> bool:
    """Whether some linear scores give these answers with no ties: ⟨w_answer − w_v, x⟩ ≥ 1 for all x and v ≠ answer."""
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    eye = np.eye(num_classes)
    rows = [
        np.kron(eye[v] - eye[answer], x)
        for x, answer in zip(design, answers, strict=True)
        for v in range(num_classes)
        if v != answer
    ]
    size = num_classes * design.shape[1]
    if not rows:
        return True
    found = linprog(np.zeros(size), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=(None, None), method="highs")
    if found.status not in (0, 2):
        raise NotSolvedError(f"a linear program was not solved: {found.message}")
    return bool(found.status == 0)
