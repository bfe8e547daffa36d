"""Compiled chain kernels against the other implementations: CRF, searches, and local losses."""

import copy
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from linearcore import ChainCRF, LinearCore, LinearCoreChain
from linearcore.forms import Centered, Form, Labels, LogOdds, Pairwise, row_losses
from linearcore.heads import _linear_core
from linearcore.kernels import (
    _kbest,
    _viterbi,
    compiled_local,
    crf_losses,
    has_compiled_kernels,
    kbest,
    log_partition,
    viterbi,
)
from linearcore.kernels.compiled import compiled_crf, compiled_search
from linearcore.structures import Chain, Sites, path_score
from tests.chains import Case, ragged, random_case

pytestmark = pytest.mark.skipif(not has_compiled_kernels(), reason="built without a C compiler")

FORMS = (LogOdds(), Pairwise(), Centered(), Pairwise(normalize=False))
PHI = LinearCore()
LENGTHS = (7, 3, 0, 1)
MASKS = {
    "full": torch.ones(7, 4, dtype=torch.bool),
    "suffix": ragged(LENGTHS),
    "holes": torch.rand(7, 4, generator=torch.Generator().manual_seed(1)) < 0.6,
}
both_dtypes = pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
all_masks = pytest.mark.parametrize("mask", MASKS)
some_tags = pytest.mark.parametrize("num_tags", (1, 2, 17, 50))
all_forms = pytest.mark.parametrize("form", FORMS, ids=str)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def problem(num_tags: int, mask: str, *, forbids: bool = False) -> tuple[Case, Tensor, Sites]:
    """A case with NaN where masked, tags, and sites. With `forbids` a third of the transitions that no tags use is −inf."""
    case = random_case(num_tags, 7, 4, num_tags, MASKS[mask])
    sites = Sites.of(case.mask, is_full=mask == "full")
    stream = torch.Generator().manual_seed(2)
    tags = torch.randint(num_tags, (7, 4), generator=stream).masked_fill(~case.mask, 0)
    if forbids:
        is_used = torch.zeros(num_tags, num_tags, dtype=torch.bool)
        is_used[sites.before(tags)[case.mask], tags[case.mask]] = True
        case.chain.transitions[~is_used & (torch.rand(is_used.shape, generator=stream) < 0.3)] = -math.inf
    emissions = case.emissions.masked_fill(~case.mask.unsqueeze(-1), math.nan)
    return case._replace(emissions=emissions), tags, sites


def mask_of(sites: Sites) -> Tensor | None:
    return None if sites.is_full else sites.mask


def with_gradients(function: Callable[[Tensor, Chain], Tensor], case: Case, dtype: torch.dtype) -> list[Tensor]:
    """The values, and the gradients of a weighted sum of them."""
    leaves = [part.to(dtype).requires_grad_() for part in (case.emissions, *case.chain)]
    values = function(leaves[0], Chain(*leaves[1:]))
    weights = torch.rand(values.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype)
    return [values.detach(), *torch.autograd.grad((values * weights).sum(), leaves, materialize_grads=True)]


def agree(actual: list[Tensor], expected: list[Tensor], dtype: torch.dtype) -> None:
    tolerance = 1e-10 if dtype == torch.float64 else 1e-5
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=tolerance, atol=tolerance)


def computed(value: Tensor | None) -> Tensor:
    assert value is not None
    return value


def crf_reference(tags: Tensor, sites: Sites) -> Callable[[Tensor, Chain], Tensor]:
    def losses(emissions: Tensor, chain: Chain) -> Tensor:
        emissions = sites.zero_masked(emissions)
        return log_partition(emissions, chain, sites.mask, "reference") - path_score(emissions, chain, tags, sites)

    return losses


def compiled_losses(tags: Tensor, sites: Sites) -> Callable[[Tensor, Chain], Tensor]:
    reference = crf_reference(tags, sites)
    return lambda emissions, chain: computed(compiled_crf(emissions, chain, mask_of(sites), tags, reference))


def local(form: Form, tags: Tensor, sites: Sites, backend: str, unary: float = 0.0) -> Callable[[Tensor, Chain], Tensor]:
    def losses(emissions: Tensor, chain: Chain) -> Tensor:
        if backend == "compiled":
            code = form.loss_code(PHI)
            assert code is not None
            reference = local(form, tags, sites, "reference", unary)
            values = computed(compiled_local(code, emissions, chain, tags, mask_of(sites), reference, unary))
        else:
            emissions = sites.zero_masked(emissions)
            values = (1 - unary) * form.local_losses(PHI, emissions, chain, tags, sites, backend)
            if unary:
                rows, labels = emissions.flatten(0, 1), Labels(tags.flatten())
                values = values + unary * row_losses(form, PHI, rows, labels, backend).view(tags.shape)
        return values.masked_fill(~sites.mask, 0.0)

    return losses


@both_dtypes
@all_masks
@some_tags
def test_crf(num_tags: int, mask: str, dtype: torch.dtype) -> None:
    case, tags, sites = problem(num_tags, mask)
    expected = with_gradients(crf_reference(tags, sites), case, torch.float64)
    agree(with_gradients(compiled_losses(tags, sites), case, dtype), expected, dtype)
    through_kernels = with_gradients(lambda e, chain: crf_losses(e, chain, tags, sites), case, dtype)
    agree(through_kernels, expected, dtype)


@all_masks
def test_crf_with_forbidden_transitions(mask: str) -> None:
    case, tags, sites = problem(17, mask, forbids=True)
    found = with_gradients(compiled_losses(tags, sites), case, torch.float64)
    agree(found, with_gradients(crf_reference(tags, sites), case, torch.float64), torch.float64)
    assert bool((found[3][case.chain.transitions == -math.inf] == 0).all())


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("value", (math.nan, math.inf, 1e30))
def test_huge_infinite_and_nan_scores_of_a_crf(value: float, part: int) -> None:
    case, tags, sites = problem(5, "full")
    (case.emissions, *case.chain)[part].view(-1)[-2] = value
    if not value < math.inf:
        assert compiled_crf(case.emissions, case.chain, None, tags, crf_reference(tags, sites)) is None
    expected = log_partition(case.emissions, case.chain, case.mask, "eager")
    torch.testing.assert_close(log_partition(case.emissions, case.chain, case.mask), expected, equal_nan=True)


def test_underflow_and_chains_without_a_path_are_left_to_others() -> None:
    case, tags, sites = problem(5, "full")
    for blocked in (-math.inf, -1e4):
        chain = case.chain._replace(transitions=torch.full((5, 5), blocked).fill_diagonal_(0.0).double())
        end = torch.tensor([0.0, *[-math.inf] * 4]).double()
        emissions = case.emissions.clone()
        emissions[:3, 0, 0] = -1e4
        chain = chain._replace(end=end)
        if blocked == -math.inf:
            emissions[3, 0, 0] = -math.inf
        assert compiled_crf(emissions, chain, None, None, crf_reference(tags, sites)) is None
        expected = log_partition(emissions, chain, case.mask, "reference")
        torch.testing.assert_close(log_partition(emissions, chain, case.mask), expected)


@both_dtypes
@all_masks
@some_tags
@pytest.mark.parametrize("k", (None, 1, 4, 20))
def test_searches_have_the_same_results(
    num_tags: int, mask: str, k: int | None, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, _, sites = problem(num_tags, mask, forbids=num_tags > 2)
    case = case.to(dtype)
    case.chain.start[0] = -math.inf
    found = compiled_search(case.emissions, case.chain, mask_of(sites), k)
    assert found is not None
    for module in (_viterbi, _kbest):
        monkeypatch.setattr(module, "compiled_search", lambda *arguments: None)
    arguments = (case.emissions, case.chain, sites)
    expected = viterbi(*arguments) if k is None else kbest(*arguments, k)
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_viterbi_takes_the_first_of_equal_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    case, _, sites = problem(17, "full")
    emissions, *parts = (part.round() for part in (case.emissions, *case.chain))
    found = viterbi(emissions, Chain(*parts), sites)
    monkeypatch.setattr(_viterbi, "compiled_search", lambda *arguments: None)
    assert all(map(torch.equal, found, viterbi(emissions, Chain(*parts), sites)))


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("k", (None, 3))
@pytest.mark.parametrize("value", (math.nan, math.inf))
def test_searches_leave_nan_and_inf_to_others(part: int, k: int | None, value: float) -> None:
    case, _, _ = problem(5, "full")
    (case.emissions, *case.chain)[part].view(-1)[-1] = value
    assert compiled_search(case.emissions, case.chain, None, k) is None


@both_dtypes
@all_masks
@all_forms
@pytest.mark.parametrize("num_tags", (2, 17, 50))
@pytest.mark.parametrize("unary", (0.0, 0.3))
def test_local_losses(unary: float, num_tags: int, form: Form, mask: str, dtype: torch.dtype) -> None:
    case, tags, sites = problem(num_tags, mask)
    expected = with_gradients(local(form, tags, sites, "reference", unary), case, torch.float64)
    agree(with_gradients(local(form, tags, sites, "compiled", unary), case, dtype), expected, dtype)


def test_local_losses_of_many_tags() -> None:
    case, tags, sites = problem(450, "full")
    expected = with_gradients(local(LogOdds(), tags, sites, "reference", 0.3), case, torch.float64)
    found = with_gradients(local(LogOdds(), tags, sites, "compiled", 0.3), case, torch.float32)
    agree(found, expected, torch.float32)


@all_masks
@all_forms
@pytest.mark.parametrize("num_tags", (3, 17))
def test_local_losses_with_forbidden_transitions(num_tags: int, form: Form, mask: str) -> None:
    case, tags, sites = problem(num_tags, mask, forbids=True)
    case.emissions[:, :, 0].masked_fill_(tags != 0, -math.inf)  # Masked out in the loss of the emissions as well.
    found = with_gradients(local(form, tags, sites, "compiled", 0.3), case, torch.float64)
    agree(found, with_gradients(local(form, tags, sites, "eager", 0.3), case, torch.float64), torch.float64)
    assert bool((found[3][case.chain.transitions == -math.inf] == 0).all())


@all_forms
@pytest.mark.parametrize("value", (math.nan, math.inf, -math.inf))
def test_local_losses_leave_labels_that_are_not_finite_to_others(form: Form, value: float) -> None:
    case, tags, sites = problem(5, "full")
    case.emissions[2, 1, tags[2, 1]] = value
    code = form.loss_code(PHI)
    assert code is not None
    for unary in (0.0, 0.3):
        reference = local(form, tags, sites, "reference", unary)
        assert compiled_local(code, case.emissions, case.chain, tags, None, reference, unary) is None
    head = LinearCoreChain(5, form=form, unary=0.3, validate=False).double()
    losses = head.loss(case.emissions, tags, reduction="none")
    expected = head._site_losses(case.emissions, tuple(head.chain()), tags, sites, torch.float64, "eager").sum(0)
    torch.testing.assert_close(losses, expected, equal_nan=True)


DIFFERENTIABLE = {
    "crf": compiled_losses,
    "local": lambda tags, sites: local(LogOdds(), tags, sites, "compiled"),
    "local and unary": lambda tags, sites: local(LogOdds(), tags, sites, "compiled", 0.3),
}
each_loss = pytest.mark.parametrize("loss", DIFFERENTIABLE)


@each_loss
@all_masks
def test_second_derivatives(loss: str, mask: str) -> None:
    case, tags, sites = problem(3, mask)
    emissions = sites.zero_masked(case.emissions)
    function = DIFFERENTIABLE[loss](tags, sites)
    inputs = [part.clone().requires_grad_() for part in (emissions, *case.chain)]
    assert torch.autograd.gradgradcheck(lambda e, *parts: function(e, Chain(*parts)).sum(), inputs)


@each_loss
def test_frozen_and_strided_inputs_and_a_second_backward_pass(loss: str) -> None:
    case, tags, sites = problem(17, "holes")
    function = DIFFERENTIABLE[loss](tags, sites)
    expected = with_gradients(function, case, torch.float64)
    for strided in (
        case.emissions.transpose(0, 1).contiguous().transpose(0, 1),
        case.emissions.transpose(0, 2).contiguous().transpose(0, 2),
    ):
        columns = case.chain.transitions.t().contiguous().t()
        chain = Chain(case.chain.start, columns, case.chain.end.repeat_interleave(2)[::2])
        agree(with_gradients(function, Case(strided, chain, case.mask), torch.float64), expected, torch.float64)
    for trained in range(4):
        leaves = [part.detach().clone() for part in (case.emissions, *case.chain)]
        leaves[trained].requires_grad_()
        values = function(leaves[0], Chain(*leaves[1:]))
        weights = torch.rand(values.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        for _ in range(2):
            (gradient,) = torch.autograd.grad((values * weights).sum(), leaves[trained], retain_graph=True)
            torch.testing.assert_close(gradient, expected[1 + trained], rtol=1e-12, atol=1e-12)


@each_loss
def test_results_do_not_depend_on_the_number_of_threads(loss: str) -> None:
    case = random_case(5, 40, 6, 50)
    tags = torch.randint(50, (40, 6), generator=torch.Generator().manual_seed(0))
    function = DIFFERENTIABLE[loss](tags, Sites.of(case.mask, is_full=True))
    found = []
    for threads in (1, 2, 2):
        torch.set_num_threads(threads)
        found.append(with_gradients(function, case, torch.float32))
    assert all(torch.equal(one, other) for results in found[1:] for one, other in zip(found[0], results, strict=True))


def uses_kernel(head: LinearCoreChain, emissions: Tensor, tags: Tensor, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the loss and its gradients come from the kernel; compares them with the factored definition in float64."""
    calls = []

    def spy(*arguments: object) -> Tensor | None:
        calls.append(compiled_local(*arguments))
        return calls[-1]

    monkeypatch.setattr(_linear_core, "compiled_local", spy)
    exact = copy.deepcopy(head).double()
    leaves = emissions.clone().requires_grad_(), emissions.double().requires_grad_()
    head.loss(leaves[0], tags, reduction="none").square().sum().backward()
    torch.func.vmap(lambda e, t: exact.loss(e.unsqueeze(0), t.unsqueeze(0), reduction="sum").square())(
        leaves[1], tags
    ).sum().backward()
    pairs = [leaves, *zip(head.parameters(), exact.parameters(), strict=True)]
    for found, expected in pairs:
        torch.testing.assert_close(found.grad.double(), expected.grad, rtol=1e-4, atol=1e-4)
    return len(calls) == 1 and calls[0] is not None


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
@pytest.mark.parametrize("unary", (0.0, 0.5))
def test_low_rank_heads(form: str, unary: float, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = torch.Generator().manual_seed(0)
    for num_tags, is_small in ((18, True), (40, False)):  # There are 30 positions.
        head = LinearCoreChain(num_tags, rank=3, unary=unary, form=form, batch_first=True, strict_mask=False)
        tags = torch.randint(num_tags, (5, 6), generator=stream)
        tags[1, 2:], tags[2] = -100, -100
        emissions = torch.randn(5, 6, num_tags, generator=stream).masked_fill((tags == -100).unsqueeze(-1), math.nan)
        assert uses_kernel(head, emissions, tags, monkeypatch) == is_small


def test_low_rank_heads_under_autocast_round_the_product() -> None:
    head, emissions = LinearCoreChain(18, rank=3), torch.randn(6, 5, 18)
    assert head._is_compiled(emissions, head._factors_like(emissions), torch.float32)
    assert not head._is_compiled(emissions, head._factors_like(emissions), torch.bfloat16)


def test_tags_out_of_range_are_left_to_others() -> None:
    case, tags, sites = problem(5, "full")
    tags[0, 0] = 5
    code = LogOdds().loss_code(PHI)
    assert code is not None
    assert compiled_crf(case.emissions, case.chain, None, tags, crf_reference(tags, sites)) is None
    assert compiled_local(code, case.emissions, case.chain, tags, None, local(LogOdds(), tags, sites, "reference")) is None


@pytest.mark.parametrize("shape", ((0, 3, 4), (3, 0, 4)))
def test_empty_batches(shape: tuple[int, ...]) -> None:
    emissions, chain = torch.zeros(shape), Chain(torch.zeros(4), torch.zeros(4, 4), torch.zeros(4))
    sites, tags = Sites.of(torch.ones(shape[:2], dtype=torch.bool)), torch.zeros(shape[:2], dtype=torch.long)
    assert torch.equal(crf_losses(emissions, chain, tags, sites), torch.zeros(shape[1]))
    assert viterbi(emissions, chain, sites)[0].shape == shape[:2] and kbest(emissions, chain, sites, 2)[1].shape == (
        2,
        shape[1],
    )


def test_huge_emissions_keep_their_differences() -> None:
    case, tags, sites = problem(5, "full")
    case = case._replace(emissions=case.emissions.round() * 1e4)
    expected = with_gradients(local(Pairwise(), tags, sites, "eager"), case, torch.float32)
    agree(
        with_gradients(local(Pairwise(), tags, sites, "compiled"), case, torch.float32),
        [x.double() for x in expected],
        torch.float32,
    )
    torch.testing.assert_close(
        log_partition(case.emissions, case.chain, case.mask),
        log_partition(case.emissions, case.chain, case.mask, "reference"),
    )


@pytest.mark.parametrize("head", (ChainCRF(4), LinearCoreChain(4)), ids=("crf", "lc"))
def test_tags_that_change_before_the_backward_pass_are_refused(head: ChainCRF | LinearCoreChain) -> None:
    tags = torch.zeros(5, 2, dtype=torch.long)
    loss = head.loss(torch.randn(5, 2, 4), tags)
    tags.fill_(2**40)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_decoding_does_not_depend_on_the_default_device() -> None:
    head, emissions = ChainCRF(4), torch.randn(5, 2, 4)
    expected = head.viterbi(emissions)
    torch.set_default_device("meta")
    try:
        tags, scores = head.viterbi(emissions)
    finally:
        torch.set_default_device(None)
    assert torch.equal(tags, expected[0]) and torch.equal(scores, expected[1])
