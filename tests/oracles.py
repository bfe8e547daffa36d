"""Slow reference implementations: the definitions of `docs/notation.md`, and minimal conditional risks."""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from linearcore.forms import Centered, Form, Labels, LogOdds, Pairwise, SavedTensors
from linearcore.forms import row_losses as form_rows
from linearcore.kernels import resolve_backend
from linearcore.surrogates import Surrogate


def row_loss(surrogate: Surrogate, form: Form, scores: Tensor, label: int, delta: float | Tensor = 0.0) -> Tensor:
    """Returns ℓ(s, y) of one row by its definition: a loop over the competing classes that are not masked out."""
    available = [v for v in range(len(scores)) if scores[v] != -math.inf]
    competing = [v for v in available if v != label]
    if isinstance(form, LogOdds):
        return surrogate.value(scores[label] - torch.logsumexp(scores[competing], 0) - delta)
    assert isinstance(form, Pairwise | Centered)
    reference = scores[label] if isinstance(form, Pairwise) else sum(scores[v] for v in available) / len(available)
    total = sum(surrogate.value(reference - scores[v] - delta) for v in competing)
    return total / len(competing) if form.normalize else total


def row_losses(surrogate: Surrogate, form: Form, scores: Tensor, delta: Tensor | None = None) -> Tensor:
    """Returns ℓ(s, y) for every label y, (C,)."""
    margin = torch.zeros_like(scores) if delta is None else delta
    return torch.stack([row_loss(surrogate, form, scores, y, margin[y]) for y in range(len(scores))])


class Bound(NamedTuple):
    """A form with its surrogate, for tests over many of both. Pairs that the library rejects are computed as well."""

    form: Form
    surrogate: Surrogate

    def hard(self, scores: Tensor, labels: Labels) -> Tensor:
        return self.form.hard_losses(self.surrogate, scores, labels)

    def soft(self, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        return self.form.soft_losses(self.surrogate, scores, labels, chunk)

    def hard_forward(self, scores: Tensor, labels: Labels) -> tuple[Tensor, SavedTensors]:
        return self.form.hard_forward(self.surrogate, scores, labels, fused=None)

    def hard_gradient(self, scores: Tensor, labels: Labels, saved: SavedTensors, grad_output: Tensor) -> Tensor:
        return self.form.hard_gradient(self.surrogate, scores, labels, saved, grad_output, fused=None)

    def sampled(self, own: Tensor, others: Tensor, log_weight: Tensor, num_classes: int | Tensor) -> Tensor:
        return self.form.sampled_losses(self.surrogate, own, others, log_weight, num_classes)

    def rows(self, scores: Tensor, labels: Labels, backend: str = "auto") -> Tensor:
        others = (labels.probability, labels.weight, labels.margin)
        return form_rows(self.form, self.surrogate, scores, labels, resolve_backend(backend, (scores,), others))


def minimal_risk(bound: Bound, p: list[float], predicted: int | None = None) -> float:
    """Returns inf_s Σ_y p_y ℓ(s, y) over all scores, or over those for which `predicted` has the highest score.

    The losses are convex and depend only on score differences, so one score can be fixed at 0. If it is that of the
    predicted class, the others must satisfy s_v ≤ 0. In this box L-BFGS-B with exact gradients finds the minimum. If another
    class is the most likely one, its bound s_v = 0 is active, and the two scores are equal at the optimum.
    """
    anchor = len(p) - 1 if predicted is None else predicted
    free = [v for v in range(len(p)) if v != anchor]
    labels = Labels(probability=torch.tensor([p], dtype=torch.float64))

    def risk(x: np.ndarray) -> tuple[float, np.ndarray]:
        scores = torch.zeros(1, len(p), dtype=torch.float64)
        scores[0, free] = torch.from_numpy(x)
        scores.requires_grad_()
        value = bound.rows(scores, labels).sum()
        (gradient,) = torch.autograd.grad(value, scores)
        return float(value.detach()), gradient[0, free].numpy()

    bounds = [(None, None if predicted is None else 0.0)] * len(free)
    options = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 2000, "maxls": 50}
    return float(minimize(risk, np.zeros(len(free)), jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun)


def regret_ratio(bound: Bound, p: list[float], predicted: int) -> float:
    """Returns the surrogate regret of predicting a class divided by its 0-1 regret, max p − p_k."""
    return (minimal_risk(bound, p, predicted) - minimal_risk(bound, p)) / (max(p) - p[predicted])
