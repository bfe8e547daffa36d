"""Boundary noise: labels are wrong more often near the decision boundary."""

import torch
from torch import Tensor

from linearcore._arrays import Labels, Numbers, check_one_per_row
from linearcore._checks import complaint, holds, one_of
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels


def boundary(labels: Labels, rate: float, *, posterior: Numbers, num_classes: int, seed: int, kind: int = 1) -> NoisyLabels:
    """Flips labels with a probability that decreases with the margin between the two most likely classes.

    This is polynomial-margin diminishing noise (Zhang et al. 2021), a model of human errors on ambiguous inputs. The noise
    rate of `instance_dependent` does not depend on the input. For an input with posterior η let u and s be the most likely
    and the second most likely class, and m = η_u − η_s. The label is wrong with probability min(1, c·f(m)),

        f(m) = ½ − ½ m²                  (kind 1)
        f(m) = 1 − m³                    (kind 2)
        f(m) = 1 − ⅓ (m³ + m² + m)       (kind 3)

    and becomes s if it was u, and u otherwise. One factor c for all inputs makes the mean probability equal to `rate`, the
    expected fraction of wrong labels. If `rate` is far above the mean of f, labels with c·f ≥ 1 are always wrong. With the
    same seed, labels that are wrong at one rate are wrong at every higher rate. The paper's code ignores the clean label.

    Args:
        labels: (N,) clean labels in 0..n−1.
        rate: expected fraction of wrong labels, in [0, 1]; at most the fraction of inputs with a margin below 1.
        posterior: (N, n) class probabilities from any classifier; `linear_posterior` computes them from features.
        num_classes: n ≥ 2.
        seed: random seed, a non-negative integer.
        kind: 1, 2 or 3, the paper's Types I, II and III.

    Returns:
        The noisy labels; `law` contains `kind` and `factor` (c, rounded to six digits).

    Raises:
        TypeError: if `labels` are not integers.
        ValueError: if an argument is out of range or the rate cannot be reached.

    Example:
        >>> margin = torch.linspace(0, 1, 1000, dtype=torch.float64)
        >>> posterior = torch.stack([(1 + margin) / 2, (1 - margin) / 2], dim=1)
        >>> noisy = boundary([0] * 1000, 0.2, posterior=posterior, num_classes=2, seed=0)
        >>> noisy.labels.reshape(4, 250).sum(1)  # from the smallest margins to the largest
        tensor([67, 71, 31, 16])

    Cost: O(N·n) time and memory, on the CPU, plus a sort of N numbers.

    Reference: Zhang et al., Learning with feature-dependent label noise: a progressive approach (ICLR 2021), and its code.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    one_of("kind", kind, (1, 2, 3), "the paper's Type I is 1")
    eta = _probabilities(posterior, num_classes)
    check_one_per_row(draw.labels, len(eta), "posterior")
    first, best = eta.max(1)
    second, next_best = eta.scatter(1, best[:, None], -1.0).max(1)
    polynomial = _polynomial(first - second, kind)
    factor = _factor(polynomial, float(rate))
    wrong_label = torch.where(draw.clean == best, next_best, best)
    noisy = torch.where(draw.chance < factor * polynomial, wrong_label, draw.clean)
    law = {"generator": "boundary", "kind": kind, "factor": float(f"{factor:.6g}")}
    return draw.finish(noisy, rate=rate, law=law)


def _polynomial(margin: Tensor, kind: int) -> Tensor:
    if kind == 1:
        return 0.5 - 0.5 * margin**2
    return 1 - margin**3 if kind == 2 else 1 - (margin**3 + margin**2 + margin) / 3


def _factor(polynomial: Tensor, rate: float) -> float:
    """Returns the c with mean(min(1, c·f)) = rate, for the values f in `polynomial`.

    With f in descending order and the first k entries clipped to 1, c = (rate·N − k) / Σ_{i>k} f_i. The right k is the first
    for which the next entry is at most 1. This is exact, unlike bisection.
    """
    positive = polynomial[polynomial > 0].sort(descending=True).values
    highest_rate = len(positive) / max(1, len(polynomial))
    if rate > highest_rate:
        must = f"be at most {highest_rate:.6g}, the fraction of margins below 1"
        advice = "lower it, or use a softer posterior: a class with probability 1 is never flipped"
        raise ValueError(complaint("rate", must, rate, advice))
    if not len(positive):
        return 0.0
    tail_sums = positive.flip(0).cumsum(0).flip(0)
    factors = (rate * len(polynomial) - torch.arange(len(positive), dtype=torch.float64)) / tail_sums
    is_valid = factors * positive <= 1 + 1e-12
    return max(0.0, float(factors[is_valid.double().argmax()]))


def _probabilities(posterior: Numbers, num_classes: int) -> Tensor:
    eta = torch.as_tensor(posterior, dtype=torch.float64).detach().cpu()
    if eta.dim() != 2 or eta.shape[1] != num_classes:
        must = f"have shape (N, {num_classes})"
        raise ValueError(complaint("posterior", must, tuple(eta.shape), "pass one row per input, one column per class"))
    holds("posterior", (eta >= 0) & eta.isfinite(), "be probabilities", "apply a softmax to scores first")
    is_normalized = (eta.sum(1) - 1).abs() <= 1e-3
    holds("posterior", is_normalized, "have rows that sum to 1", "apply a softmax to scores first")
    # In half precision the rows sum to 1 only approximately, and a margin must not exceed 1.
    return eta / eta.sum(1, keepdim=True)
