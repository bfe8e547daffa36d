"""scikit-learn's digits, split for each seed, with wrong training and validation labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.noise import symmetric

NUM_CLASSES = 10
_TEST, _VALIDATION = 450, 300


@dataclass(frozen=True, eq=False)
class Digits:
    """One split for each seed, with wrong labels for each rate. S seeds, R rates, 64 pixels in [0, 1].

    Attributes:
        train_inputs: (S, N, 64).
        train_labels: (S, R, N), wrong with the rate's probability.
        validation_inputs: (S, V, 64).
        validation_labels: (S, R, V), as wrong as the training labels, since clean ones are not available in practice.
        test_inputs: (S, T, 64).
        test_labels: (S, T), clean.
        hashes: (S, R) hashes of the wrong labels.
    """

    train_inputs: Tensor
    train_labels: Tensor
    validation_inputs: Tensor
    validation_labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    hashes: tuple[tuple[str, ...], ...]


def noisy_digits(seeds: Sequence[int], rates: Sequence[float]) -> Digits:
    """For each seed, splits the 1,797 digits into 1,047 for training, 300 for validation and 450 for testing."""
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
