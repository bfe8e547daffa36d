"""log Z and its derivatives against all sequences written out; when the scaled recursion is trusted; packed products."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from linearcore._torch import packed_linear
from linearcore.kernels import _partition, _rescaled, log_partition, posterior
from linearcore.structures import Chain
from tests.chains import Case, cases, every_sequence, log_sum, marginals, ragged, random_case

drawn = settings(max_examples=60)
both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))
both_dtypes = pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=("float32", "float64"))


@pytest.fixture
def plain_runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that the plain twin was run."""
    runs: list[str] = []
    twin = _partition._log_domain

    def counted(*arguments: object, **options: object) -> Tensor:
        runs.append("plain")
        return twin(*arguments, **options)

    monkeypatch.setattr(_partition, "_log_domain", counted)
    return runs


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-12)


def upstream(case: Case) -> Tensor:
    """Another weight for each chain."""
    return torch.arange(1, case.mask.shape[1] + 1, dtype=case.emissions.dtype).cos()


def gradients(values: Tensor, leaves: Case, weights: Tensor) -> tuple[Tensor, ...]:
    """Of all scores; zero for transitions where no chain has two tags."""
    return torch.autograd.grad(values, leaves.scores, weights, allow_unused=True, materialize_grads=True)


def with_gradients(case: Case, backend: str = "auto") -> tuple[Tensor, ...]:
    """log Z and the gradients of a weighted sum of it."""
    leaves = case.leaves()
    values = log_partition(leaves.emissions, leaves.chain, case.mask, backend)
    return values.detach(), *gradients(values, leaves, upstream(case))


def by_hand(case: Case) -> tuple[Tensor, ...]:
    """The same from the written-out sum, in float64."""
    leaves = case.to(torch.float64).leaves()
    values = log_sum(leaves)
    return values.detach(), *gradients(values, leaves, upstream(leaves))


def agree(case: Case, backend: str = "auto") -> None:
    """As well as the dtype can: numbers as large as the scores' are lost in the log domain, where α is kept."""
    eps = torch.finfo(case.emissions.dtype).eps
    largest = sum(part[part.isfinite()].abs().max().item() for part in case.scores if part.isfinite().any())
    lost = 8 * eps * len(case.mask) * (1 + largest)
    found, right = with_gradients(case, backend), by_hand(case)
    assert found[0].dtype == case.emissions.dtype
    torch.testing.assert_close(found[0].double(), right[0], rtol=8 * eps, atol=lost)
    for gradient, expected in zip(found[1:], right[1:], strict=True):
        torch.testing.assert_close(gradient.double(), expected, rtol=0, atol=lost)


@both_backends
@given(case=cases())
@drawn
def test_value_is_the_sum_over_all_sequences(case: Case, backend: str) -> None:
    values = log_partition(case.emissions, case.chain, case.mask, backend)
    for row, value in enumerate(values.tolist()):
        total = math.log(math.fsum(math.exp(score) for score, _ in every_sequence(case, row)))
        assert value == pytest.approx(total, rel=1e-12, abs=1e-12)


@both_backends
@given(case=cases())
@drawn
def test_gradients_are_those_of_the_written_out_sum(case: Case, backend: str) -> None:
    for found, right in zip(with_gradients(case, backend), by_hand(case), strict=True):
        close(found, right)


@given(case=cases())
@drawn
def test_posterior_is_the_share_of_the_sequences(case: Case) -> None:
    found = posterior(case.emissions, case.chain, case.mask)
    close(found, marginals(case))
    close(found.sum(-1), case.mask.double())
    assert (found[~case.mask] == 0).all()


def test_posterior_needs_and_leaves_no_graph() -> None:
    case = random_case(0, 3, 2, 3).leaves()
    with torch.no_grad():
        found = posterior(case.emissions, case.chain, case.mask)
    assert not found.requires_grad and all(part.grad is None for part in case.scores)
    close(found, marginals(case))


@pytest.mark.parametrize("offset", (0.0, 400.0), ids=("certain", "uncertain"))
def test_only_the_gradients_that_are_wanted(offset: float) -> None:
    case = random_case(1, 4, 2, 3, ragged((4, 2)))
    case.emissions[0, :, 0] += offset
    case.emissions[-1, :, 1] += offset
    _, *right = by_hand(case)
    for wanted in itertools.product((False, True), repeat=4):
        scores = [part.clone().requires_grad_(want) for part, want in zip(case.scores, wanted, strict=True)]
        values = log_partition(scores[0], Chain(*scores[1:]), case.mask)
        assert values.requires_grad == any(wanted)
        if any(wanted):
            values.backward(upstream(case))
        for leaf, gradient, want in zip(scores, right, wanted, strict=True):
            assert (leaf.grad is not None) == want
            if want:
                torch.testing.assert_close(leaf.grad, gradient, rtol=1e-9, atol=1e-11)


@both_backends
@pytest.mark.parametrize("offset", (0.0, 1000.0))
def test_second_derivatives(backend: str, offset: float) -> None:
    """With a hole, a ragged end and a forbidden transition; far out the recursion gives way to its twin."""
    mask = torch.tensor([[True, True], [False, True], [True, True], [True, False]])
    case = random_case(2, 4, 2, 3, mask)
    no = torch.zeros(3, 3, dtype=torch.bool)
    no[0, 2] = True

    def values(emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor) -> Tensor:
        chain = Chain(start + offset, transitions.masked_fill(no, -math.inf), end)
        return log_partition(emissions, chain, mask, backend)

    leaves = case.leaves().scores
    assert torch.autograd.gradcheck(values, leaves, atol=1e-6)
    assert torch.autograd.gradgradcheck(values, leaves, atol=1e-6)


def test_second_derivatives_without_transitions() -> None:
    leaves = random_case(2, 1, 2, 3).leaves()
    assert torch.autograd.gradgradcheck(
        lambda *scores: log_partition(scores[0], Chain(*scores[1:]), leaves.mask), leaves.scores
    )


def test_uncertain_without_transitions(plain_runs: list[str]) -> None:
    case = random_case(2, 1, 2, 3)
    case.emissions[..., 1:] -= 500
    case.chain.start[0] -= 500
    agree(case.to(torch.float32), "eager")
    assert plain_runs


@both_dtypes
@pytest.mark.parametrize("spread", (1.0, 5.0))
def test_ordinary_scores_are_trusted_and_right(dtype: torch.dtype, spread: float, plain_runs: list[str]) -> None:
    case = random_case(3, 40, 4, 50, ragged((40, 33, 7, 1))).times(spread)
    found = with_gradients(case.to(dtype), "eager")
    assert plain_runs == []
    right = with_gradients(case, "reference")
    tolerance = 100 * torch.finfo(dtype).eps
    torch.testing.assert_close(found[0].double(), right[0], rtol=tolerance, atol=0)
    for gradient, expected in zip(found[1:], right[1:], strict=True):
        torch.testing.assert_close(gradient.double(), expected, rtol=0, atol=10 * tolerance)


@both_dtypes
@pytest.mark.parametrize("never", (-math.inf, -1e4))
def test_what_is_forbidden_costs_no_trust(dtype: torch.dtype, never: float, plain_runs: list[str]) -> None:
    case = random_case(3, 40, 4, 50, ragged((40, 33, 7, 1)))
    stream = torch.Generator().manual_seed(0)
    for part in case.chain:
        part[torch.rand(part.shape, generator=stream) < 0.5] = never
    found = with_gradients(case.to(dtype), "eager")
    assert plain_runs == []
    for actual, right in zip(found, with_gradients(case, "reference"), strict=True):
        torch.testing.assert_close(actual.double(), right, rtol=1e-5, atol=1e-5)


def test_masks_that_are_known_to_be_full() -> None:
    case = random_case(4, 7, 3, 5)
    results = []
    for is_full in (False, True):
        leaves = case.leaves()
        values = log_partition(leaves.emissions, leaves.chain, case.mask, is_full=is_full)
        results.append((values, *gradients(values, leaves, upstream(case))))
    for found, right in zip(*results, strict=True):
        close(found, right)


@both_dtypes
@pytest.mark.parametrize("forbids", (False, True), ids=("free", "forbidden"))
@pytest.mark.parametrize("seed", range(4))
def test_scores_of_ten_thousand(dtype: torch.dtype, forbids: bool, seed: int, plain_runs: list[str]) -> None:
    emissions, chain, mask = random_case(seed, 4, 3, 4, ragged((4, 3, 1)))
    # Multiples of 100, which add up exactly in float32.
    emissions, *parts = ((100 * part.clamp(-1, 1)).round() for part in (emissions, *chain))
    case = Case(emissions, Chain(*parts), mask).times(100.0)
    if forbids:
        case.chain.transitions[[0, 1, 2], [1, 1, 3]] = -math.inf
        case.chain.start[3] = case.chain.end[0] = -math.inf
    assert max(part[part.isfinite()].abs().max() for part in case.scores) == 1e4
    agree(case.to(dtype))
    assert plain_runs


def torn(gap: float) -> Case:
    """The first position speaks for tag 0 by `gap`, the others together for tag 1 by one less; no tag wants to change."""
    emissions = torch.zeros(4, 1, 2, dtype=torch.float64)
    emissions[0, 0, 0] = gap
    emissions[1:, 0, 1] = (gap - 1) / 3
    transitions = torch.tensor([[0.0, -10.0 * gap], [-10.0 * gap, 0.0]], dtype=torch.float64)
    ends = torch.zeros(2, dtype=torch.float64)
    return Case(emissions, Chain(ends, transitions, ends), ragged((4,)))


@pytest.mark.parametrize(("dtype", "gap"), ((torch.float32, 150.0), (torch.float64, 1500.0)), ids=("float32", "float64"))
def test_a_tag_that_underflows_before_it_matters(
    dtype: torch.dtype, gap: float, plain_runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the recursion lost it cannot know, but it knows that something may be lost."""
    case, right = torn(gap), gap + math.log1p(math.exp(-1))
    assert log_partition(*case.to(dtype)).item() == pytest.approx(right, rel=2e-7)
    assert plain_runs == ["plain"]
    agree(case.to(dtype))
    share = 1 / (1 + math.exp(-1))
    shares = torch.tensor([share, 1 - share], dtype=torch.float64).expand(4, 1, 2)
    torch.testing.assert_close(posterior(*case.to(dtype)).double(), shares, rtol=0, atol=1e-4)
    monkeypatch.setattr(_rescaled, "_underflow_is_negligible", lambda *_: torch.tensor(True))
    assert abs(log_partition(*case.to(dtype)).item() - right) > 0.3


@pytest.mark.parametrize("gap", (20.0, 60.0, 80.0, 90.0, 100.0, 104.0, 110.0))
def test_around_the_edge_of_what_can_be_trusted(gap: float) -> None:
    """From where all is normal over subnormal numbers to where nothing is left of float32."""
    agree(torn(gap).to(torch.float32))


def test_one_chain_that_is_uncertain_does_not_spoil_the_others() -> None:
    case, far = random_case(4, 4, 3, 2), torn(150.0)
    case.emissions[:, 1] = far.emissions[:, 0]
    agree(Case(case.emissions, far.chain, case.mask).to(torch.float32))


@both_dtypes
@pytest.mark.parametrize("factor", (1.0, 1000.0))
def test_one_path_is_left(dtype: torch.dtype, factor: float) -> None:
    case = random_case(5, 4, 2, 3, torch.tensor([[True, True], [True, False], [True, True], [True, True]])).times(factor)
    start, transitions, end = (torch.full_like(part, -math.inf) for part in case.chain)
    start[1], transitions[1, 2], transitions[2, 0], transitions[0, 1] = factor * torch.tensor([0.5, 1.0, -2.0, 0.25])
    end[0] = end[1] = 0.0  # The four tags are 1, 2, 0, 1 and the three are 1, 2, 0.
    case = Case(case.emissions, Chain(start, transitions, end), case.mask)
    agree(case.to(dtype))
    found = posterior(*case.to(dtype))
    expected = torch.tensor([[1, 1], [2, -1], [0, 2], [1, 0]])
    torch.testing.assert_close(found, torch.stack([(expected == tag).to(dtype) for tag in range(3)], -1))


@both_dtypes
@pytest.mark.parametrize("factor", (1.0, 3000.0))
def test_a_tag_that_is_never_reached(dtype: torch.dtype, factor: float) -> None:
    case = random_case(6, 4, 2, 3, ragged((4, 2))).times(factor)
    case.chain.start[2] = case.chain.transitions[:, 2] = -math.inf
    case.chain.end[2] = case.chain.transitions[2, 0] = 9 * factor
    agree(case.to(dtype))
    assert (posterior(*case.to(dtype))[..., 2] == 0).all()


@both_dtypes
@pytest.mark.parametrize("factor", (1.0, 3000.0))
def test_emissions_that_forbid(dtype: torch.dtype, factor: float) -> None:
    case = random_case(7, 4, 2, 3, ragged((4, 3))).times(factor)
    case.emissions[0, 0, 1] = case.emissions[2, 0, 0] = case.emissions[2, 0, 2] = case.emissions[3, 0, :2] = -math.inf
    agree(case.to(dtype))
    found = posterior(*case.to(dtype))
    assert (found[case.emissions == -math.inf] == 0).all() and found[2, 0].tolist() == [0, 1, 0]


@both_backends
def test_no_path_at_all(backend: str) -> None:
    """log 0, with gradient 0; the chain beside it has one and keeps it."""
    case = random_case(8, 3, 2, 3)
    case.emissions[1, 0] = -math.inf
    values, emissions, *chain = with_gradients(case, backend)
    assert values[0] == -math.inf and (emissions[:, 0] == 0).all()
    alone = Case(case.emissions[:, 1:], case.chain, case.mask[:, 1:])
    close(values[1:], log_sum(alone))
    right = gradients(log_sum(leaves := alone.leaves()), leaves, upstream(case)[1:])
    for found, expected in zip((emissions[:, 1:], *chain), right, strict=True):
        close(found, expected)


@given(
    case=cases(), factor=st.sampled_from((1.0, 30.0, 100.0, 1e3, 1e4)), scaled=st.sampled_from(("all", "chain", "emissions"))
)
@settings(drawn, max_examples=150)
def test_no_scale_of_scores_gives_a_wrong_number(case: Case, factor: float, scaled: str) -> None:
    far = case.times(factor)
    emissions = case.emissions if scaled == "chain" else far.emissions
    chain = case.chain if scaled == "emissions" else far.chain
    agree(Case(emissions, chain, case.mask).to(torch.float32))


@pytest.mark.parametrize("junk", (math.nan, math.inf, -math.inf, 1e38))
@pytest.mark.parametrize("backend", ("reference", "eager"))
@pytest.mark.parametrize("factor", (1.0, 3000.0), ids=("certain", "uncertain"))
def test_what_is_under_the_mask_stays_there(junk: float, backend: str, factor: float) -> None:
    mask = torch.tensor([[True, False, False], [False, True, False], [True, True, False], [True, False, False]])
    case = random_case(9, 4, 3, 3, mask).times(factor)
    clean = with_gradients(case, backend)
    case.emissions[~mask] = junk
    for found, right in zip(with_gradients(case, backend), clean, strict=True):
        assert torch.equal(found, right)
    assert (clean[1][~mask] == 0).all() and clean[0][2] == 0
    assert torch.equal(posterior(*case)[~mask], torch.zeros(int((~mask).sum()), 3).double())


@both_backends
@pytest.mark.parametrize(("length", "batch"), ((0, 3), (4, 0), (0, 0), (25, 0)))
def test_nothing_to_sum_over(length: int, batch: int, backend: str) -> None:
    case = random_case(10, length, batch, 3)
    values, *found = with_gradients(case, backend)
    assert torch.equal(values, torch.zeros(batch).double())
    assert all(torch.equal(gradient, torch.zeros_like(part)) for gradient, part in zip(found, case.scores, strict=True))
    assert posterior(*case).shape == (length, batch, 3)


def test_long_chains_lose_no_digits() -> None:
    """What is taken out at each position is added up in float64: here large numbers that cancel over a chain."""
    emissions, chain, mask = random_case(11, 800, 3, 4, ragged((800, 798, 400)))
    # Sixteenths, so that a score and a transition add up exactly in float32.
    emissions, *parts = ((16 * part).round() / 16 for part in (emissions, *chain))
    emissions[::2] += 1000
    emissions[1::2] -= 1000
    case = Case(emissions, Chain(*parts), mask)
    found = log_partition(*case.to(torch.float32)).double()
    torch.testing.assert_close(found, log_partition(*case), rtol=2e-7, atol=0)


def test_unknown_backend() -> None:
    with pytest.raises(ValueError, match=r"^`backend` must be one of 'auto', .*, got 'fast'"):
        log_partition(*random_case(0, 1, 1, 1), "fast")


# Packed products.

can_pack = pytest.mark.skipif(packed_linear(torch.ones(1, 1), 2) is None, reason="torch has no oneDNN here")
MATRIX = torch.randn(64, 57, generator=torch.Generator().manual_seed(0))


@can_pack
@pytest.mark.parametrize("matrix", (MATRIX, MATRIX.t(), MATRIX[:1], MATRIX[:, :1]), ids=("tall", "wide", "row", "column"))
@pytest.mark.parametrize("rows", (2, 5, 33))
def test_packed_products_are_products(matrix: Tensor, rows: int) -> None:
    multiply = _rescaled.Multiplier(matrix, rows, _rescaled.MIN_CALLS_TO_PACK)
    assert multiply._packed is not None
    stream = torch.Generator().manual_seed(rows)
    for _ in range(2):
        x, out = torch.randn(rows, len(matrix), generator=stream), torch.full((rows, matrix.shape[1]), math.nan)
        assert multiply(x, out=out) is out
        torch.testing.assert_close(out, torch.mm(x, matrix), rtol=1e-5, atol=1e-5)


@can_pack
@pytest.mark.parametrize(
    ("matrix", "rows", "times"),
    (
        (MATRIX, 5, _rescaled.MIN_CALLS_TO_PACK - 1),
        (MATRIX, 1, 99),
        (MATRIX, 0, 99),
        (MATRIX.double(), 5, 99),
        (MATRIX[:0], 5, 99),
    ),
    ids=("few", "one row", "no rows", "float64", "nothing"),
)
def test_what_is_not_packed(matrix: Tensor, rows: int, times: int) -> None:
    multiply = _rescaled.Multiplier(matrix, rows, times)
    assert multiply._packed is None
    x = torch.ones(rows, len(matrix), dtype=matrix.dtype)
    assert torch.equal(multiply(x, out=torch.full_like(x @ matrix, math.nan)), x @ matrix)


@pytest.mark.parametrize("missing", ("oneDNN", "_reorder_linear_weight", "_linear_pointwise"))
def test_products_where_torch_cannot_pack(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(12, 25, 3, 40, ragged((25, 24, 3))).to(torch.float32)
    right = with_gradients(case)
    if missing == "oneDNN":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    else:
        names = {"_reorder_linear_weight", "_linear_pointwise"} - {missing}
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**dict.fromkeys(names, None)))
    assert _rescaled.Multiplier(MATRIX, 5, 99)._packed is None
    for found, expected in zip(with_gradients(case), right, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@can_pack
def test_the_recursion_packs_and_is_right(plain_runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[_rescaled.Multiplier] = []

    class Seen(_rescaled.Multiplier):
        def __init__(self, matrix: Tensor, rows: int, times: int) -> None:
            super().__init__(matrix, rows, times)
            made.append(self)

    monkeypatch.setattr(_rescaled, "Multiplier", Seen)
    case = random_case(13, 30, 5, 60, ragged((30, 29, 20, 2, 1)))
    found = with_gradients(case.to(torch.float32), "eager")
    assert len(made) == 2 and all(multiply._packed is not None for multiply in made) and plain_runs == []
    for actual, right in zip(found, with_gradients(case, "reference"), strict=True):
        torch.testing.assert_close(actual.double(), right, rtol=1e-5, atol=1e-5)


def test_float32_products_are_not_rounded_by_a_global_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, seen, mm = torch.backends.mkldnn.matmul, [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda *given, **how: (seen.append(setting.fp32_precision), mm(*given, **how))[1])
    monkeypatch.setattr(_rescaled, "MIN_CALLS_TO_PACK", 10**9)
    case = random_case(0, length=4, batch=2, num_tags=3)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        emissions = case.emissions.float().requires_grad_()
        log_partition(emissions, Chain(*(part.float() for part in case.chain)), case.mask, "eager").sum().backward()
        assert set(seen) == {"ieee"} and setting.fp32_precision == "tf32"
        assert torch.get_float32_matmul_precision() == "high" and torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before)
