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
    """Minimizability gap, M(H) = inf_{h∈H} E[ℓ(h, x, y)] − E_x[ inf_{h∈H} E[ℓ(h, x, y) | x] ].

    Attributes:
        gap: M(H) ≥ 0.
        best_in_class: the first term.
        pointwise: the second term.
        residual: largest optimality residual of all minimisations (see `minimal_risk`); 0 for the 0-1 loss.
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
    """Computes the minimizability gap of a surrogate loss for linear scores on a finite sample.

        M(H) = inf_{h∈H} E[ℓ(h, x, y)] − E_x[ inf_{h∈H} E[ℓ(h, x, y) | x] ],        H = {x ↦ Wx + b}

    Expectations are over the sample. Equal rows are one input, and their labels give its label distribution. W is unbounded,
    so the scores at a single input are arbitrary, except at x = 0 without an intercept, where they are 0. For two classes
    "pairwise" is the binary loss φ(y·h(x)) of h(x) = ⟨w, x⟩ + b. If an infimum is not attained, as on separable data, its
    limit is returned.

    Args:
        surrogate: φ.
        form: a multi-class form, by name or as a `Form`.
        features: (n, d).
        labels: (n,): class indices, or −1 and +1.
        intercept: whether to include b.
        num_classes: C; default: the largest label + 1.

    Raises:
        ValueError: if features or labels are invalid.
        NotSolvedError: if a minimisation does not converge.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import minimizability_gap
        >>> square = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
        >>> xor = minimizability_gap(LinearCore("truncated_quadratic"), "pairwise", square, [0, 0, 1, 1])
        >>> xor.best_in_class, xor.pointwise, xor.gap
        (1.5, 0.0, 1.5)

    Cost: Newton steps with d·(C − 1) unknowns and N·C² margins for pairwise, N·C for the other forms, and a linear program
    with as many constraints. Suitable for hundreds of inputs.

    Reference: section 2 of the paper.
    """
    sample = as_sample(features, labels, intercept=intercept, num_classes=num_classes)
    problem = Problem(form, sample.num_classes)
    if problem.multiclass_form is None:
        must = f"be one of {', '.join(map(repr, FORMS))}"
        raise ValueError(complaint("form", must, repr(form), "use a multi-class form"))
    best, residual = infimum(surrogate, problem, sample.design, sample.masses)
    pointwise = 0.0
    for is_zero, mass, distribution in _distinct(sample):
        design = torch.zeros(1, 0) if is_zero else torch.ones(1, 1)
        value, input_residual = infimum(surrogate, problem, design.double(), distribution.unsqueeze(0))
        pointwise, residual = pointwise + mass * value, max(residual, input_residual)
    return MinimizabilityGap(best - pointwise, best, pointwise, residual)


def _distinct(sample: Sample) -> list[tuple[bool, float, Tensor]]:
    """Returns groups of inputs with the same label distribution: whether x = 0, their total mass, and p(y | x)."""
    mass = sample.masses.sum(-1)
    conditional = torch.cat([sample.is_zero.double().unsqueeze(-1), sample.masses / mass.unsqueeze(-1)], -1)
    rows, row_index = conditional.unique(dim=0, return_inverse=True)
    total = mass.new_zeros(len(rows)).index_add(0, row_index, mass)
    return [(bool(row[0]), float(weight), row[1:]) for row, weight in zip(rows, total, strict=True)]


def zero_one_gap(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    intercept: bool = True,
    num_classes: int | None = None,
    max_labelings: int = 2000,
) -> MinimizabilityGap:
    """Computes the exact minimizability gap of the 0-1 loss for linear scores on a tiny sample.

    A labeling predicts a class for every input. Labelings are tried in order of their error, until linear scores can predict
    one without ties. There are C^N labelings, so use at most a dozen inputs, or data that are nearly separable.

    Args:
        features, labels, intercept, num_classes: as in `minimizability_gap`.
        max_labelings: number of labelings to try.

    Raises:
        ValueError: if features or labels are invalid.
        NotSolvedError: if none of the first `max_labelings` labelings is linear.

    Example:
        >>> from linearcore.analysis import zero_one_gap
        >>> zero_one_gap([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]).gap
        0.25

    Cost: one linear program with N·(C − 1) constraints per labeling.
    """
    sample = as_sample(features, labels, intercept=intercept, num_classes=num_classes)
    # All linear scores tie at a zero input. This error is in both terms, so it is not in the gap.
    zero_error = float(sample.masses[sample.is_zero].sum())
    design, masses = sample.design[~sample.is_zero].numpy(), sample.masses[~sample.is_zero].numpy()
    order = np.argsort(-masses, axis=1, kind="stable")
    extra = masses.max(1, keepdims=True) - np.take_along_axis(masses, order, 1)
    pointwise = float(masses.sum() - masses.max(1).sum()) + zero_error
    # Entries: error above the pointwise best, rank in `order` of the class of each input, index of the last change.
    queue: list[tuple[float, tuple[int, ...], int]] = [(0.0, (0,) * len(masses), 0)]
    for _ in range(max_labelings):
        if not queue:
            break
        error, ranks, last = heapq.heappop(queue)
        if _is_linear(design, order[np.arange(len(order)), np.array(ranks, dtype=np.intp)], masses.shape[1]):
            return MinimizabilityGap(error, pointwise + error, pointwise, 0.0)
        for index in range(last, len(ranks)):
            if (rank := ranks[index] + 1) < masses.shape[1]:
                new_error = error + float(extra[index, rank] - extra[index, rank - 1])
                heapq.heappush(queue, (new_error, (*ranks[:index], rank, *ranks[index + 1 :]), index))
    raise NotSolvedError(
        f"none of the {max_labelings} best labelings of {len(masses)} inputs is linear; increase `max_labelings`"
    )


def _is_linear(design: npt.NDArray[np.float64], labeling: npt.NDArray[np.intp], num_classes: int) -> bool:
    """Whether linear scores can predict this labeling without ties: ⟨w_label − w_v, x⟩ ≥ 1 for all x and v ≠ label."""
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    eye = np.eye(num_classes)
    rows = [
        np.kron(eye[v] - eye[label], x)
        for x, label in zip(design, labeling, strict=True)
        for v in range(num_classes)
        if v != label
    ]
    size = num_classes * design.shape[1]
    if not rows:
        return True
    result = linprog(np.zeros(size), A_ub=np.array(rows), b_ub=-np.ones(len(rows)), bounds=(None, None), method="highs")
    if result.status not in (0, 2):
        raise NotSolvedError(f"a linear program was not solved: {result.message}")
    return bool(result.status == 0)
