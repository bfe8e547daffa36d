"""Decoders against all sequences written out, against one another, and against torchcrf with many tags."""

import math

import pytest
import torch
import torchcrf
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from linearcore.kernels import _kbest, beam, kbest, viterbi
from linearcore.structures import Chain, Sites, path_score
from tests.chains import Case, cases, every_sequence, ragged, random_case, score_of, sites

drawn = settings(max_examples=60)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


def best_scores(case: Case, row: int) -> list[float]:
    """The scores of all allowed sequences, best first."""
    return sorted((score for score, _ in every_sequence(case, row) if score > -math.inf), reverse=True)


def tags_at_sites(tags: Tensor, case: Case, row: int) -> list[int]:
    """One chain's tags without the positions that are off, where there must be none."""
    on = sites(case.mask, row)
    assert all(tags[time, row] == -100 for time in range(len(tags)) if time not in on)
    return tags[on, row].tolist()


@given(case=cases())
@drawn
def test_viterbi_finds_the_best_sequence(case: Case) -> None:
    tags, scores = viterbi(case.emissions, case.chain, Sites.of(case.mask))
    for row, score in enumerate(scores.tolist()):
        assert score == pytest.approx(best_scores(case, row)[0], rel=1e-12, abs=1e-12)
        assert score == pytest.approx(score_of(case, row, tags_at_sites(tags, case, row)), rel=1e-12, abs=1e-12)


@given(case=cases(), width=st.integers(1, 5))
@drawn
def test_beam_scores_the_tags_that_it_finds(case: Case, width: int) -> None:
    tags, scores = beam(case.emissions, case.chain, Sites.of(case.mask), width)
    for row, score in enumerate(scores.tolist()):
        found = tags_at_sites(tags, case, row)
        assert score <= best_scores(case, row)[0] + 1e-12
        assert score == -math.inf or score == pytest.approx(score_of(case, row, found), rel=1e-12, abs=1e-12)


@given(case=cases())
@drawn
def test_a_beam_of_all_tags_is_viterbi(case: Case) -> None:
    where, num_tags = Sites.of(case.mask), case.emissions.shape[-1]
    exact, exact_scores = viterbi(case.emissions, case.chain, where)
    tags, scores = beam(case.emissions, case.chain, where, num_tags)
    close(scores, exact_scores)
    for row in range(case.mask.shape[1]):
        best, second = (*best_scores(case, row), -math.inf)[:2]
        assert best - second < 1e-6 or torch.equal(tags[:, row], exact[:, row])


@pytest.mark.parametrize("decoder", (viterbi, lambda *case: beam(*case, 4), lambda *case: kbest(*case, 3)))
def test_a_chain_that_begins_late_is_the_chain_without_what_is_before(decoder) -> None:
    mask = torch.ones(4, 2, dtype=torch.bool)
    mask[0, 0] = mask[:2, 1] = False
    case = random_case(0, 4, 2, 4, mask)
    tags, scores = decoder(case.emissions, case.chain, Sites.of(mask))
    for row, late in enumerate((1, 2)):
        cut = decoder(case.emissions[late:, row : row + 1], case.chain, Sites.of(mask[late:, row : row + 1]))
        assert torch.equal(tags[..., late:, row], cut[0][..., 0]) and (tags[..., :late, row] == -100).all()
        close(scores[..., row], cut[1][..., 0])


def test_a_narrow_beam_can_miss_the_best() -> None:
    """The first position prefers 0, which costs more than it gave."""
    emissions = torch.tensor([[[1.0, 0.0]], [[0.0, 0.0]]])
    chain = Chain(torch.zeros(2), torch.tensor([[-5.0, -5.0], [0.0, -1.0]]), torch.zeros(2))
    where = Sites.of(ragged((2,)))
    assert [part.flatten().tolist() for part in beam(emissions, chain, where, 1)] == [[0, 0], [-4.0]]
    assert [part.flatten().tolist() for part in viterbi(emissions, chain, where)] == [[1, 0], [0.0]]


def test_a_narrow_beam_can_lose_all_paths() -> None:
    emissions = torch.tensor([[[1.0, 0.0]], [[0.0, 0.0]]])
    chain = Chain(torch.zeros(2), torch.tensor([[-math.inf, -math.inf], [0.0, 0.0]]), torch.zeros(2))
    assert beam(emissions, chain, Sites.of(ragged((2,))), 1)[1].tolist() == [-math.inf]
    assert beam(emissions, chain, Sites.of(ragged((2,))), 2)[1].tolist() == [0.0]


@given(case=cases(), k=st.sampled_from((1, 2, 3, 5, 17, 300)))
@settings(drawn, max_examples=120)
def test_kbest_finds_the_k_best_sequences(case: Case, k: int) -> None:
    tags, scores = kbest(case.emissions, case.chain, Sites.of(case.mask), k)
    length, batch = case.mask.shape
    assert tags.shape == (k, length, batch) and scores.shape == (k, batch)
    for row in range(batch):
        right = best_scores(case, row)[:k]
        close(scores[: len(right), row], torch.tensor(right, dtype=torch.float64))
        assert (scores[len(right) :, row] == -math.inf).all() and (tags[len(right) :, :, row] == -100).all()
        found = [tags_at_sites(one, case, row) for one in tags[: len(right)]]
        assert len({tuple(one) for one in found}) == len(right)
        for one, score in zip(found, scores[:, row].tolist(), strict=False):
            assert score == pytest.approx(score_of(case, row, one), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=("float32", "float64"))
@pytest.mark.parametrize("block", (1, 100, 3000, 2**19))
def test_kbest_is_the_same_in_blocks_of_any_size(dtype: torch.dtype, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kbest, "block_size", lambda _: block)
    case, k = random_case(0, 12, 5, 30, ragged((12, 11, 5, 2, 1))).to(dtype), 9
    where = Sites.of(case.mask)
    tags, scores = kbest(case.emissions, case.chain, where, k)
    best, score = viterbi(case.emissions, case.chain, where)
    assert torch.equal(tags[0], best)
    torch.testing.assert_close(scores[0], score)
    assert (scores.diff(dim=0) <= 0).all()
    for row in range(5):
        found = [tags_at_sites(one, case, row) for one in tags]
        assert len({tuple(one) for one in found}) == k
        expected = [score_of(case, row, one) for one in found]
        torch.testing.assert_close(scores[:, row].tolist(), expected, rtol=1e-5, atol=1e-5)


def test_many_ties_are_all_different_sequences() -> None:
    zero = torch.zeros(3, 3, dtype=torch.float64)
    case = Case(zero.reshape(3, 1, 3), Chain(zero[0], zero, zero[0]), ragged((3,)))
    tags, scores = kbest(case.emissions, case.chain, Sites.of(case.mask), 30)
    assert scores[:, 0].tolist() == [0.0] * 27 + [-math.inf] * 3
    assert len({tuple(one) for one in tags[:27, :, 0].tolist()}) == 27


@pytest.mark.parametrize("spread", (0.1, 1.0, 30.0), ids=("flat", "normal", "sharp"))
@pytest.mark.parametrize("num_tags", (255, 256, 300))
def test_viterbi_with_many_tags_is_torchcrf(spread: float, num_tags: int) -> None:
    case = random_case(1, 9, 4, num_tags, ragged((9, 8, 3, 1)))
    emissions = spread * case.emissions
    peer = torchcrf.CRF(num_tags).double()
    with torch.no_grad():
        for parameter, scores in zip(
            (peer.start_transitions, peer.transitions, peer.end_transitions), case.chain, strict=True
        ):
            parameter.copy_(scores)
    tags, scores = viterbi(emissions, case.chain, Sites.of(case.mask))
    assert [tags_at_sites(tags, case, row) for row in range(4)] == peer.decode(emissions, mask=case.mask)
    close(scores, path_score(emissions, case.chain, tags.clamp(min=0), Sites.of(case.mask)))


def test_forbidden_transitions_with_many_tags() -> None:
    """A ring: from a tag one goes to the next or stays, so that the bound has little to say."""
    case = random_case(2, 6, 2, 260, ragged((6, 4)))
    tag = torch.arange(260)
    allowed = (tag == tag.unsqueeze(-1)) | (tag == (tag.unsqueeze(-1) + 1) % 260)
    chain = Chain(case.chain.start, case.chain.transitions.masked_fill(~allowed, -math.inf), case.chain.end)
    tags, scores = viterbi(case.emissions, chain, Sites.of(case.mask))
    alpha = chain.start + case.emissions[0]
    for j in range(1, 6):
        arrive = (alpha.unsqueeze(-1) + chain.transitions).amax(1) + case.emissions[j]
        alpha = torch.where(case.mask[j].unsqueeze(-1), arrive, alpha)
    close(scores, (alpha + chain.end).amax(-1))
    for row in range(2):
        assert scores[row].item() == pytest.approx(score_of(case._replace(chain=chain), row, tags_at_sites(tags, case, row)))


DECODERS = {
    "viterbi": viterbi,
    "beam": lambda *arguments: beam(*arguments, 2),
    "kbest": lambda *arguments: kbest(*arguments, 2),
}
every_decoder = pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS.keys())


@every_decoder
@pytest.mark.parametrize("junk", (math.nan, math.inf, -math.inf))
def test_what_is_under_the_mask_is_not_decoded(decode, junk: float) -> None:
    mask = torch.tensor([[True, True, False], [False, True, False], [True, False, True], [True, False, True]])
    case = random_case(3, 4, 3, 3, mask)
    right = decode(case.emissions, case.chain, Sites.of(mask))
    case.emissions[~mask] = junk
    for found, expected in zip(decode(case.emissions, case.chain, Sites.of(mask)), right, strict=True):
        assert torch.equal(found, expected) and found[..., 2].ne(-100).any()


@every_decoder
def test_a_chain_without_tags_is_one_empty_sequence(decode) -> None:
    mask = torch.tensor([[True, False], [True, False]])
    tags, scores = decode(*random_case(4, 2, 2, 3)[:2], Sites.of(mask))
    tags, scores = tags.reshape(-1, 2, 2), scores.reshape(-1, 2)
    assert (tags[..., 1] == -100).all() and (tags[0, :, 0] >= 0).all()
    assert scores[:, 1].tolist() == [0.0, -math.inf][: len(scores)]


@every_decoder
@pytest.mark.parametrize(("length", "batch"), ((0, 3), (4, 0), (0, 0)))
@pytest.mark.parametrize("num_tags", (1, 3, 300))
def test_nothing_to_decode(decode, length: int, batch: int, num_tags: int) -> None:
    case = random_case(5, length, batch, num_tags)
    tags, scores = decode(case.emissions, case.chain, Sites.of(case.mask))
    assert tags.shape[-2:] == (length, batch) and scores.shape[-1:] == (batch,) and tags.dtype == torch.long
    best = scores[0] if scores.dim() == 2 else scores
    assert best.tolist() == [0.0] * batch


@every_decoder
def test_decoding_keeps_no_graph(decode) -> None:
    case = random_case(6, 3, 2, 3).leaves()
    tags, scores = decode(case.emissions, case.chain, Sites.of(case.mask))
    assert not tags.requires_grad and not scores.requires_grad


@every_decoder
def test_emissions_may_lie_in_memory_as_they_like(decode) -> None:
    case = random_case(7, 4, 3, 260, ragged((4, 3, 1)))
    where = Sites.of(case.mask)
    turned = case.emissions.transpose(0, 1).contiguous().transpose(0, 1)
    assert not turned.is_contiguous()
    right = decode(case.emissions, case.chain, where)
    turned_chain = case.chain._replace(transitions=case.chain.transitions.t().contiguous().t())
    for found, expected in zip(decode(turned, turned_chain, where), right, strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_one_sequence_is_decoded_as_in_a_batch(length, dtype):
    generator = torch.Generator().manual_seed(length)
    for num_tags in (1, 2, 12):
        scores = [
            torch.randn(*size, generator=generator, dtype=dtype) for size in ((num_tags,), (num_tags,) * 2, (num_tags,))
        ]
        scores[1][0, -1] = -math.inf if num_tags > 1 else 0.0
        chain, emissions = Chain(*scores), torch.randn(length, 3, num_tags, generator=generator, dtype=dtype)
        emissions[0, 2] = math.nan
        mask = torch.ones(length, 3, dtype=torch.bool)
        tags, totals = viterbi(emissions, chain, Sites.of(mask))  # As if some positions were masked.
        full_tags, full_totals = viterbi(emissions, chain, Sites.of(mask, is_full=True))
        assert torch.equal(full_tags, tags) and torch.equal(full_totals[:2], totals[:2])
        for row in range(3):
            sites = Sites.of(mask[:, :1], is_full=True)
            own_tags, own_total = viterbi(emissions[:, row : row + 1], chain, sites)
            assert torch.equal(own_tags, tags[:, row : row + 1])
            torch.testing.assert_close(own_total, totals[row : row + 1], rtol=0, atol=0, equal_nan=True)
            assert own_tags.dtype == tags.dtype and own_total.dtype == totals.dtype
