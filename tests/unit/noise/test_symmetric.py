"""Symmetric label noise: its law, its draws and its messages."""

import math

import numpy as np
import pytest
import torch

from linearcore.noise import NoisyLabels, symmetric

CLEAN = torch.arange(10).repeat(2000)


def draw(rate: float, seed: int = 0) -> NoisyLabels:
    return symmetric(CLEAN, rate, num_classes=10, seed=seed)


def test_rate_zero_changes_nothing_and_rate_one_everything():
    assert torch.equal(draw(0.0).labels, CLEAN)
    assert (draw(1.0).labels != CLEAN).all()
    assert draw(0).realised_rate == 0 and draw(1).realised_rate == 1


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.4, 0.9])
def test_share_of_wrong_labels_is_binomial_around_the_rate(rate):
    spread = math.sqrt(rate * (1 - rate) / CLEAN.numel())
    assert abs(draw(rate).realised_rate - rate) < 4 * spread


def test_wrong_labels_are_uniform_over_the_others():
    counts = draw(0.9).transitions.double()
    off_diagonal = counts[~torch.eye(10, dtype=torch.bool)]
    expected = CLEAN.numel() * 0.9 / 90
    chi_squared = float(((off_diagonal - expected) ** 2 / expected).sum())
    # About 89 degrees of freedom: mean 89, standard deviation 13.
    assert 45 < chi_squared < 145


def test_two_classes_are_swapped():
    noisy = symmetric([0, 0, 1, 1], 1.0, num_classes=2, seed=3)
    assert noisy.labels.tolist() == [1, 1, 0, 0]


def test_transitions_count_true_rows_and_given_columns():
    noisy = draw(0.3)
    counts = torch.zeros(10, 10, dtype=torch.int64)
    for true, given in zip(CLEAN.tolist(), noisy.labels.tolist(), strict=True):
        counts[true, given] += 1
    assert torch.equal(noisy.transitions, counts)
    assert noisy.transitions.sum(1).tolist() == [2000] * 10


def test_draw_is_the_same_on_every_machine():
    # Written down once; a machine or a torch release that draws otherwise must not go unnoticed.
    assert draw(0.4, seed=7).hash == "e4b7d55e58cf868b65aa43c82360c3270b5f6c107548e074a096bb88fd2ed8a6"


def test_hash_names_the_draw():
    assert draw(0.2, seed=1).hash == draw(0.2, seed=1).hash
    assert len({draw(0.2, seed=1).hash, draw(0.2, seed=2).hash, draw(0.4, seed=1).hash}) == 3


def test_higher_rates_contain_the_mistakes_of_lower_ones():
    low, high = draw(0.2).labels, draw(0.4).labels
    wrong = low != CLEAN
    assert torch.equal(high[wrong], low[wrong])


def test_global_random_stream_is_left_alone():
    before = torch.get_rng_state()
    draw(0.5)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("convert", [list, np.array, lambda x: torch.tensor(x, dtype=torch.uint8)])
def test_kind_of_labels_does_not_matter(convert):
    clean = [0, 1, 2, 2, 1, 0] * 10
    expected = symmetric(torch.tensor(clean), 0.5, num_classes=3, seed=0)
    got = symmetric(convert(clean), 0.5, num_classes=3, seed=0)
    assert got.hash == expected.hash and got.labels.dtype == torch.int64


def test_shape_is_kept_and_input_is_not_changed():
    clean = CLEAN.clone().reshape(100, 20, 10)
    noisy = symmetric(clean, 0.4, num_classes=10, seed=0)
    assert noisy.labels.shape == clean.shape
    assert torch.equal(clean.flatten(), CLEAN)


def test_no_labels_are_no_error():
    noisy = symmetric([], 0.4, num_classes=3, seed=0)
    assert noisy.labels.shape == (0,) and noisy.transitions.sum() == 0 and noisy.realised_rate == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rate": 1.5}, ValueError, r"`rate` must be a probability, got 1\.5; pass a number in \[0, 1\]"),
        ({"rate": -0.1}, ValueError, "`rate` must be a probability"),
        ({"rate": float("nan")}, ValueError, "`rate` must be a probability, got nan"),
        ({"rate": True}, ValueError, "`rate` must be a probability, got True"),
        ({"num_classes": 1}, ValueError, "`num_classes` must be an integer of at least 2, got 1"),
        ({"num_classes": 3.0}, ValueError, r"`num_classes` must be an integer of at least 2, got 3\.0"),
        ({"seed": -1}, ValueError, "`seed` must be a non-negative integer below"),
        ({"seed": 0.5}, ValueError, "`seed` must be a non-negative integer below"),
        ({"labels": [0.5]}, TypeError, "`labels` must be integers, got torch.float32"),
        ({"labels": [True]}, TypeError, "`labels` must be integers, got torch.bool"),
        ({"labels": [0, 3]}, ValueError, r"`labels` must lie in 0\.\.2, got labels\[1\] = 3 \(1 of 2 entries"),
        ({"labels": [0, -100]}, ValueError, "`labels` must lie in .*ignored labels"),
    ],
)
def test_messages(options, error, message):
    arguments = {"labels": [0, 1, 2], "rate": 0.2, "num_classes": 3, "seed": 0} | options
    with pytest.raises(error, match=message):
        symmetric(arguments.pop("labels"), arguments.pop("rate"), **arguments)
