"""The choice with the least expected cost against a loop over candidates and references."""

import pytest
import torch
from torch import Tensor

from linearcore.kernels import _consensus, consensus
from linearcore.structures import EditDistance, Hamming

MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 1]]).bool()


def tags_of(count: int, seed: int) -> Tensor:
    return torch.randint(3, (count, *MASK.shape), generator=torch.Generator().manual_seed(seed)).masked_fill(~MASK, -100)


def by_loop(candidates: Tensor, references: Tensor, weights: Tensor) -> tuple[list[list[int]], list[float]]:
    chosen, risks = [], []
    for row in range(MASK.shape[1]):
        where = MASK[:, row]
        expected = [
            sum(
                float(weight) * EditDistance().between(guess[where, row], truth[where, row], dtype=torch.float64).item()
                for truth, weight in zip(references, weights[:, row], strict=True)
            )
            for guess in candidates
        ]
        index = min(range(len(expected)), key=lambda k: (round(expected[k], 9), k))
        chosen.append(candidates[index, :, row].tolist())
        risks.append(expected[index])
    return chosen, risks


@pytest.mark.parametrize("block", (1, 2**21))
def test_without_samples_the_best_sequences_are_the_distribution(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(_consensus, "_CPU_BLOCK", block)
    best, scores = (
        tags_of(5, 0),
        torch.randn(5, 3, generator=torch.Generator().manual_seed(1)).sort(0, descending=True).values,
    )
    others = tags_of(2, 2)
    tags, risk = consensus(best, scores, MASK, EditDistance(), others=others)
    expected, risks = by_loop(torch.cat([best, others]), best, scores.double().softmax(0))
    assert tags.t().tolist() == expected
    torch.testing.assert_close(risk.tolist(), risks, rtol=0, atol=1e-6)


def test_samples_stand_for_the_sequences_that_are_not_among_the_best() -> None:
    best, drawn = tags_of(3, 0), tags_of(6, 3)
    drawn[1], drawn[4] = best[2], best[0]  # Two samples are among the best already.
    probs = torch.tensor([[0.4, 0.6, 0.3], [0.2, 0.3, 0.2], [0.1, 0.05, 0.1]], dtype=torch.float64)
    tags, risk = consensus(best, probs.log(), MASK, EditDistance(), drawn=drawn)
    is_new = torch.tensor(
        [[all((drawn[s, :, b] != best[k, :, b]).any() for k in range(3)) for b in range(3)] for s in range(6)]
    )
    weights = torch.cat([probs, is_new / is_new.sum(0) * (1 - probs.sum(0))])
    expected, risks = by_loop(best, torch.cat([best, drawn]), weights)
    assert tags.t().tolist() == expected
    torch.testing.assert_close(risk.tolist(), risks, rtol=0, atol=1e-6)


def test_missing_sequences_are_neither_chosen_nor_counted() -> None:
    # Of the two best sequences the second does not exist; the samples are all 0, which padding must not be taken for.
    best = torch.stack([torch.full(MASK.shape, 2), torch.full(MASK.shape, -100)]).masked_fill(~MASK, -100)
    log_probs = torch.tensor([[0.1, 0.1, 0.1], [0.0, 0.0, 0.0]]).log()
    drawn = torch.zeros(4, *MASK.shape, dtype=torch.long).masked_fill(~MASK, -100)
    tags, risk = consensus(best, log_probs, MASK, Hamming(), drawn=drawn)
    assert torch.equal(tags, best[0])
    torch.testing.assert_close(risk, torch.full((3,), 0.9, dtype=torch.float64))
    tags, risk = consensus(best, log_probs, MASK, Hamming())
    assert torch.equal(tags, best[0]) and risk.tolist() == [0.0] * 3
