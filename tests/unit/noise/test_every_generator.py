"""What all generators of wrong labels have in common."""

import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from linearcore.noise import (
    CIFAR10_PAIRS,
    LAWS,
    NoisyLabels,
    boundary,
    class_conditional,
    instance_dependent,
    pair_flip,
    symmetric,
)

COUNT, CLASSES = 50_000, 10
CLEAN = torch.arange(COUNT) % CLASSES


def exact_features(count: int = COUNT) -> Tensor:
    """(N, 12) multiples of 1/8 that no machine rounds: large for one class in four, so that they tell something."""
    rows, columns = torch.arange(count)[:, None], torch.arange(12)
    return ((rows * 37 + columns * rows % 11 + 8 * (rows % CLASSES == columns)) % 16).double() / 8


def exact_posterior(count: int = COUNT) -> Tensor:
    """(N, 10) sixty-fourths: the clean class the likeliest for most rows, its margin anything from 0 to 1."""
    rows = torch.arange(count)
    most = 24 + rows * 29 % 41
    eta = torch.zeros(count, CLASSES, dtype=torch.float64)
    eta[rows, rows % CLASSES] = most.double()
    eta[rows, (rows + 1 + rows // CLASSES % 9) % CLASSES] = (64 - most).double()
    return eta / 64


def mixed(rate: float) -> Tensor:
    """(1 − rate)·I + rate·Q with a Q that is not symmetric."""
    wrong = torch.arange(1.0, CLASSES + 1, dtype=torch.float64).repeat(CLASSES, 1) * (1 - torch.eye(CLASSES))
    return (1 - rate) * torch.eye(CLASSES, dtype=torch.float64) + rate * wrong / wrong.sum(1, keepdim=True)


Draw = Callable[[Tensor, float, int], NoisyLabels]


def instance(**options: str) -> Draw:
    def draw(labels: Tensor, rate: float, seed: int) -> NoisyLabels:
        features = exact_features(len(labels))
        return instance_dependent(features, labels, rate, num_classes=CLASSES, seed=seed, **options)

    return draw


def near_boundary(kind: int) -> Draw:
    def draw(labels: Tensor, rate: float, seed: int) -> NoisyLabels:
        posterior = exact_posterior(len(labels))
        return boundary(labels, rate, posterior=posterior, num_classes=CLASSES, seed=seed, kind=kind)

    return draw


GENERATORS: dict[str, Draw] = {
    "symmetric": lambda labels, rate, seed: symmetric(labels, rate, num_classes=CLASSES, seed=seed),
    "pair_flip": lambda labels, rate, seed: pair_flip(labels, rate, num_classes=CLASSES, seed=seed),
    "class_conditional": lambda labels, rate, seed: class_conditional(labels, mixed(rate), seed=seed),
    "instance_dependent": instance(),
    "instance_dependent, centred": instance(inputs="centred"),
    "instance_dependent, normalised": instance(inputs="normalised"),
    "instance_dependent, shared": instance(projections="shared"),
    "boundary 1": near_boundary(1),
    "boundary 2": near_boundary(2),
    "boundary 3": near_boundary(3),
}

every = pytest.mark.parametrize("name", GENERATORS)


def test_every_law_is_here():
    assert {name.replace(",", " ").split()[0] for name in GENERATORS} == set(LAWS)


@every
@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6])
def test_share_of_wrong_labels_is_within_one_percent_of_the_rate(name, rate):
    noisy = GENERATORS[name](CLEAN, rate, 0)
    assert abs(noisy.realised_rate - rate) < 0.01
    assert noisy.rate == pytest.approx(rate)


@every
def test_rate_zero_changes_nothing(name):
    assert torch.equal(GENERATORS[name](CLEAN[:1000], 0.0, 0).labels, CLEAN[:1000])


@every
def test_higher_rates_contain_the_mistakes_of_lower_ones(name):
    draws = [GENERATORS[name](CLEAN[:5000], rate, 3).labels for rate in (0.1, 0.2, 0.4, 0.6)]
    for low, high in pairwise(draws):
        wrong = low != CLEAN[:5000]
        assert wrong.any() and (high != low).any()
        assert torch.equal(high[wrong], low[wrong])


# Written down once; a machine or a torch release that draws otherwise must not go unnoticed.
GOLDEN = {
    "symmetric": "8ee6976cd08e8caa2cfd1862b177f779",
    "pair_flip": "aecbc6b5e7aa5fb74bdad3941329d114",
    "class_conditional": "09875c69fec6ab71ddd1d76b86323d62",
    "instance_dependent": "3130c2a0b637fb8e7a39d63fd5dee15c",
    "instance_dependent, centred": "6903499069055310b54c0004b9cbeef0",
    "instance_dependent, normalised": "5a909332ea05903f50082123d51e7ba1",
    "instance_dependent, shared": "6dd0374f47d29ea81e60f80ba374fed7",
    "boundary 1": "58b06204467d8d695c8af2cfc90daa09",
    "boundary 2": "f4b97aa1810e0f70e5ae6ad76f3221c3",
    "boundary 3": "cd7a680afbab4d6360035a4d40c0e267",
}


@every
def test_draw_is_the_same_on_every_machine(name):
    assert GENERATORS[name](CLEAN, 0.4, 7).hash[:32] == GOLDEN[name]


@every
def test_seed_names_the_draw_and_nothing_else_does(name):
    draw = GENERATORS[name]
    before = torch.get_rng_state()
    first = draw(CLEAN[:2000], 0.4, 1)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(5)
    assert draw(CLEAN[:2000], 0.4, 1).hash == first.hash
    assert draw(CLEAN[:2000], 0.4, 2).hash != first.hash


@every
@pytest.mark.parametrize("convert", [torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.byte, torch.Tensor.int])
def test_kind_of_labels_does_not_matter(name, convert):
    expected = GENERATORS[name](CLEAN[:500], 0.5, 0)
    got = GENERATORS[name](convert(CLEAN[:500]), 0.5, 0)
    assert got.hash == expected.hash and got.labels.dtype == torch.int64


@every
def test_clean_labels_are_not_changed(name):
    clean = CLEAN[:500].clone()
    GENERATORS[name](clean, 0.6, 0)
    assert torch.equal(clean, CLEAN[:500])


@every
def test_no_labels_are_no_error(name):
    noisy = GENERATORS[name](CLEAN[:0], 0.0, 0)
    assert noisy.labels.shape == (0,) and noisy.transitions.shape == (CLASSES, CLASSES) and noisy.realised_rate == 0


@every
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_device_does_not_matter(name):
    expected = GENERATORS[name](CLEAN, 0.4, 7)
    got = GENERATORS[name](CLEAN.cuda(), 0.4, 7)
    assert got.labels.is_cuda and got.hash == expected.hash


@every
def test_law_names_generator_and_variant_in_plain_values(name):
    noisy = GENERATORS[name](CLEAN[:500], 0.3, 0)
    assert noisy.law["generator"] == name.replace(",", " ").split()[0]
    assert json.loads(json.dumps(noisy.law)) == noisy.law


def test_no_two_laws_have_one_name():
    laws = [json.dumps(draw(CLEAN[:500], 0.3, 0).law) for draw in GENERATORS.values()]
    laws.append(json.dumps(class_conditional(CLEAN[:500], mixed(0.4), seed=0).law))
    laws.append(json.dumps(pair_flip(CLEAN[:500], 0.3, num_classes=10, seed=0, to=CIFAR10_PAIRS).law))
    laws.append(json.dumps(instance_dependent(exact_features(5), CLEAN[:5], 0.3, num_classes=10, seed=0, spread=0.2).law))
    assert len(set(laws)) == len(GENERATORS) + 3


def test_a_record_without_a_law_is_one_still():
    old = NoisyLabels(CLEAN, 0.0, torch.eye(10).long(), "name")
    assert old.law == {} and old.realised_rate == 0


def test_laws_that_agree_give_the_same_labels():
    uniform = torch.full((10, 10), 0.4 / 9, dtype=torch.float64).fill_diagonal_(0.6)
    assert class_conditional(CLEAN, uniform, seed=4).hash == symmetric(CLEAN, 0.4, num_classes=10, seed=4).hash
    pairs = 0.6 * np.eye(10) + 0.4 * np.roll(np.eye(10), 1, axis=1)
    assert class_conditional(CLEAN, pairs, seed=4).hash == pair_flip(CLEAN, 0.4, num_classes=10, seed=4).hash
    fixed = instance_dependent(exact_features(), CLEAN, 0.4, num_classes=10, seed=4, spread=0)
    wrong = symmetric(CLEAN, 0.4, num_classes=10, seed=4).labels != CLEAN
    assert torch.equal(fixed.labels != CLEAN, wrong)
