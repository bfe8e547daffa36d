"""Instance-dependent noise: its law against a plain one, its variants and its messages."""

import numpy as np
import pytest
import torch
from scipy import special, stats

from linearcore import _arrays
from linearcore.noise import NoisyLabels, instance_dependent
from linearcore.noise._instance_dependent import _flip_rates
from linearcore.noise._stream import normal, seeded

CLASSES, WIDTH, COPIES = 4, 5, 4000
INPUTS = np.random.default_rng(3).uniform(0, 1, (12, WIDTH))
REPEATED = np.repeat(INPUTS, COPIES, axis=0)
CLEAN = np.repeat(np.arange(12) % CLASSES, COPIES)


def stated_probabilities(rate: float, seed: int, inputs: str, projections: str) -> np.ndarray:
    """(12, n): the law as it is written down, in numpy, one input after the other."""
    stream = seeded(seed)
    torch.rand(3, len(CLEAN), dtype=torch.float64, generator=stream)

    def matrix() -> np.ndarray:
        first, second = torch.rand(2, WIDTH * CLASSES // 2, dtype=torch.float64, generator=stream).numpy()
        radius = np.sqrt(-2 * np.log(1 - first))
        pairs = radius * np.array([np.cos(2 * np.pi * second), np.sin(2 * np.pi * second)])
        return pairs.reshape(WIDTH, CLASSES)

    matrices = [matrix() for _ in range(CLASSES)] if projections == "per-class" else [matrix()] * CLASSES
    flip = stats.truncnorm(-rate / 0.1, (1 - rate) / 0.1, loc=rate, scale=0.1).mean()
    prepared = INPUTS - INPUTS.mean(0) * (inputs != "raw")
    if inputs == "normalised":
        prepared = prepared / INPUTS.std(0)
    law = np.zeros((12, CLASSES))
    for row, (x, label) in enumerate(zip(prepared, np.arange(12) % CLASSES, strict=True)):
        scores = x @ matrices[label]
        scores[label] = -np.inf
        law[row] = flip * special.softmax(scores)
        law[row, label] += 1 - flip
    return law


@pytest.mark.parametrize("projections", ["per-class", "shared"])
@pytest.mark.parametrize("inputs", ["raw", "centred", "normalised"])
@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_labels_are_drawn_from_the_stated_law(inputs, projections, rate):
    noisy = instance_dependent(REPEATED, CLEAN, rate, num_classes=CLASSES, seed=11, inputs=inputs, projections=projections)
    counts = np.stack([np.bincount(labels, minlength=CLASSES) for labels in noisy.labels.numpy().reshape(12, COPIES)])
    expected = COPIES * stated_probabilities(rate, 11, inputs, projections)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert 1e-3 < stats.chi2.sf(statistic, 12 * (CLASSES - 1)) < 1 - 1e-3


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.5])
def test_rates_of_labels_are_normal_and_cut_off(rate, spread):
    place = torch.linspace(0.001, 0.999, 99, dtype=torch.float64)
    expected = stats.truncnorm(-rate / spread, (1 - rate) / spread, loc=rate, scale=spread).ppf(place.numpy())
    np.testing.assert_allclose(_flip_rates(place, rate, spread).numpy(), expected, atol=1e-9)
    assert (_flip_rates(place, rate, spread) >= _flip_rates(place, rate / 2, spread)).all()


def test_the_cut_moves_the_mean_as_documented():
    place = (torch.arange(100_000, dtype=torch.float64) + 0.5) / 100_000
    assert float(_flip_rates(place, 0.2, 0.1).mean()) == pytest.approx(0.2055, abs=5e-5)
    assert float(_flip_rates(place, 1e-9, 0.1).mean()) == pytest.approx(0.08, abs=5e-4)
    assert (_flip_rates(place, 0.0, 0.1) == 0).all() and (_flip_rates(place, 0.2, 0.0) == 0.2).all()


def test_ends_of_the_stream_are_probabilities():
    place = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    for spread in (1e-9, 0.1, 1e9):
        rates = _flip_rates(place, 0.3, spread)
        assert ((rates >= 0) & (rates <= 1)).all()


def test_random_weights_are_standard_normal():
    numbers = normal(seeded(1), 300, 101).numpy()
    assert numbers.shape == (300, 101) and numbers.dtype == np.float64 and normal(seeded(1), 3, 101).shape == (3, 101)
    assert stats.kstest(numbers.ravel(), "norm").pvalue > 1e-3
    assert stats.kstest(numbers.ravel()[::2] * numbers.ravel()[1::2], "norm").pvalue < 1e-3  # the test has teeth
    halves = numbers.reshape(2, -1)
    assert abs(np.corrcoef(halves)[0, 1]) < 4 / np.sqrt(halves.shape[1])


def clouds(count: int = 50_000) -> tuple[torch.Tensor, torch.Tensor]:
    """Ten clouds of points around a common mean, as images are, and their classes."""
    stream = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 10
    return 3 + torch.randn(10, 20, generator=stream)[labels] + torch.randn(count, 20, generator=stream), labels


def draw(**options: object) -> NoisyLabels:
    points, labels = clouds()
    return instance_dependent(points, labels, 0.4, num_classes=10, seed=5, **options)


def test_being_wrong_has_nothing_to_do_with_the_input_but_the_wrong_label_has():
    points, labels = clouds()
    noisy = draw(inputs="centred")
    wrong = (noisy.labels != labels).double()
    with_ones = torch.column_stack([points.double(), points.square().sum(1).sqrt()])
    correlations = torch.corrcoef(torch.column_stack([wrong, with_ones]).T)[0, 1:]
    assert correlations.abs().max() < 4 / 50_000**0.5
    chosen = (noisy.labels[(wrong > 0) & (labels == 0)] == 1).double()
    inside = points[(wrong > 0) & (labels == 0)].double()
    correlations = torch.corrcoef(torch.column_stack([chosen, inside]).T)[0, 1:]
    assert correlations.abs().max() > 10 / len(chosen) ** 0.5


def test_raw_inputs_with_a_common_mean_favour_few_wrong_classes():
    def largest_share(noisy: NoisyLabels) -> float:
        wrong = noisy.transitions.double() * (1 - torch.eye(10))
        return float((wrong.amax(1) / wrong.sum(1)).mean())

    assert largest_share(draw(inputs="raw")) > largest_share(draw(inputs="centred")) + 0.1


def test_preparation_is_what_preparing_by_hand_is():
    points, labels = clouds()
    points = points.double()
    centred = points - points.mean(0)
    normalised = centred / points.std(0, correction=0)
    options = {"num_classes": 10, "seed": 5}
    assert draw(inputs="centred").hash == instance_dependent(centred, labels, 0.4, **options).hash
    assert draw(inputs="normalised").hash == instance_dependent(normalised, labels, 0.4, **options).hash
    assert draw(inputs="normalised").hash != draw(inputs="centred").hash != draw().hash


def test_a_feature_that_never_changes_says_nothing():
    points, labels = clouds(2000)
    padded = torch.column_stack([points.double(), torch.full((2000,), 0.1, dtype=torch.float64)])
    for value in (0.1, 1e9, 0.0):
        padded[:, -1] = value
        got = instance_dependent(padded, labels, 0.4, num_classes=10, seed=5, inputs="normalised")
        if value == 0.1:
            expected = got.hash
        assert got.hash == expected


@pytest.mark.parametrize(
    "convert",
    [
        lambda pixels: pixels.double(),
        lambda pixels: pixels.half(),
        lambda pixels: pixels.numpy(),
        lambda pixels: pixels.int(),
        lambda pixels: pixels.reshape(600, 3, 4, 1),
        lambda pixels: pixels.float().requires_grad_(),
        lambda pixels: pixels.T.contiguous().T,
    ],
)
@pytest.mark.parametrize("inputs", ["raw", "normalised"])
def test_kind_and_shape_of_features_do_not_matter(convert, inputs):
    pixels = (torch.arange(600)[:, None] * torch.arange(1, 13) % 251).byte()
    options = {"num_classes": 3, "seed": 0, "inputs": inputs}
    expected = instance_dependent(pixels, torch.arange(600) % 3, 0.5, **options)
    assert instance_dependent(convert(pixels), torch.arange(600) % 3, 0.5, **options).hash == expected.hash


@pytest.mark.parametrize("inputs", ["raw", "centred", "normalised"])
def test_size_of_the_pieces_does_not_matter(inputs, monkeypatch, tmp_path):
    points, labels = clouds(3000)
    np.save(tmp_path / "points.npy", points.numpy())
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    whole = instance_dependent(points, labels, 0.4, num_classes=10, seed=5, inputs=inputs)
    monkeypatch.setattr(_arrays, "CHUNK", 20 * 7)
    assert instance_dependent(mapped, labels, 0.4, num_classes=10, seed=5, inputs=inputs).hash == whole.hash


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inputs": "scaled"}, ValueError, "`inputs` must be one of 'raw', 'centred', 'normalised', got 'scaled'"),
        ({"projections": "one"}, ValueError, "`projections` must be one of 'per-class', 'shared', got 'one'"),
        ({"spread": -1}, ValueError, "`spread` must be a number of at least 0, got -1; the released code uses 0.1"),
        ({"spread": float("nan")}, ValueError, "`spread` must be a number of at least 0, got nan"),
        ({"spread": True}, ValueError, "`spread` must be a number of at least 0, got True"),
        ({"features": torch.ones(3)}, ValueError, r"`features` must have one row per label, got shape \(3,\)"),
        ({"features": torch.ones(2, 5)}, ValueError, r"`labels` must have shape \(2,\), got \(3,\); "),
        ({"labels": [[0, 1, 2]]}, ValueError, r"`labels` must have shape \(3,\), got \(1, 3\)"),
        ({"features": [[1.0]] * 3}, TypeError, "`features` must be a tensor or an array, got list"),
        ({"features": torch.ones(3, 2, dtype=torch.complex64)}, TypeError, "`features` must be real numbers"),
        ({"features": np.array([["a"]] * 3)}, TypeError, "`features` must be real numbers, got <U1"),
        ({"features": torch.tensor([[1.0], [2.0], [torch.nan]])}, ValueError, "`features` must be finite, got NaN"),
        ({"features": torch.tensor([[1.0], [-torch.inf], [0.0]])}, ValueError, "`features` must be finite"),
        ({"rate": 2.0}, ValueError, "`rate` must be a probability"),
        ({"seed": -1}, ValueError, "`seed` must be a non-negative"),
    ],
)
def test_messages(options, error, message):
    arguments = {"features": torch.ones(3, 5), "labels": [0, 1, 2], "rate": 0.2, "num_classes": 3, "seed": 0} | options
    first = [arguments.pop(name) for name in ("features", "labels", "rate")]
    with pytest.raises(error, match=message):
        instance_dependent(*first, **arguments)
