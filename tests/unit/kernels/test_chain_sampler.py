"""Samples from a chain against enumeration of all its sequences."""

import math

import pytest
import torch
from hypothesis import given, settings
from scipy.stats import chi2

from linearcore import kernels
from linearcore.kernels import sample_chains
from linearcore.structures import Sites
from tests.chains import Case, cases, every_sequence, ragged, random_case, sites


def law(case: Case, row: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every allowed sequence."""
    every = [(score, tags) for score, tags in every_sequence(case, row) if score > -math.inf]
    peak = max(score for score, _ in every)
    total = peak + math.log(math.fsum(math.exp(score - peak) for score, _ in every))
    return {tags: score - total for score, tags in every}


@settings(max_examples=60)
@given(cases())
def test_probabilities_are_the_model(case: Case) -> None:
    tags, log_prob = sample_chains(case.emissions, case.chain, Sites.of(case.mask), 5, torch.Generator().manual_seed(0))
    assert not tags[:, ~case.mask].any()
    for row in range(case.mask.shape[1]):
        expected = law(case, row)
        for k in range(5):
            sequence = tuple(tags[k, sites(case.mask, row), row].tolist())
            assert log_prob[k, row].item() == pytest.approx(expected[sequence], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("block", (None, 3), ids=("one block", "blocks"))
def test_frequencies_are_the_model(monkeypatch: pytest.MonkeyPatch, block: int | None) -> None:
    case = random_case(3, 3, 3, 3, torch.tensor([[True, False, True], [True, True, False], [True, True, True]]))
    count = 60_000 if block is None else 300
    if block is not None:
        monkeypatch.setattr(kernels._chain_sampler, "block_size", lambda scores: block * 3 * 3)
    tags, _ = sample_chains(case.emissions, case.chain, Sites.of(case.mask), count, torch.Generator().manual_seed(1))
    for row in range(3):
        expected = law(case, row)
        counts = dict.fromkeys(expected, 0)
        for sequence in tags[:, sites(case.mask, row), row].tolist():
            counts[tuple(sequence)] += 1
        mean = {tags: count * math.exp(value) for tags, value in expected.items()}
        distance = sum((counts[tags] - mean[tags]) ** 2 / mean[tags] for tags in mean)
        assert chi2.sf(distance, len(mean) - 1) > 1e-4


def test_a_generator_decides() -> None:
    case = random_case(0, 4, 2, 5, ragged([4, 2]))
    where = Sites.of(case.mask)
    first, again, other = (
        sample_chains(case.emissions, case.chain, where, 40, torch.Generator().manual_seed(seed))[0] for seed in (0, 0, 1)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_scores_that_underflow() -> None:
    """Products of exponentials of ±2000 vanish in float64; the log domain keeps them."""
    case = random_case(5, 4, 2, 4).times(2000.0)
    tags, log_prob = sample_chains(case.emissions, case.chain, Sites.of(case.mask), 3, torch.Generator().manual_seed(0))
    for row in range(2):
        expected = law(case, row)
        for k in range(3):
            assert log_prob[k, row].item() == pytest.approx(expected[tuple(tags[k, :, row].tolist())], abs=1e-8)


@pytest.mark.parametrize("shape", ((0, 2), (3, 0)), ids=str)
def test_nothing_to_sample(shape: tuple[int, int]) -> None:
    case = random_case(0, *shape, 3)
    tags, log_prob = sample_chains(case.emissions, case.chain, Sites.of(case.mask), 4)
    assert tags.shape == (4, *shape) and torch.equal(log_prob, torch.zeros(4, shape[1], dtype=torch.float64))


def test_no_allowed_sequence_has_probability_nan() -> None:
    case = random_case(0, 2, 2, 3)
    case.emissions[1, 0] = -math.inf
    _, log_prob = sample_chains(case.emissions.float(), case.chain, Sites.of(case.mask), 4)
    assert log_prob[:, 0].isnan().all() and log_prob[:, 1].isfinite().all()
