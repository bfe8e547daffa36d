"""Minimum-risk decoding against enumeration of all sequences."""

import itertools
from functools import partial

import pytest
import torch
from torch import Tensor

from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.kernels import sample_chain
from linearcore.structures import (
    AlignedNgram,
    Bleu,
    ClippedNgram,
    Constraints,
    Cost,
    EditDistance,
    Hamming,
    Sites,
    SpanF1,
    TokenF1,
    ZeroOne,
    bio,
)
from tests.chains import Case, every_sequence

NAMES = ("O", "B-X", "I-X")
HEADS = {
    "crf": partial(ChainCRF, 3),
    "lc": partial(LinearCoreChain, 3),
    "ssvm": partial(ChainSSVM, 3),
    "crf-constrained": partial(ChainCRF, 3, constraints=bio(NAMES)),
    "lc-low-rank": partial(LinearCoreChain, 3, rank=2),
}
COSTS: dict[str, Cost] = {
    "zero-one": ZeroOne(),
    "hamming": Hamming(),
    "weighted": Hamming(torch.tensor([1.0, 2.0, 0.5])),
    "ngram": AlignedNgram(),
    "clipped-ngram": ClippedNgram(),
    "edit": EditDistance(),
    "token-f1": TokenF1(0),
    "span-f1": SpanF1(NAMES),
    "bleu": Bleu(2),
}
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, 0], [1, 0, 0, 0]]).bool()
EMISSIONS = torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(0)).double()


def make(name: str, **options: object) -> ChainHead:
    torch.manual_seed(0)
    return HEADS[name](strict_mask=False, **options).double().requires_grad_(False)


def expected_costs(head: ChainHead, cost: Cost, row: int, temperature: float) -> tuple[Tensor, Tensor]:
    """Returns the allowed sequences (M, length) of a row and their expected costs (M,)."""
    case = Case(EMISSIONS, head.chain(EMISSIONS), MASK)
    scored = [(score, tags) for score, tags in every_sequence(case, row) if score > -torch.inf]
    outputs = torch.tensor([tags for _, tags in scored], dtype=torch.long)
    probs = (torch.tensor([score for score, _ in scored]).double() / temperature).softmax(0)
    return outputs, cost.between(outputs.unsqueeze(1), outputs, dtype=torch.float64) @ probs


@pytest.mark.parametrize("temperature", (1.0, 0.3))
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
@pytest.mark.parametrize("name", ("crf", "crf-constrained"))
def test_is_exact_if_all_sequences_are_candidates(name: str, cost: Cost, temperature: float) -> None:
    head = make(name)
    # Samples are among the candidates then, and change nothing.
    tags, risk = head.minimum_risk(EMISSIONS, MASK, cost=cost, candidates=81, num_samples=5, temperature=temperature)
    assert torch.equal(tags == -100, ~MASK)
    for row in range(4):
        outputs, costs = expected_costs(head, cost, row, temperature)
        chosen = (outputs == tags[MASK[:, row], row]).all(-1)
        assert int(chosen.sum()) == 1  # It is an allowed sequence.
        assert float(costs[chosen]) == pytest.approx(float(costs.min()), abs=1e-6)
        assert float(risk[row]) == pytest.approx(float(costs.min()), abs=1e-6)


@pytest.mark.parametrize("name", HEADS)
def test_every_head_decodes_for_a_cost(name: str) -> None:
    head = make(name)
    rows = make(name, batch_first=True)
    for cost in ("edit", "hamming", "bleu", SpanF1(NAMES)):
        lists = head.decode(EMISSIONS, MASK, cost=cost)
        assert [len(tags) for tags in lists] == MASK.sum(0).tolist()
        assert rows.decode(EMISSIONS.transpose(0, 1), MASK.t(), cost=cost) == lists
        assert head.decode(EMISSIONS, MASK, cost=cost) == lists  # The samples are the same in every call.
        if head.constraints is not None:
            for tags in lists:
                for before, tag in itertools.pairwise([0, *tags]):
                    assert bool(head.constraints.transitions[before, tag])
    best = head.decode(EMISSIONS, MASK)
    assert head.decode(EMISSIONS, MASK, cost="zero-one") == best
    assert head.decode(EMISSIONS, MASK, cost="edit", candidates=1, num_samples=0, temperature=1e-3) == best


def test_tags_from_marginals_satisfy_the_constraints() -> None:
    head = make("crf-constrained")
    emissions = 3 * torch.randn(2, 1000, 3, generator=torch.Generator().manual_seed(3)).double()
    tags, risk = head.minimum_risk(emissions, cost="hamming")
    outputs = torch.tensor([pair for pair in itertools.product(range(3), repeat=2) if pair[0] != 2 and pair != (0, 2)])
    chain = head.chain(emissions)
    steps = chain.start[outputs[:, 0]] + chain.transitions[outputs[:, 0], outputs[:, 1]] + chain.end[outputs[:, 1]]
    probs = (emissions[0][:, outputs[:, 0]] + emissions[1][:, outputs[:, 1]] + steps).softmax(-1)
    costs = Hamming().between(outputs.unsqueeze(1), outputs, dtype=torch.float64)
    torch.testing.assert_close(risk, (probs @ costs).amin(-1))
    assert torch.equal(tags.t(), outputs[(probs @ costs).argmin(-1)])
    # Without the constraints some answers would be others.
    free = torch.stack([(probs @ torch.nn.functional.one_hot(outputs[:, j], 3).double()).argmax(-1) for j in range(2)])
    assert bool((free != tags).any())


def test_the_most_correct_tags_are_a_candidate() -> None:
    head = make("crf")
    emissions = torch.randn(8, 60, 3, generator=torch.Generator().manual_seed(1)).double()
    best, most_correct = head.viterbi(emissions)[0], head.minimum_risk(emissions, cost="hamming")[0]
    tags, _ = head.minimum_risk(emissions, cost="edit", candidates=1)
    is_best, is_most_correct = ((tags == other).all(0) for other in (best, most_correct))
    assert bool((is_best | is_most_correct).all()) and bool((is_most_correct & ~is_best).any())


def test_samples_lower_the_cost_if_many_sequences_are_likely() -> None:
    head = make("crf")
    emissions = torch.randn(12, 60, 3, generator=torch.Generator().manual_seed(1)).double()
    stream = torch.Generator().manual_seed(2)
    sampled, risk = head.minimum_risk(emissions, cost="edit", num_samples=300, generator=stream)
    restricted, _ = head.minimum_risk(emissions, cost="edit", num_samples=0)
    truth, _ = sample_chain(emissions, head.chain(emissions), Sites.of(torch.ones(12, 60).bool()), 100, stream)
    costs = [EditDistance().between(tags.t(), truth.transpose(1, 2)).mean() for tags in (sampled, restricted)]
    assert float(costs[0]) < float(costs[1]) - 0.002
    # The risk that is returned is close to the cost that is measured.
    assert abs(float(risk.mean() - costs[0])) < 0.02


@pytest.mark.parametrize("options", ({}, {"num_samples": 0}, {"candidates": 1}), ids=("samples", "no samples", "best"))
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
@pytest.mark.parametrize("name", ("crf", "crf-constrained"))
def test_sequences_that_are_impossible_have_no_tags(name: str, cost: Cost, options: dict[str, int]) -> None:
    head = make(name)
    emissions = EMISSIONS.clone()
    emissions[1, 1] = -torch.inf
    _check_impossible(head, emissions, cost, options)
    if head.constraints is not None:  # Only I-X has a finite score, and may not be first.
        emissions[:, 1] = torch.tensor([-torch.inf, -torch.inf, 0.0])
        _check_impossible(head, emissions, cost, options)


def _check_impossible(head: ChainHead, emissions: Tensor, cost: Cost, options: dict[str, int]) -> None:
    """Sequence 1 has no allowed tags, and the others have those of a batch in which all are possible."""
    tags, risk = head.minimum_risk(emissions, MASK, cost=cost, **options)
    assert bool((tags[:, 1] == -100).all()) and float(risk[1]) == 1.0
    assert head.decode(emissions, MASK, cost=cost, **options)[1] == []
    others = torch.tensor([0, 2, 3])
    expected, expected_risk = head.minimum_risk(EMISSIONS, MASK, cost=cost, **options)
    assert torch.equal(tags[:, others], expected[:, others])
    torch.testing.assert_close(risk[others], expected_risk[others])


def test_constraints_without_a_sequence_of_this_length_give_no_tags() -> None:
    alternating = Constraints.forbid(3, pairs=[(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)], start=[1, 2], end=[1, 2])
    head = ChainCRF(3, constraints=alternating, validate=False).double()  # Only 0 2 1 0 2 1 0 …
    mask = torch.tensor([[1, 1], [1, 1], [1, 0], [1, 0]]).bool()
    for cost in COSTS.values():
        tags, risk = head.minimum_risk(EMISSIONS[:, :2], mask, cost=cost)
        assert tags.t().tolist() == [[0, 2, 1, 0], [-100] * 4]
        assert risk.tolist() == pytest.approx([0.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
@pytest.mark.parametrize("name", ("crf", "crf-constrained"))
def test_nan_is_no_impossible_sequence(name: str, cost: Cost) -> None:
    emissions = EMISSIONS.clone()
    emissions[0, 1] = torch.nan
    with pytest.raises(ValueError, match=r"^`emissions` must contain neither NaN"):
        make(name).decode(emissions, MASK, cost=cost)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
def test_risks_are_between_0_and_1_in_float32(cost: Cost) -> None:
    head = make("crf").float()
    emissions = 300 * torch.randn(40, 60, 3, generator=torch.Generator().manual_seed(0))
    _, risk = head.minimum_risk(emissions, cost=cost, candidates=2, num_samples=2)
    assert risk.dtype == torch.float32
    assert float(risk.min()) >= 0 and float(risk.max()) <= 1


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    (
        ({"cost": "f2"}, ValueError, r"^`cost` must be one of 'zero-one', "),
        ({"cost": "span-f1"}, ValueError, r"^`cost` must come with the names of the tags, got 'span-f1'; pass .*SpanF1"),
        ({"cost": SpanF1(["O", "B"])}, ValueError, r"^`names` must have one name for each of 3 tags, got 2"),
        ({"cost": "edit", "candidates": 0}, ValueError, r"^`candidates` must be an integer of at least 1, got 0; "),
        ({"cost": "edit", "num_samples": 1.5}, ValueError, r"^`num_samples` must be an integer of at least 0, got 1.5; "),
        ({"cost": "edit", "temperature": 0.0}, ValueError, r"^`temperature` must be a positive number, got 0.0; "),
        ({"cost": "edit", "width": 3}, ValueError, r"^`width` must be None with `cost`, got 3; "),
        ({"candidates": 3}, TypeError, r"^`cost` must be passed with `candidates`, got None; "),
    ),
)
def test_messages(options: dict[str, object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make("crf").decode(EMISSIONS, MASK, **options)
