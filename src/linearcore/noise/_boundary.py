"""Boundary noise: labels are wrong where two classes are nearly as likely as each other."""

import torch
from torch import Tensor

from linearcore._arrays import Labels, Numbers, check_one_per_row
from linearcore._checks import complaint, holds, one_of
from linearcore.noise._label_draw import LabelDraw
from linearcore.noise._noisy_labels import NoisyLabels


def boundary(labels: Labels, rate: float, *, posterior: Numbers, num_classes: int, seed: int, kind: int = 1) -> NoisyLabels:
    """Makes labels wrong the more often the smaller the margin between the two likeliest classes is.

    Polynomial-margin diminishing noise (Zhang et al. 2021): the model of mistakes that people make on ambiguous inputs,
    where `instance_dependent` errs on clear and ambiguous ones alike. For an input with posterior η let u and s be the
    likeliest and the second likeliest class and m = η_u − η_s. The label goes wrong with probability min(1, c·f(m)),

        f(m) = ½ − ½ m²                  (kind 1)
        f(m) = 1 − m³                    (kind 2)
        f(m) = 1 − ⅓ (m³ + m² + m)       (kind 3)

    and becomes s where it was u, and u where it was another. One factor c for all makes the mean probability equal to
    `rate`, the expected share of labels that differ from the clean ones. The paper's released code has the same f, u and s,
    but gives every input u or s whatever its clean label was, and divides the probability of u by a number to be tried out.

    A rate far above the mean of f makes c large and cuts f off at 1: where c·f ≥ 1 every label is wrong, and the law is no
    longer the polynomial. `law["factor"]` has c, rounded to six digits. Draws are nested in the rate, as with `symmetric`.

    Args:
        labels: (N,) clean labels in 0..n−1.
        rate: expected share of wrong labels, in [0, 1]; not above the share of inputs whose margin is below 1.
        posterior: (N, n) class probabilities from any classifier; `linear_posterior` makes some of features alone.
        num_classes: n ≥ 2.
        seed: a non-negative integer that names the draw.
        kind: 1, 2 or 3, the paper's Types I, II and III.

    Returns:
        The noisy labels; `law` has `kind` and `factor`.

    Raises:
        TypeError: if `labels` are no integers.
        ValueError: if an argument is out of its range or the rate cannot be reached.

    Example:
        >>> margin = torch.linspace(0, 1, 1000, dtype=torch.float64)
        >>> posterior = torch.stack([(1 + margin) / 2, (1 - margin) / 2], dim=1)
        >>> noisy = boundary([0] * 1000, 0.2, posterior=posterior, num_classes=2, seed=0)
        >>> noisy.labels.reshape(4, 250).sum(1)  # from the smallest margins to the largest
        tensor([67, 71, 31, 16])

    Cost: O(N·n) time and memory, on the CPU, and sorting N numbers.

    Zhang et al., Learning with feature-dependent label noise: a progressive approach (ICLR 2021), and its code.
    """
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    one_of("kind", kind, (1, 2, 3), "the paper's Type I is 1")
    eta = _probabilities(posterior, num_classes)
    check_one_per_row(draw.labels, len(eta), "posterior")
    first, best = eta.max(1)
    second, next_best = eta.scatter(1, best[:, None], -1.0).max(1)
    chances = _polynomial(first - second, kind)
    factor = _factor(chances, float(rate))
    goal = torch.where(draw.clean == best, next_best, best)
    noisy = torch.where(draw.chance < factor * chances, goal, draw.clean)
    law = {"generator": "boundary", "kind": kind, "factor": float(f"{factor:.6g}")}
    return draw.finish(noisy, rate=rate, law=law)


def _polynomial(margin: Tensor, kind: int) -> Tensor:
    if kind == 1:
        return 0.5 - 0.5 * margin**2
    return 1 - margin**3 if kind == 2 else 1 - (margin**3 + margin**2 + margin) / 3


def _factor(chances: Tensor, rate: float) -> float:
    """The c with mean(min(1, c·f)) = rate.

    With f in falling order and the first k entries cut off to 1, c = (rate·N − k) / Σ_{i>k} f_i, and the right k is the
    first for which the next entry is not above 1: exact, where a bisection would stop somewhere.
    """
    positive = chances[chances > 0].sort(descending=True).values
    reach = len(positive) / max(1, len(chances))
    if rate > reach:
        advice = "lower it, or soften the posterior: where one class is certain, no label is ever wrong"
        raise ValueError(complaint("rate", f"be at most {reach:.6g}, the share of margins below 1", rate, advice))
    if not len(positive):
        return 0.0
    rest = positive.flip(0).cumsum(0).flip(0)
    factors = (rate * len(chances) - torch.arange(len(positive), dtype=torch.float64)) / rest
    fits = factors * positive <= 1 + 1e-12
    return max(0.0, float(factors[fits.double().argmax()]))


def _probabilities(posterior: Numbers, num_classes: int) -> Tensor:
    eta = torch.as_tensor(posterior, dtype=torch.float64).detach().cpu()
    if eta.dim() != 2 or eta.shape[1] != num_classes:
        must = f"have shape (N, {num_classes})"
        raise ValueError(complaint("posterior", must, tuple(eta.shape), "one row an input, one column a class"))
    holds("posterior", (eta >= 0) & eta.isfinite(), "be probabilities", "apply a softmax to scores first")
    unit = (eta.sum(1) - 1).abs() <= 1e-3
    holds("posterior", unit, "have rows that sum to 1", "apply a softmax to scores first")
    # Rows in half precision sum to 1 only nearly, and a margin must not exceed 1.
    return eta / eta.sum(1, keepdim=True)
