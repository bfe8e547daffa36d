"""The compiled kernel for automata against the recursions in torch operations, and against enumeration of all paths."""

import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from linearcore.kernels import _automaton_paths, best_path, has_compiled_kernels, path_logsumexp
from linearcore.structures import Automaton
from linearcore.structures.automata import Plan
from tests.automata import Case, cases, every_score

pytestmark = pytest.mark.skipif(not has_compiled_kernels(), reason="built without a C compiler")

DTYPES = (torch.float32, torch.float64)
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)
TOLERANCE = {torch.float32: {"rtol": 1e-5, "atol": 1e-5}, torch.float64: {"rtol": 1e-12, "atol": 1e-12}}
CHAIN = Automaton.from_chain(12, 9)


@pytest.fixture(autouse=True)
def restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def plan_of(automaton: Automaton) -> Plan:
    return automaton.plan(torch.device("cpu"))


def value_and_gradient(scores: Tensor, automaton: Automaton, backend: str) -> tuple[Tensor, Tensor]:
    """Returns log Z and a gradient with a factor for each row."""
    leaf = scores.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    values = path_logsumexp(leaf, plan_of(automaton), backend)
    (gradient,) = torch.autograd.grad(values, leaf, torch.arange(1, len(values) + 1, dtype=values.dtype))
    return values.detach(), gradient


def assert_same(scores: Tensor, automaton: Automaton) -> None:
    """Asserts that log Z, its gradient and the best path are those of the torch operations."""
    for found, expected in zip(
        value_and_gradient(scores, automaton, "compiled"), value_and_gradient(scores, automaton, "eager"), strict=True
    ):
        torch.testing.assert_close(found, expected, **TOLERANCE[scores.dtype])
    plan = plan_of(automaton)
    arcs, best = best_path(scores, plan)
    expected_arcs, expected_best = _automaton_paths._best_path(scores, plan)
    assert torch.equal(best, expected_best)
    assert torch.equal(arcs, expected_arcs)


@settings(max_examples=60)
@given(cases(), st.sampled_from(DTYPES), st.integers(1, 2), st.booleans())
def test_results_are_those_of_the_torch_operations(case: Case, dtype: torch.dtype, threads: int, has_ties: bool) -> None:
    torch.set_num_threads(threads)
    scores = case.scores.round().to(dtype) if has_ties else case.scores.to(dtype)
    if scores.numel():
        assert_same(scores, case.automaton)


@settings(max_examples=30)
@given(cases().filter(lambda case: case.scores.numel() > 0))
def test_log_z_is_that_of_all_paths(case: Case) -> None:
    found = path_logsumexp(case.scores, plan_of(case.automaton), "compiled")
    torch.testing.assert_close(found, every_score(case).logsumexp(0))


@both_dtypes
@pytest.mark.parametrize("batch", (1, 3, 4, 8, 9, 33))
@pytest.mark.parametrize("threads", (1, 2))
def test_any_batch_and_number_of_threads(dtype: torch.dtype, batch: int, threads: int) -> None:
    torch.set_num_threads(threads)
    stream = torch.Generator().manual_seed(batch)
    scores = 3 * torch.randn(batch, CHAIN.num_arcs, generator=stream, dtype=torch.float64)
    scores[torch.rand(scores.shape, generator=stream) < 0.1] = -math.inf
    assert_same(scores.to(dtype), CHAIN)


@both_dtypes
def test_a_batch_above_the_least_work_for_threads(dtype: torch.dtype) -> None:
    chain, stream = Automaton.from_chain(20, 12), torch.Generator().manual_seed(0)
    scores = torch.randn(40, chain.num_arcs, generator=stream, dtype=dtype)
    torch.set_num_threads(1)
    one = value_and_gradient(scores, chain, "compiled")
    torch.set_num_threads(2)
    two = value_and_gradient(scores, chain, "compiled")
    assert all(map(torch.equal, one, two))


@both_dtypes
@pytest.mark.parametrize("layout", ("transposed", "every second", "one row"))
def test_strided_scores(dtype: torch.dtype, layout: str) -> None:
    stream = torch.Generator().manual_seed(0)
    scores = torch.randn(2 * CHAIN.num_arcs, 10, generator=stream, dtype=dtype)
    strided = {
        "transposed": scores[: CHAIN.num_arcs].t(),
        "every second": scores.view(10, -1)[:, ::2],
        "one row": scores.view(10, -1)[:1, : CHAIN.num_arcs].expand(10, -1),
    }[layout]
    assert not strided.is_contiguous()
    assert_same(strided, CHAIN)


@both_dtypes
def test_parallel_arcs_with_ties_and_one_arc(dtype: torch.dtype) -> None:
    parallel = Automaton.from_arcs([(0, 1, 0)] * 11 + [(1, 2, 0)] * 3 + [(0, 2, 1)], final=[2, 1])
    assert_same(torch.zeros(5, parallel.num_arcs, dtype=dtype), parallel)
    assert_same(torch.tensor([[2.0], [-math.inf]], dtype=dtype), Automaton.from_arcs([(0, 1, 0)], final=[1]))


def test_shuffled_arcs() -> None:
    """Arcs that are not in the order of their targets are copied one by one."""
    order = torch.randperm(CHAIN.num_arcs, generator=torch.Generator().manual_seed(0))
    arcs = torch.stack([CHAIN.source, CHAIN.target, CHAIN.label], -1)[order]
    shuffled = Automaton.from_arcs(arcs.tolist(), CHAIN.final.tolist())
    assert_same(torch.randn(9, CHAIN.num_arcs, generator=torch.Generator().manual_seed(1)), shuffled)


@both_dtypes
def test_no_path_and_underflow(dtype: torch.dtype) -> None:
    scores = torch.zeros(3, CHAIN.num_arcs, dtype=dtype)
    scores[0] = -math.inf
    scores[1, ::2] = -1e4
    values, gradient = value_and_gradient(scores, CHAIN, "compiled")
    assert values[0] == -math.inf and not gradient[0].any()
    assert bool(gradient.isfinite().all())
    assert_same(scores, CHAIN)


@both_dtypes
@pytest.mark.parametrize("value", (math.inf, math.nan))
def test_infinite_scores_fall_back(dtype: torch.dtype, value: float) -> None:
    scores = torch.zeros(3, CHAIN.num_arcs, dtype=dtype)
    scores[1, 40] = value
    for backend in ("compiled", "auto"):
        found, expected = (path_logsumexp(scores, plan_of(CHAIN), choice) for choice in (backend, "eager"))
        torch.testing.assert_close(found, expected, equal_nan=True)
    arcs, best = best_path(scores, plan_of(CHAIN))
    expected_arcs, expected_best = _automaton_paths._best_path(scores, plan_of(CHAIN))
    assert torch.equal(arcs, expected_arcs)
    torch.testing.assert_close(best, expected_best, equal_nan=True)


@both_dtypes
def test_a_sum_that_overflows_falls_back(dtype: torch.dtype) -> None:
    scores = torch.full((2, CHAIN.num_arcs), torch.finfo(dtype).max / 2, dtype=dtype)
    found, expected = (path_logsumexp(scores, plan_of(CHAIN), backend) for backend in ("auto", "eager"))
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_a_second_backward_pass_and_gradients_of_gradients() -> None:
    scores = torch.randn(2, CHAIN.num_arcs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaf = scores.requires_grad_()
    values = path_logsumexp(leaf, plan_of(CHAIN), "compiled")
    first, second = (torch.autograd.grad(values.sum(), leaf, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    expected = torch.autograd.grad(path_logsumexp(leaf, plan_of(CHAIN), "reference").sum(), leaf, create_graph=True)[0]
    (found,) = torch.autograd.grad(values.sum(), leaf, create_graph=True)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    second_order = [torch.autograd.grad((part * weight).sum(), leaf)[0] for part in (found, expected)]
    torch.testing.assert_close(*second_order)


def test_transforms_use_the_reference() -> None:
    scores = torch.randn(3, CHAIN.num_arcs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = torch.func.grad(lambda leaf: path_logsumexp(leaf, plan_of(CHAIN)).sum())(scores)
    torch.testing.assert_close(found, value_and_gradient(scores, CHAIN, "compiled")[1] / torch.tensor([[1.0], [2.0], [3.0]]))
