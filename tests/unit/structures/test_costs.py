"""Costs of answers against plain loops."""

import random

import pytest
import torch
from torch import Tensor

from linearcore.structures import COSTS, Cost, Hamming, Sequences, ZeroOne, resolve_cost

WEIGHT = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64)
LENGTHS = (1, 2, 5, 0)


def hamming(answer: list[int], truth: list[int], weight: list[float]) -> float:
    wrong = total = 0.0
    for guess, tag in zip(answer, truth, strict=True):
        total += weight[tag]
        if guess != tag:
            wrong += weight[tag]
    return wrong / total if total else 0.0


def ragged_batch(padding: int) -> tuple[list[list[int]], list[list[int]], Tensor, Tensor, Tensor]:
    """Answers and truths of several lengths, bare and padded, with sites missing in the middle too."""
    stream = random.Random(0)
    answers, truths = ([[stream.randrange(3) for _ in range(length)] for length in LENGTHS] for _ in range(2))
    mask = torch.zeros(len(LENGTHS), 6, dtype=torch.bool)
    answer, truth = torch.full(mask.shape, padding), torch.full(mask.shape, padding + 1)
    for row, length in enumerate(LENGTHS):
        places = sorted(stream.sample(range(6), length))
        mask[row, places] = True
        answer[row, places], truth[row, places] = torch.tensor(answers[row]).long(), torch.tensor(truths[row]).long()
    return answers, truths, answer, truth, mask


@pytest.mark.parametrize("padding", (0, -100))
@pytest.mark.parametrize("weight", (None, WEIGHT), ids=("plain", "weighted"))
def test_hamming_is_the_weighted_share_of_wrong_sites(weight: Tensor | None, padding: int) -> None:
    answers, truths, answer, truth, mask = ragged_batch(padding)
    plain = [1.0] * 3 if weight is None else weight.tolist()
    expected = [hamming(guess, tags, plain) for guess, tags in zip(answers, truths, strict=True)]
    assert len(set(expected)) > 2
    torch.testing.assert_close(Hamming(weight).between(answer, truth, mask, dtype=torch.float64).tolist(), expected)


def test_zero_one_is_one_unless_all_sites_agree() -> None:
    _, _, answer, truth, mask = ragged_batch(-100)
    answer[0] = torch.where(mask[0], truth[0], answer[0])
    assert ZeroOne().between(answer, truth, mask).tolist() == [0.0, 1.0, 1.0, 0.0]
    assert ZeroOne().between(answer, truth).tolist() == [1.0] * 4


def test_sites_count_by_their_true_tag() -> None:
    cost, left, right = Hamming(WEIGHT), torch.tensor([0, 2]), torch.tensor([2, 2])
    assert cost.between(left, right).item() == 0.5
    # Of the truth (0, 2) the first site is wrong, 0.5 of 2.5; of the truth (2, 2) it is 2 of 4.
    assert cost.between(right, left, dtype=torch.float64).item() == 0.2


def test_truths_without_weight_cost_nothing() -> None:
    assert Hamming(WEIGHT).between(torch.tensor([0, 2]), torch.tensor([1, 1])).item() == 0.0


@pytest.mark.parametrize("cost", (ZeroOne(), Hamming(), Hamming(WEIGHT)), ids=("zero-one", "hamming", "weighted"))
def test_costs_lie_between_zero_and_one_and_equal_sequences_are_free(cost: Cost) -> None:
    matrix = Sequences(3, 3).cost(cost)
    assert matrix.dtype == torch.float64
    assert float(matrix.min()) == 0.0
    assert float(matrix.max()) == 1.0
    assert not matrix.diagonal().any()


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
@pytest.mark.parametrize("cost", (ZeroOne(), Hamming(), Hamming(WEIGHT)), ids=("zero-one", "hamming", "weighted"))
def test_results_have_the_dtype_asked_for(cost: Cost, dtype: torch.dtype) -> None:
    _, _, answer, truth, mask = ragged_batch(0)
    assert cost.between(answer, truth, mask, dtype=dtype).dtype == dtype


def test_a_mask_may_be_wider_than_the_truth() -> None:
    truth, mask = torch.tensor([0, 1, 2]), torch.tensor([[True, True, False], [True, True, True]])
    answer = torch.tensor([0, 0, 0])
    assert Hamming().between(answer, truth, mask).tolist() == [0.5, pytest.approx(2 / 3)]


def test_site_weights() -> None:
    tags = torch.tensor([[2, 1], [0, 2]])
    assert Hamming(WEIGHT).site_weight(tags).tolist() == [[2.0, 0.0], [0.5, 2.0]]
    assert Hamming(WEIGHT).site_weight(tags).dtype == torch.float32
    assert torch.equal(Hamming().site_weight(tags, torch.float64), torch.ones(2, 2, dtype=torch.float64))


def test_names_stand_for_plain_costs() -> None:
    assert [type(resolve_cost(name)) for name in ("zero-one", "hamming")] == [ZeroOne, Hamming]
    assert [resolve_cost(name).name for name in COSTS] == list(COSTS)
    weighted = Hamming(WEIGHT)
    assert resolve_cost(weighted) is weighted


@pytest.mark.parametrize(
    ("weight", "kind", "message"),
    (
        ([1.0, 2.0], TypeError, r"^`weight` must be a torch tensor, got list; "),
        (torch.tensor([1, 2]), TypeError, r"^`weight` must be floating point, got torch.int64; "),
        (torch.ones(2, 2), ValueError, r"^`weight` must have shape \(num_tags,\), got \(2, 2\); "),
        (torch.tensor([1.0, -1.0]), ValueError, r"^`weight` must be finite and non-negative, got 1 of 2 entries"),
        (torch.tensor([torch.inf, 1.0]), ValueError, r"^`weight` must be finite and non-negative, got 1 of 2 entries"),
        (torch.tensor([torch.nan, 1.0]), ValueError, r"^`weight` must be finite and non-negative, got 1 of 2 entries"),
        (torch.zeros(2), ValueError, r"^`weight` must have a positive sum, got 0; "),
    ),
)
def test_messages_of_weights(weight: Tensor, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        Hamming(weight)


def test_messages_of_names_and_of_other_numbers_of_tags() -> None:
    with pytest.raises(ValueError, match=r"^`cost` must be one of 'zero-one', 'hamming', .*, got 'f2'; .* or pass a"):
        resolve_cost("f2")
    with pytest.raises(ValueError, match=r"^`weight` must have shape \(4,\), got \(3,\); "):
        Hamming(WEIGHT).check(4)
    for cost in (ZeroOne(), Hamming()):
        cost.check(4)
