"""Pair flips: partners, and messages."""

import pytest
import torch

from linearcore.noise import CIFAR10_PAIRS, pair_flip

CLEAN = torch.arange(10).repeat(2000)


def test_next_class_is_the_partner_and_the_last_one_s_is_the_first():
    assert pair_flip([0, 1, 2], 1.0, num_classes=3, seed=0).labels.tolist() == [1, 2, 0]


def test_only_the_partner_is_ever_given():
    counts = pair_flip(CLEAN, 0.3, num_classes=10, seed=1).transitions
    allowed = torch.eye(10).long() + torch.eye(10).long().roll(1, 1)
    assert torch.equal(counts > 0, allowed > 0)


def test_cifar_10_has_its_pairs():
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    pairs = {names[source]: names[goal] for source, goal in CIFAR10_PAIRS.items()}
    assert pairs == {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}


def test_a_class_without_partner_keeps_its_labels():
    noisy = pair_flip(CLEAN, 0.4, num_classes=10, seed=0, to=CIFAR10_PAIRS)
    kept = noisy.transitions.diagonal() == 2000
    assert kept.nonzero().squeeze(1).tolist() == [0, 1, 6, 7, 8]
    assert abs(noisy.realised_rate - 0.2) < 0.01 and noisy.rate == 0.4
    assert noisy.law["to"] == [0, 1, 0, 5, 7, 3, 6, 7, 8, 1]


def test_any_shape_of_labels():
    noisy = pair_flip(CLEAN.reshape(100, 200), 0.4, num_classes=10, seed=0)
    assert noisy.labels.shape == (100, 200)
    assert noisy.hash == pair_flip(CLEAN, 0.4, num_classes=10, seed=0).hash


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ({0: 3}, r"`to` must map classes in 0\.\.2 to other classes, got 0: 3; write a dict"),
        ({-1: 0}, "`to` must map classes"),
        ({1: 1}, "to other classes, got 1: 1"),
        ({0: 1.0}, r"got 0: 1\.0"),
        ([1, 2, 0], "`to` must map classes to classes, got"),
    ],
)
def test_messages(to, message):
    with pytest.raises(ValueError, match=message):
        pair_flip([0, 1, 2], 0.2, num_classes=3, seed=0, to=to)


@pytest.mark.parametrize(("rate", "seed", "classes"), [(1.5, 0, 3), (0.5, -1, 3), (0.5, 0, 1)])
def test_options_are_checked(rate, seed, classes):
    with pytest.raises(ValueError, match="must be a"):
        pair_flip([0, 0], rate, num_classes=classes, seed=seed)
