"""The facts that costs declare, by enumeration of all pairs of sequences on small spaces."""

import inspect

import pytest
import torch
from torch import Tensor

from linearcore.structures import (
    COST_NAMES,
    AlignedNgram,
    Bleu,
    ClippedNgram,
    Cost,
    EditDistance,
    Hamming,
    Sequences,
    SpanF1,
    TokenF1,
    ZeroOne,
    ngram_kernel,
)

#: Each cost with a space in which the facts that it does not declare can be seen to fail.
CASES: dict[str, tuple[Cost, Sequences]] = {
    "zero-one": (ZeroOne(), Sequences(2, 4)),
    "hamming": (Hamming(), Sequences(3, 3)),
    "hamming-weighted": (Hamming(torch.tensor([1.0, 0.0, 2.0])), Sequences(3, 3)),
    "ngram": (AlignedNgram(), Sequences(2, 5)),
    "ngram-1": (AlignedNgram(1), Sequences(3, 3)),
    "ngram-3": (AlignedNgram(3), Sequences(2, 5)),
    "ngram-short": (AlignedNgram(3), Sequences(3, 2)),
    "clipped-ngram": (ClippedNgram(), Sequences(2, 5)),
    "edit": (EditDistance(), Sequences(2, 5)),
    "token-f1": (TokenF1(0), Sequences(3, 3)),
    "token-f1-two-outside": (TokenF1((0, 2)), Sequences(3, 3)),
    "span-f1": (SpanF1(["O", "B-A", "I-A"]), Sequences(3, 3)),
    "bleu": (Bleu(), Sequences(2, 9)),
    "bleu-2": (Bleu(2), Sequences(3, 4)),
}
every_case = pytest.mark.parametrize(("cost", "space"), CASES.values(), ids=CASES.keys())


def windows(space: Sequences, n: int) -> Tensor:
    """(M, D): for each output and each place the n-gram there, one-hot."""
    n = min(n, space.length)
    code = sum(space.outputs[:, i : space.length - n + i + 1] * space.num_tags**i for i in range(n))
    return torch.nn.functional.one_hot(code, space.num_tags**n).flatten(1).double()


def is_sum_over_ngrams(cost: Cost, space: Sequences, n: int) -> bool:
    """Whether for each target the cost of all predictions is a sum of scores of their n-grams at their places."""
    basis = windows(space, n)
    left = torch.linalg.svd(basis, full_matrices=False)
    span = left.U[:, left.S > 1e-9]
    costs = space.cost(cost)
    return bool(torch.allclose(span @ (span.t() @ costs), costs, atol=1e-9))


def test_every_cost_is_held_to_the_laws() -> None:
    assert {cost.name for cost, _ in CASES.values()} == set(COST_NAMES)


@every_case
def test_costs_lie_between_zero_and_one_and_targets_are_free(cost: Cost, space: Sequences) -> None:
    costs = space.cost(cost)
    assert float(costs.min()) >= 0 and float(costs.max()) <= 1 + 1e-12
    torch.testing.assert_close(costs.diagonal(), torch.zeros(space.size, dtype=torch.float64), rtol=0, atol=1e-15)


@every_case
def test_whether_only_the_target_is_free(cost: Cost, space: Sequences) -> None:
    num_free = (space.cost(cost) < 1e-12).sum(0)
    assert cost.is_zero_only_if_equal == bool((num_free == 1).all())


@every_case
def test_whether_it_is_a_sum_over_ngrams(cost: Cost, space: Sequences) -> None:
    if space.size > 300:
        space = Sequences(2, 5)
    if cost.ngram_order is None:
        assert not is_sum_over_ngrams(cost, space, space.length - 1)
        return
    assert is_sum_over_ngrams(cost, space, cost.ngram_order)
    if 1 < cost.ngram_order <= space.length:
        assert not is_sum_over_ngrams(cost, space, cost.ngram_order - 1)
    if cost.is_additive:
        assert cost.ngram_order == 1


@every_case
def test_whether_sequences_without_a_correct_tag_cost_one(cost: Cost, space: Sequences) -> None:
    is_all_wrong = (space.outputs.unsqueeze(1) != space.outputs).all(-1)
    if cost.is_one_if_all_wrong and cost.is_zero_only_if_equal:
        assert bool((space.cost(cost)[is_all_wrong] == 1).all())


@every_case
def test_whether_sequences_without_a_common_ngram_cost_one(cost: Cost, space: Sequences) -> None:
    if cost.shared_ngram is not None:
        is_shared = (windows(space, cost.shared_ngram) @ windows(space, cost.shared_ngram).t()) > 0
        is_free = (space.cost(cost) == 0).all(0)  # Targets whose tags all have weight 0.
        assert bool(((space.cost(cost) == 1) | is_shared | is_free).all())


@every_case
def test_whether_every_wrong_sequence_costs_one(cost: Cost, space: Sequences) -> None:
    wrong = space.cost(cost)[~torch.eye(space.size, dtype=torch.bool)]
    assert cost.is_constant == bool((wrong == 1).all()) or space.length < 3


@every_case
def test_the_mass_of_the_similarity(cost: Cost, space: Sequences) -> None:
    mass = cost.log_similarity_mass(space.outputs, torch.ones_like(space.outputs, dtype=torch.bool), space.num_tags)
    if mass is not None:
        torch.testing.assert_close(mass.exp(), (1 - space.cost(cost)).sum(0))


@every_case
def test_whether_it_compares_sequences_of_other_lengths(cost: Cost, space: Sequences) -> None:
    assert cost.compares_lengths == ("prediction_mask" in inspect.signature(cost.between).parameters)
    if cost.compares_lengths:
        shorter, full = torch.arange(space.length) < space.length - 1, torch.ones(space.length, dtype=torch.bool)
        pairs = space.outputs.unsqueeze(1)[:100], space.outputs[:100], full
        costs = cost.between(*pairs, prediction_mask=shorter, dtype=torch.float64)
        assert float(costs.min()) >= 0 and float(costs.max()) <= 1 + 1e-12
        torch.testing.assert_close(costs, cost.between(pairs[0][..., :-1], pairs[1], dtype=torch.float64))


@every_case
def test_the_number_of_tags_that_it_is_made_for(cost: Cost, space: Sequences) -> None:
    cost.check(space.num_tags)
    if cost.num_tags is not None:
        assert cost.num_tags == space.num_tags
        with pytest.raises(ValueError, match=f"{space.num_tags + 1}"):
            cost.check(space.num_tags + 1)


def test_the_count_kernel_is_no_similarity() -> None:
    space = Sequences(2, 4)
    kernel = ngram_kernel(space.outputs.unsqueeze(1), space.outputs, n=2, dtype=torch.float64)
    assert torch.equal(kernel, kernel.t())
    assert float(torch.linalg.eigvalsh(kernel).min()) > -1e-9
    # For some targets another sequence has more, and values exceed 1.
    assert bool((kernel.max(0).values > kernel.diagonal()).any())
    assert float(kernel.max()) == 9
