"""scikit-learn's digits, split anew for every seed, with wrong labels where a learner may look."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.noise import symmetric

NUM_CLASSES = 10
_TEST, _VALIDATION = 450, 300


@dataclass(frozen=True, eq=False)
class Digits:
    """One split per seed, and on it one draw of wrong labels per rate. S seeds, R rates, 64 pixels in [0, 1].

    Attributes:
        train_inputs: (S, N, 64).
        train_labels: (S, R, N), wrong with the rate's probability.
        validation_inputs: (S, V, 64).
        validation_labels: (S, R, V), as wrong as the training labels: all a learner has in practice.
        test_inputs: (S, T, 64).
        test_labels: (S, T), clean.
        hashes: (S, R) names of the draws.
    """

    train_inputs: Tensor
    train_labels: Tensor
    validation_inputs: Tensor
    validation_labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    hashes: tuple[tuple[str, ...], ...]


def noisy_digits(seeds: Sequence[int], rates: Sequence[float]) -> Digits:
    """Splits the 1,797 digits into 1,047 to train on, 300 to choose on and 450 to test on, for each seed."""
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    inputs, clean = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(classes, dtype=torch.int64)
    orders = [torch.randperm(len(clean), generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    draws = [
        [symmetric(clean[order[_TEST:]], rate, num_classes=NUM_CLASSES, seed=seed) for rate in rates]
        for seed, order in zip(seeds, orders, strict=True)
    ]
    order = torch.stack(orders)
    noisy = torch.stack([torch.stack([draw.labels for draw in of_seed]) for of_seed in draws])
    return Digits(
        train_inputs=inputs[order[:, _TEST + _VALIDATION :]],
        train_labels=noisy[..., _VALIDATION:],
        validation_inputs=inputs[order[:, _TEST : _TEST + _VALIDATION]],
        validation_labels=noisy[..., :_VALIDATION],
        test_inputs=inputs[order[:, :_TEST]],
        test_labels=clean[order[:, :_TEST]],
        hashes=tuple(tuple(draw.hash for draw in of_seed) for of_seed in draws),
    )
