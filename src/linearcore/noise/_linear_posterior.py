"""Class probabilities by softmax regression, for `boundary` where no classifier is at hand."""

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore._arrays import Features, Labels, Numbers, as_labels, check_num_classes, check_one_per_row
from linearcore._checks import complaint, positive
from linearcore._streams import check_seed
from linearcore.noise._stream import seeded, uniform


def linear_posterior(
    features: Numbers, labels: Labels, *, num_classes: int, seed: int, folds: int = 2, penalty: float = 1e-3
) -> Tensor:
    """Estimates P(y | x) by softmax regression on the other folds of the data.

    Features are normalised, the rows split at random into `folds` parts, and each part gets the probabilities of a model
    that was fitted to all the others: a model's own rows would look clearer than they are, with many features entirely so.
    Each fit minimises

        mean_i −log softmax(W x_i + b)_{y_i} + ½ penalty ‖W‖²

    which is strictly convex in W, so that machines agree on the result to about 1e-6, but not to the last bit as draws
    do: keep the posterior, with `torch.save`, where labels have to be named by their hash elsewhere. A network's
    probabilities make for more lifelike noise on images.

    Args:
        features: (N, …) finite numbers; flattened to (N, D).
        labels: (N,) clean labels in 0..n−1.
        num_classes: n ≥ 2.
        seed: names the split into parts.
        folds: number of parts, at least 2.
        penalty: strength of the ridge, positive.

    Returns:
        (N, n) float64 probabilities on the CPU.

    Raises:
        TypeError: if `labels` are no integers or `features` no numbers.
        ValueError: if an argument is out of its range.

    Example:
        >>> position = torch.linspace(-2, 2, 400, dtype=torch.float64)[:, None]
        >>> eta = linear_posterior(position, (position[:, 0] > 0).long(), num_classes=2, seed=0)
        >>> eta[[0, 399]].argmax(1), bool((eta[200] > 0.4).all())
        (tensor([0, 1]), True)

    Cost: all features in memory as float64, and `folds` fits of up to 300 steps of O(N·D·n).
    """
    check_num_classes(num_classes)
    check_seed(seed)
    ridge = positive("penalty", penalty, "0.001 is the default")
    clean = as_labels(labels, num_classes)
    prepared = Features.prepare(features, "normalised")
    check_one_per_row(clean, len(features), "features")
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= max(2, len(clean)):
        must = "be an integer from 2 to the number of rows"
        raise ValueError(complaint("folds", must, repr(folds), "2 is the default"))
    inputs, target = prepared.rows(slice(None)), clean.cpu()
    part = uniform(seeded(seed, "folds of a posterior"), len(target)).argsort() % folds
    eta = torch.empty(len(target), num_classes, dtype=torch.float64)
    for fold in range(folds):
        left_out = part == fold
        weight, bias = _fit(inputs[~left_out], target[~left_out], num_classes, ridge)
        eta[left_out] = (inputs[left_out] @ weight + bias).softmax(1)
    return eta


def _fit(inputs: Tensor, target: Tensor, num_classes: int, ridge: float) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(inputs.shape[1], num_classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    steps = torch.optim.LBFGS(
        [weight, bias],
        max_iter=300,
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def risk() -> float:
        steps.zero_grad()
        with torch.enable_grad():  # the caller may have switched gradients off
            loss = F.cross_entropy(inputs @ weight + bias, target) + ridge / 2 * weight.square().sum()
        loss.backward()
        return float(loss.detach())

    steps.step(risk)
    return weight.detach(), bias.detach()
