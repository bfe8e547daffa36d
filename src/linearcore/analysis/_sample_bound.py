"""The bound for linear scores with bounded margins, with its terms estimated on a sample."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import between, complaint, positive
from linearcore.analysis._bounded import BoundedScores
from linearcore.analysis._certify import certify
from linearcore.analysis._problem import Problem, as_probabilities
from linearcore.analysis._sample import checked_rows, group_rows
from linearcore.analysis._sample_report import Interval, SampleBound
from linearcore.analysis._transform import transform
from linearcore.forms import Form
from linearcore.surrogates import Surrogate

#: One-sided limits that must hold together: two of the best surrogate risk and two of its pointwise part, one of the best
#: 0-1 risk and two of its pointwise part.
_NUM_LIMITS = 7


def sample_bound(
    surrogate: Surrogate,
    form: str | Form,
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    bound: float,
    probabilities: npt.ArrayLike | None = None,
    num_classes: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> SampleBound:
    """Estimates every term of the H-consistency bound for linear scores with bounded margins.

        T(R₀₁(h) − R₀₁*(H) + M₀₁(H)) ≤ R_φ(h) − R_φ*(H) + M_φ(H)      for every h in H

    H contains the linear scores x ↦ Wx + b whose margins are at most `bound` on the box that the features span. Limits hold
    for the distribution from which the rows were drawn independently, all together with probability `confidence`; the box
    counts as known. docs/proofs.md has the derivation.

    Args:
        surrogate: φ.
        form: any form for two classes; a form with a proven bound, such as "centered", for more.
        features: (n, d).
        labels: (n,): class indices, or −1 and +1.
        bound: Λ; two classes have |h(x)| ≤ Λ.
        probabilities: (n, C), or (n,) for class 1 of two, from a model that was not fitted to these labels. They tighten the
            limits whether or not they are calibrated; the estimates of the gaps assume that they are. Without them only rows
            with equal features say anything about label probabilities, and the estimates of the gaps are upper estimates.
        num_classes: C; default: the largest label + 1.
        confidence: probability of all limits together.
        seed: random seed of the split into two halves, of which one fits and the other evaluates.

    Raises:
        ValueError: if an argument is invalid, or no bound is proven for the form.
        NotSolvedError: if a minimum is not certified.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import sample_bound
        >>> estimates = sample_bound(LinearCore(), "pairwise", [[0.0], [1.0]] * 50, [0, 1] * 50, bound=2.0)
        >>> round(estimates.best_surrogate.estimate, 3), round(estimates.surrogate_gap.estimate, 3)
        (0.627, 0.0)

    Cost: Newton steps with about 3·C·d unknowns; seconds for thousands of rows and tens of features.
    """
    rows, classes, size = checked_rows(features, labels, num_classes)
    positive("bound", bound, "pass the largest margin, for example 2.0")
    between("confidence", confidence, 0.5, 1 - 1e-9, "for example 0.95")
    if len(rows) < 4:
        raise ValueError(complaint("features", "have at least 4 rows", len(rows), "pass a larger sample"))
    scores = BoundedScores(surrogate, Problem(form, size), bound)
    forward = _Transformation(scores)
    model = None if probabilities is None else _as_rows(probabilities, len(rows), size)
    limit = math.sqrt(math.log(_NUM_LIMITS / (1 - confidence)) / 2)
    sample = _Sample(scores, _scaled(rows), torch.tensor(classes), model, limit)
    surrogate_terms, zero_one_terms, observed = sample.intervals(seed)
    return SampleBound(
        surrogate=surrogate,
        problem=scores.problem,
        bound=bound,
        confidence=confidence,
        num_rows=len(rows),
        num_inputs=sample.num_inputs,
        best_surrogate=surrogate_terms[0],
        surrogate_gap=surrogate_terms[1],
        best_zero_one=zero_one_terms[0],
        zero_one_gap=zero_one_terms[1],
        observed=(forward(observed[0]), observed[1]),
        observed_regret=observed[0],
        guarantee=max(forward.inverse(surrogate_terms[1].high) - zero_one_terms[1].low, 0.0),
        transformation=tuple((t, forward(t)) for t in (0.01, 0.1, 0.5)),
    )


class _Transformation:
    """T of the bounded scores: exact for two classes, the proven line for more."""

    def __init__(self, scores: BoundedScores) -> None:
        self.scores, self.constant = scores, None
        if not scores.problem.is_binary:
            finding = certify(scores.surrogate, scores.problem.form, scores.problem.space.size, bound=scores.bound)
            self.constant = finding.linear_bound.constant
            if self.constant is None:
                must, got = "have a proven bound for bounded scores", f"{scores.problem.form_name!r} with {scores.surrogate}"
                advice = "use 'centered' with a one-sided linear core"
                raise ValueError(complaint("form", must, got, advice))

    def __call__(self, t: float) -> float:
        t = min(max(t, 0.0), 1.0)
        if self.constant is not None:
            return t / self.constant
        return float(transform(self.scores.surrogate, t, bound=self.scores.bound))

    def inverse(self, regret: float) -> float:
        """Returns the largest t in [0, 1] with T(t) ≤ regret."""
        low, high = 0.0, 1.0
        if self(1.0) <= regret:
            return 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self(middle) <= regret else (low, middle)
        return high


@dataclass(frozen=True)
class _Sample:
    """Scaled features (n, d), labels (n,), probabilities (n, C) or None, and √(log(1/δ)/2) of Hoeffding's inequality."""

    scores: BoundedScores
    features: npt.NDArray[np.float64]
    labels: Tensor
    probabilities: Tensor | None
    limit: float

    @property
    def num_inputs(self) -> int:
        return len(np.unique(self.features, axis=0))

    def intervals(self, seed: int) -> tuple[tuple[Interval, Interval], tuple[Interval, Interval], tuple[float, float]]:
        """Returns (best, gap) for the surrogate and for the 0-1 loss, and both sides of the bound on the sample itself."""
        least, largest = self.scores.loss_range()
        count = len(self.labels)
        # Half-widths for means of 0-1 losses over all rows and over one half.
        width, half_width = self.limit / math.sqrt(count), self.limit / math.sqrt(count // 2)
        best, error, fitted = self._fit(torch.arange(count))
        held_out, held_out_errors = self._held_out(seed)
        best_risk = Interval(
            best,
            max(best - error - width * (largest - least), least),
            max(best, held_out + half_width * (largest - least)),
        )
        own, own_errors = self._pointwise()
        pointwise = Interval(own, max(own - width * (largest - least), least), best_risk.high)
        best_errors = Interval(held_out_errors, max(own_errors - width, 0.0), min(held_out_errors + half_width, 1.0))
        bayes = Interval(own_errors, best_errors.low, best_errors.high)
        if self.probabilities is not None:
            claimed, risk, claimed_errors, errors = self._model(self.probabilities)
            pointwise = Interval(claimed, pointwise.low, min(risk + width * (largest - least), pointwise.high))
            bayes = Interval(claimed_errors, bayes.low, min(errors + width, bayes.high))
        observed = self._errors(self.features, fitted, self.labels) - own_errors, best - own
        return (best_risk, best_risk.minus(pointwise)), (best_errors, best_errors.minus(bayes)), observed

    def _pointwise(self) -> tuple[float, float]:
        """Returns the least risk and error on the sample if each distinct input has its own scores."""
        labels = self.labels.numpy().astype(np.intp)
        masses = torch.tensor(group_rows(self.features, labels, self.scores.problem.space.size)[1])
        mass = masses.sum(1)
        risk = mass @ self.scores.pointwise(masses / mass.unsqueeze(-1))[0]
        return float(risk), float(1 - masses.max(1).values.sum())

    def _fit(self, chosen: Tensor) -> tuple[float, float, Tensor]:
        rows, classes = self.features[chosen.numpy()], self.labels[chosen].numpy().astype(np.intp)
        inputs, masses = group_rows(rows, classes, self.scores.problem.space.size)
        return self.scores.linear(_with_ones(inputs), torch.tensor(masses))

    def _held_out(self, seed: int) -> tuple[float, float]:
        """Returns risk and error on one half of scores that were fitted to the other half."""
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed))
        first, second = order[len(order) // 2 :], order[: len(order) // 2]
        coefficients = self._fit(first)[2]
        rows, labels = self.features[second.numpy()], self.labels[second]
        risk = self.scores.losses(_with_ones(rows) @ coefficients, labels).mean()
        return float(risk), self._errors(rows, coefficients, labels)

    def _errors(self, rows: npt.NDArray[np.float64], coefficients: Tensor, labels: Tensor) -> float:
        return float(((_with_ones(rows) @ coefficients).argmax(1) != labels).double().mean())

    def _model(self, probabilities: Tensor) -> tuple[float, float, float, float]:
        """Returns risk and error of the model's probabilities: if they are right, and on the labels, for both losses."""
        claimed, best_scores = self.scores.pointwise(probabilities)
        risk = self.scores.losses(best_scores, self.labels).mean()
        errors = (probabilities.argmax(1) != self.labels).double().mean()
        return float(claimed.mean()), float(risk), float(1 - probabilities.max(1).values.mean()), float(errors)


def _scaled(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Maps the box of the features to [−1, 1]^d; constant features become 0."""
    low, high = rows.min(0), rows.max(0)
    half = (high - low) / 2
    scaled: npt.NDArray[np.float64] = (rows - (high + low) / 2) / np.where(half > 0, half, 1.0)
    return scaled


def _with_ones(rows: npt.NDArray[np.float64]) -> Tensor:
    return torch.tensor(np.hstack([np.ones((len(rows), 1)), rows]))


def _as_rows(probabilities: npt.ArrayLike, count: int, size: int) -> Tensor:
    numbers = np.asarray(probabilities, dtype=np.float64)
    if numbers.ndim == 1 and size == 2:
        numbers = np.stack([1 - numbers, numbers], 1)
    if numbers.shape != (count, size):
        must = f"have shape ({count}, {size})"
        raise ValueError(complaint("probabilities", must, numbers.shape, "pass one row for each row of `features`"))
    return as_probabilities(numbers, size)
