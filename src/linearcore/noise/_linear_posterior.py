"""Class probabilities by softmax regression, for `boundary`."""

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
    """Estimates P(y | x) by softmax regression with cross-validation.

    Features are normalised, and the rows are split at random into folds. The probabilities of a fold come from a model that
    was fitted to the other folds, because a model is overconfident on its own training rows. Each fit minimises

        mean_i −log softmax(W x_i + b)_{y_i} + ½ penalty ‖W‖²

    which is strictly convex in W. So the results of two machines agree to about 1e-6, but not bit by bit. To get the same
    noisy labels (the same hash) on another machine, save the posterior with `torch.save`. For images, the probabilities of a
    neural network give more realistic noise.

    Args:
        features: (N, …) finite numbers; flattened to (N, D).
        labels: (N,) clean labels in 0..n−1.
        num_classes: n ≥ 2.
        seed: random seed of the split.
        folds: number of folds, at least 2.
        penalty: strength of the L2 penalty, positive.

    Returns:
        (N, n) float64 probabilities on the CPU.

    Raises:
        TypeError: if `labels` are not integers or `features` not numbers.
        ValueError: if an argument is out of range.

    Example:
        >>> position = torch.linspace(-2, 2, 400, dtype=torch.float64)[:, None]
        >>> eta = linear_posterior(position, (position[:, 0] > 0).long(), num_classes=2, seed=0)
        >>> eta[[0, 399]].argmax(1), bool((eta[200] > 0.4).all())
        (tensor([0, 1]), True)

    Cost: `folds` fits of at most 300 steps of O(N·D·n); all features are in memory as float64.
    """
    check_num_classes(num_classes)
    check_seed(seed)
    weight_penalty = positive("penalty", penalty, "0.001 is the default")
    clean = as_labels(labels, num_classes)
    prepared = Features.prepare(features, "normalised")
    check_one_per_row(clean, len(features), "features")
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= max(2, len(clean)):
        must = "be an integer from 2 to the number of rows"
        raise ValueError(complaint("folds", must, repr(folds), "2 is the default"))
    inputs, target = prepared.rows(slice(None)), clean.cpu()
    fold_of_row = uniform(seeded(seed, "folds of a posterior"), len(target)).argsort() % folds
    eta = torch.empty(len(target), num_classes, dtype=torch.float64)
    for fold in range(folds):
        is_held_out = fold_of_row == fold
        weight, bias = _fit(inputs[~is_held_out], target[~is_held_out], num_classes, weight_penalty)
        eta[is_held_out] = (inputs[is_held_out] @ weight + bias).softmax(1)
    return eta


def _fit(inputs: Tensor, target: Tensor, num_classes: int, penalty: float) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(inputs.shape[1], num_classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=300,
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def risk() -> float:
        optimizer.zero_grad()
        with torch.enable_grad():  # The caller may have disabled gradients.
            loss = F.cross_entropy(inputs @ weight + bias, target) + penalty / 2 * weight.square().sum()
        loss.backward()
        return float(loss.detach())

    optimizer.step(risk)
    return weight.detach(), bias.detach()
