"""Test cases of the baseline losses, and their published formulas evaluated with 30 digits."""

from collections.abc import Callable

import mpmath
import torch
from torch import Tensor

from linearcore.losses.baselines import BASELINES, early_learning_loss

mpmath.mp.dps = 30
Numbers = list[mpmath.mpf]
LOG_ZERO = mpmath.log(mpmath.mpf("1e-4"))


def reverse(p: Numbers, y: int, log_zero: mpmath.mpf) -> mpmath.mpf:
    """Returns −Σ_v p_v log q_v with log 1 = 0 and log 0 = A, as in Wang et al."""
    return -sum(p_v * (0 if v == y else mpmath.mpf(log_zero)) for v, p_v in enumerate(p))


def normalized(p: Numbers, y: int) -> mpmath.mpf:
    return -mpmath.log(p[y]) / sum(-mpmath.log(p_v) for p_v in p)


def generalized(p: Numbers, y: int, q: float, truncation: float) -> mpmath.mpf:
    if q == 0:
        return -mpmath.log(max(p[y], mpmath.mpf(truncation)))
    q_ = mpmath.mpf(q)
    return (1 - (p[y] if p[y] > truncation else mpmath.mpf(truncation)) ** q_) / q_


def others(s: Numbers, y: int) -> Numbers:
    return [s_v for v, s_v in enumerate(s) if v != y]


def unhinged(s: Numbers, y: int, normalize: bool) -> mpmath.mpf:
    terms = [1 - (s[y] - s_v) for s_v in others(s, y)]
    return sum(terms) / len(terms) if normalize else sum(terms)


def weston_watkins(s: Numbers, y: int, normalize: bool) -> mpmath.mpf:
    terms = [max(0, 1 - s[y] + s_v) for s_v in others(s, y)]
    return sum(terms) / len(terms) if normalize else sum(terms)


#: Formulas ℓ(s, p, y, **options) from the papers, by name.
FORMULAS: dict[str, Callable[..., mpmath.mpf]] = {
    "cross_entropy": lambda s, p, y: -mpmath.log(p[y]),
    "mean_absolute_error": lambda s, p, y: sum(abs((v == y) - p_v) for v, p_v in enumerate(p)),
    "generalized_cross_entropy": lambda s, p, y, q=0.7, truncation=0.0: generalized(p, y, q, truncation),
    "asymmetric_generalized_cross_entropy": lambda s, p, y, a=0.6, q=0.6: (
        ((mpmath.mpf(a) + 1) ** mpmath.mpf(q) - (mpmath.mpf(a) + p[y]) ** mpmath.mpf(q)) / mpmath.mpf(q)
    ),
    "reverse_cross_entropy": lambda s, p, y, log_zero=LOG_ZERO: reverse(p, y, log_zero),
    "symmetric_cross_entropy": lambda s, p, y, alpha=0.1, beta=1.0, log_zero=LOG_ZERO: (
        -mpmath.mpf(alpha) * mpmath.log(p[y]) + mpmath.mpf(beta) * reverse(p, y, log_zero)
    ),
    "normalized_cross_entropy": lambda s, p, y: normalized(p, y),
    "active_passive_cross_entropy": lambda s, p, y, alpha=1.0, beta=1.0, log_zero=LOG_ZERO: (
        mpmath.mpf(alpha) * normalized(p, y) + mpmath.mpf(beta) * reverse(p, y, log_zero)
    ),
    "unhinged": lambda s, p, y, normalize=True: unhinged(s, y, normalize),
    "weston_watkins": lambda s, p, y, normalize=False: weston_watkins(s, y, normalize),
    "crammer_singer": lambda s, p, y: max(0, 1 - s[y] + max(others(s, y))),
}

#: Every baseline with its default options, and with other options.
CASES: dict[str, tuple[str, dict[str, object]]] = {name: (name, {}) for name in BASELINES} | {
    "gce q=0": ("generalized_cross_entropy", {"q": 0.0}),
    "gce q=0.2": ("generalized_cross_entropy", {"q": 0.2}),
    "gce q=1": ("generalized_cross_entropy", {"q": 1.0}),
    "gce truncated": ("generalized_cross_entropy", {"q": 0.5, "truncation": 0.3}),
    "agce a=0": ("asymmetric_generalized_cross_entropy", {"a": 0.0, "q": 0.7}),
    "agce a=1e-5": ("asymmetric_generalized_cross_entropy", {"a": 1e-5, "q": 0.5}),
    "agce a=6 q=1.5": ("asymmetric_generalized_cross_entropy", {"a": 6.0, "q": 1.5}),
    "rce A=-4": ("reverse_cross_entropy", {"log_zero": -4.0}),
    "sce": ("symmetric_cross_entropy", {"alpha": 6.0, "beta": 0.1, "log_zero": -6.0}),
    "sce alpha=0": ("symmetric_cross_entropy", {"alpha": 0.0, "beta": 2.0}),
    "nce+rce": ("active_passive_cross_entropy", {"alpha": 10.0, "beta": 0.1, "log_zero": -4.0}),
    "nce+rce beta=0": ("active_passive_cross_entropy", {"alpha": 2.0, "beta": 0.0}),
    "unhinged sum": ("unhinged", {"normalize": False}),
    "weston_watkins mean": ("weston_watkins", {"normalize": True}),
}


def published(name: str, scores: Tensor, y: int, **options: object) -> float:
    """Returns ℓ(s, y) of one row by the published formula; classes with score −inf are masked out."""
    available = [v for v, score in enumerate(scores.tolist()) if score != -torch.inf]
    s = [mpmath.mpf(scores[v].item()) for v in available]
    largest = max(s)
    weights = [mpmath.exp(s_v - largest) for s_v in s]
    p = [weight / sum(weights) for weight in weights]
    return float(FORMULAS[name](s, p, available.index(y), **options))


def early_learning(scores: Tensor, target: Tensor, **options: object) -> Tensor:
    """Calls `early_learning_loss` with the signature of the other baselines and a fixed history of 0.9 for class 0."""
    classes = min(1, scores.dim() - 1)
    history = torch.zeros_like(scores, dtype=torch.float32 if scores.dtype != torch.float64 else torch.float64)
    history.select(classes, 0).fill_(0.9)
    return early_learning_loss(scores, target, history, **options)[0]
