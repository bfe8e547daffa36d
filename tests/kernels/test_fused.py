"""What the fused kernels do beside the grid: which of them are used, large sizes, holes, ties, and faults there were once.

They run compiled on a GPU, or on the CPU in Triton's interpreter; `test_interpreted.py` starts the latter.
"""

import copy
import inspect
import math
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from torch import Tensor

import linearcore.heads._batch as batch_module
import linearcore.heads._chain as chain_module
import linearcore.kernels._backend as backend_module
import linearcore.kernels._viterbi as viterbi_module
import linearcore.kernels.fused._low_rank as low_rank_module
import linearcore.kernels.fused._max_product as max_product_module
from linearcore import ChainCRF, Hinge, LinearCoreChain, multiclass_loss
from linearcore.heads import ChainHead
from linearcore.heads._batch import IGNORED_TAG, Batch, to_batch
from linearcore.kernels import fused, fused_kernels_for, log_partition, viterbi
from linearcore.structures import Chain, Constraints, Hamming, Sites
from tests.cases import cross, each
from tests.kernels.paths import DEVICE


@pytest.fixture(autouse=True)
def tensors_on_the_device() -> Iterator[None]:
    with DEVICE:
        yield


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Filled with the names of the fused functions that were called."""
    names: set[str] = set()

    def spied(name: str) -> None:
        original = getattr(fused, name)
        monkeypatch.setattr(fused, name, lambda *given, **options: (names.add(name), original(*given, **options))[1])

    for name in fused.__all__:
        if inspect.isfunction(getattr(fused, name)):
            spied(name)
    return names


def without_fused_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (backend_module, chain_module):
        monkeypatch.setattr(module, "fused_kernels_for", lambda *_: None)


def drawn(*size: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(size, generator=torch.Generator().manual_seed(seed), device="cpu").to(DEVICE)


def close(found: Tensor, expected: Tensor, tolerance: float = 2e-6) -> None:
    torch.testing.assert_close(found.double(), expected.double(), rtol=tolerance, atol=tolerance)


def test_they_are_found_for_float32_and_narrower_only() -> None:
    assert isinstance(fused_kernels_for(torch.zeros(1)), ModuleType)
    assert fused_kernels_for(torch.zeros(1, dtype=torch.bfloat16)) is not None
    assert fused_kernels_for(torch.zeros(1, dtype=torch.float64)) is None
    assert fused_kernels_for(torch.zeros(1), torch.zeros(1, dtype=torch.float64)) is None


@pytest.mark.parametrize("has_margin", (False, True))
@each("num_classes", {str(number): number for number in (1, 2, 3, 70, 2048, 2500)}, ("1", "3", "2500"))
def test_log_odds_of_rows(num_classes: int, has_margin: bool, used: set[str]) -> None:
    """Of surrogates without kernels of their own."""
    scores = drawn(8, num_classes)
    scores[0] *= 1e4
    scores[1, 1:] = -math.inf
    scores[2, 2::2] = -math.inf
    index = torch.arange(8) % num_classes
    index[1], index[2] = 0, 0
    margin = drawn(num_classes).abs() if has_margin else None
    ways = {}
    for backend in ("fused", "reference"):
        leaf = scores.clone().requires_grad_()
        losses = multiclass_loss(leaf, index, surrogate=Hinge(), reduction="none", class_margin=margin, backend=backend)
        finite = torch.where(losses.isfinite(), losses, 0.0)
        (gradient,) = torch.autograd.grad(finite, leaf, drawn(8, seed=1))
        ways[backend] = losses.detach(), gradient
    close(ways["fused"][0], ways["reference"][0])
    close(ways["fused"][1], ways["reference"][1])
    assert used == {"log_odds", "log_odds_gradient"}


def test_half_precision_rows_are_read_as_they_are_and_summed_in_float32(used: set[str]) -> None:
    scores, index = drawn(4, 3000).bfloat16(), torch.tensor([0, 1, 2, 2999])
    leaf, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    multiclass_loss(leaf, index, backend="fused").backward()
    multiclass_loss(exact, index, backend="reference").backward()
    assert leaf.grad is not None and exact.grad is not None and leaf.grad.dtype == torch.bfloat16
    # 2⁻⁸ would be rounding to nearest; the interpreter cuts digits off instead.
    torch.testing.assert_close(leaf.grad.double(), exact.grad, rtol=2**-7, atol=1e-6)
    assert used


#: (length, chains, tags) of what is decoded: one tag, as many as one launch decodes, and more than a block has.
DECODED = ((1, 1, 1), (6, 5, 7), (3, 2, 128), (4, 20, 130), (3, 9, 1030))
HEADS = {
    "plain": {},
    "batch first": {"batch_first": True},
    "constrained": {"constraints": Constraints.forbid(1100, pairs=[(0, 1), (3, 4)], start=[7], end=[8])},
    "weighted": {"cost": Hamming(torch.arange(1100) % 3 + 0.5)},
    "unary": {"unary": 0.5},
    "unary batch first": {"unary": 0.5, "batch_first": True},
}


def step(head: LinearCoreChain, emissions: Tensor, tags: Tensor) -> tuple[Tensor, ...]:
    leaf = emissions.clone().requires_grad_()
    loss = -head(leaf, tags, reduction="mean")
    return loss.detach(), *torch.autograd.grad(loss, (leaf, *head.parameters()))


@each(
    ("options", "has_holes"),
    {f"{name}-{has_holes}": (options, has_holes) for name, options in HEADS.items() for has_holes in (False, True)},
    ("plain-False", *(f"{name}-True" for name in HEADS)),
)
def test_local_log_odds(
    options: dict[str, object], has_holes: bool, used: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = LinearCoreChain(1100, **options).to(DEVICE)
    emissions, tags = drawn(4, 3, 1100), torch.tensor([[5, 1099, 3], [6, 0, 3], [5, 1024, 2], [9, 0, 1]])
    if has_holes:
        tags[1, 0] = tags[0, 1] = tags[3, 1] = -100
        tags[:, 2] = -100
        emissions[1, 0] = math.nan
    if head.batch_first:
        emissions, tags = emissions.transpose(0, 1).contiguous(), tags.t().contiguous()
    found = step(head, emissions, tags)
    assert used - {"chain_layout"} == {"local_losses", "scale_local_gradient"}
    without_fused_kernels(monkeypatch)
    for ours, twin in zip(found, step(head, torch.nan_to_num(emissions), tags), strict=True):
        close(ours, twin)


def test_second_derivatives_are_those_of_the_plain_twin(used: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    head, emissions, tags = (
        LinearCoreChain(6).to(DEVICE),
        drawn(3, 2, 6, scale=1.0),
        torch.tensor([[0, 1], [2, -100], [5, 3]]),
    )

    def second() -> Tensor:
        leaf = emissions.clone().requires_grad_()
        (slope,) = torch.autograd.grad(head(leaf, tags), leaf, create_graph=True)
        return torch.autograd.grad((slope**2).sum(), leaf)[0]

    found = second()
    assert "local_losses" in used and found.abs().max() > 0
    without_fused_kernels(monkeypatch)
    close(found, second())


@pytest.mark.parametrize("check_values", (False, True))
@pytest.mark.parametrize("has_mask", (False, True))
@pytest.mark.parametrize("tags", ("valid", "ignored", None))
@pytest.mark.parametrize("size", ((1, 1), (7, 3), (70, 2)))
def test_the_layout_of_a_batch(
    size: tuple[int, int], tags: str | None, has_mask: bool, check_values: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    length, batch = size
    values = (torch.arange(batch * length).view(batch, length) % 5).t().to(torch.int32)
    mask = drawn(batch, length).t() > -1 if has_mask else None
    if tags == "ignored":
        values = values.masked_fill(drawn(length, batch, seed=1) > 1, IGNORED_TAG)

    def batches() -> Batch:
        given = None if tags is None else values
        return to_batch(5, drawn(length, batch, 5), given, mask, check_values=check_values, strict=False)

    found = batches()
    monkeypatch.setattr(batch_module, "fused_kernels_for", lambda *_: None)
    expected = batches()
    assert (found.tags is None) == (expected.tags is None)
    assert expected.tags is None or torch.equal(found.tags, expected.tags)
    assert not found.sites.is_full or expected.sites.mask.all()
    assert found.sites.is_full or not (check_values and expected.sites.is_full)
    for ours, usual in zip(found.sites[:3], expected.sites[:3], strict=True):
        assert torch.equal(ours, usual)


@pytest.mark.parametrize("validate", (False, True))
def test_a_tag_out_of_range_in_any_launch(validate: bool) -> None:
    head, tags = LinearCoreChain(5, validate=validate).to(DEVICE), torch.tensor([[0, 1], [5, -100], [2, -100]])
    if validate or DEVICE.type == "cpu":
        with pytest.raises(ValueError, match=r"tags.*must be in"):
            head.loss(drawn(3, 2, 5), tags)
    else:
        assert head.loss(drawn(3, 2, 5), tags, reduction="none").isnan().tolist() == [True, False]
    if validate:
        with pytest.raises(ValueError, match="first timestep"):
            head.loss(drawn(3, 2, 5), tags.clamp(max=4), torch.tensor([[True, False], [True, True], [True, True]]))


@pytest.mark.parametrize("rank", (None, 2))
def test_deterministic_runs_do_not_add_in_any_order(rank: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    head, emissions = LinearCoreChain(6, rank=rank).to(DEVICE), drawn(3, 2, 6)
    tags = torch.tensor([[0, 1], [-100, 1], [5, 0]])
    expected = step(head, emissions, tags)
    # One of the two kernels with atomic additions; the other one has them only with `has_edges`.
    monkeypatch.setattr(low_rank_module, "_launch_add", None)
    scale = fused.scale_local_gradient
    with_edges: list[bool] = []

    def spied(*arguments: object, has_edges: bool) -> Tensor:
        with_edges.append(has_edges)
        return scale(*arguments, has_edges=has_edges)

    monkeypatch.setattr(fused, "scale_local_gradient", spied)
    torch.use_deterministic_algorithms(True)
    try:
        found = step(head, emissions, tags)
    finally:
        torch.use_deterministic_algorithms(False)
    assert with_edges == [False]
    for ours, usual in zip(found, expected, strict=True):
        close(ours, usual)


@each(
    ("size", "is_full"),
    {f"{size}-{full}": (size, full) for size in ((1, 1, 1), (6, 5, 7), (3, 2, 128), (4, 20, 130)) for full in (False, True)},
    ("(1, 1, 1)-True", "(6, 5, 7)-True", "(6, 5, 7)-False", "(3, 2, 128)-False", "(4, 20, 130)-False"),
)
def test_recursion(size: tuple[int, int, int], is_full: bool, used: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    length, batch, num_tags = size
    mask = torch.rand(length, batch, generator=torch.Generator().manual_seed(3), device="cpu").to(DEVICE) < 0.6
    mask = torch.ones_like(mask) if is_full else mask
    # Batch first in memory, as a user's emissions may be.
    emissions = drawn(batch, length, num_tags).transpose(0, 1)
    chain = Chain(drawn(num_tags, seed=1), drawn(num_tags, num_tags, seed=2), drawn(num_tags, seed=4))

    def step() -> tuple[Tensor, ...]:
        leaves = [tensor.clone().requires_grad_() for tensor in (emissions, *chain)]
        values = log_partition(leaves[0], Chain(*leaves[1:]), mask)
        return values.detach(), *torch.autograd.grad(values, leaves, drawn(batch, seed=5))

    found = step()
    many = {"recursions", "exact_messages", "add_exact_gradient"}
    assert used == (many if num_tags > fused.MAX_TAGS else {"crf_messages", "crf_gradient"})
    without_fused_kernels(monkeypatch)
    for ours, twin in zip(found, step(), strict=True):
        close(ours, twin)


@pytest.mark.parametrize("num_tags", (9, 135))
def test_the_crf_needs_no_synchronisation_for_scores_that_underflow(num_tags: int) -> None:
    """The first sequences need a transition that is forbidden where the scores are high; the last one does not."""
    emissions = drawn(3, 3, num_tags)
    emissions[0, :2, 0] += 300
    emissions[-1, :2, 1] += 300
    matrix = drawn(num_tags, num_tags, seed=1)
    matrix[0, 1] = -math.inf
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1, 0] = False
    chain = Chain(drawn(num_tags, seed=2), matrix, drawn(num_tags, seed=4))

    upstream = drawn(3, seed=5)

    def gradients(dtype: torch.dtype, backend: str) -> tuple[Tensor, ...]:
        leaves = [part.to(dtype).requires_grad_() for part in (emissions, *chain)]
        values = log_partition(leaves[0], Chain(*leaves[1:]), mask, backend)
        return values, *torch.autograd.grad(values, leaves, upstream.to(dtype))

    is_cuda = DEVICE.type == "cuda"
    mode = torch.cuda.get_sync_debug_mode() if is_cuda else 0
    gradients(torch.float32, "fused")  # The first call compiles.
    try:
        if is_cuda:
            torch.cuda.set_sync_debug_mode("error")
        found = gradients(torch.float32, "fused")
    finally:
        if is_cuda:
            torch.cuda.set_sync_debug_mode(mode)
    for ours, exact in zip(found, gradients(torch.float64, "reference"), strict=True):
        close(ours, exact, 3e-5)  # The distance of neighbouring float32 numbers at 300.


@each(
    ("size", "parts"),
    {f"{size}-{parts}": (size, parts) for size in DECODED for parts in (1, 32)},
    ("(1, 1, 1)-1", "(6, 5, 7)-1", "(3, 2, 128)-1", "(4, 20, 130)-32"),
)
def test_exact_decoding(size: tuple[int, int, int], parts: int, used: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(max_product_module, "MAX_PARTS", parts)
    monkeypatch.setattr(max_product_module, "WIDE", 512)
    length, batch, num_tags = size
    mask = torch.rand(length, batch, generator=torch.Generator().manual_seed(3), device="cpu").to(DEVICE) < 0.6
    mask[:, 0] = True
    emissions = drawn(batch, length, num_tags).transpose(0, 1)
    matrix = drawn(num_tags, num_tags, seed=2)
    # Two in three ways are closed, so that some chains have none at all, and transposed in memory.
    matrix[torch.rand(matrix.shape, generator=torch.Generator().manual_seed(6), device="cpu").to(DEVICE) < 2 / 3] = -math.inf
    # Every second number of a longer tensor: what is read must be what was meant.
    chain = Chain(drawn(num_tags, 2, seed=1)[:, 0], matrix.t(), drawn(num_tags, seed=4))
    tags, scores = viterbi(emissions, chain, Sites.of(mask))
    assert used == ({"best_scores", "trace_back"} if num_tags > fused.MAX_TAGS else {"best_sequences"})
    monkeypatch.setattr(viterbi_module, "fused_kernels_for", lambda *_: None)
    twin, expected = viterbi(emissions, chain, Sites.of(mask))
    assert torch.equal(tags, twin) and torch.equal(scores, expected)


def test_exact_decoding_hands_on_what_is_no_number(used: set[str]) -> None:
    emissions = drawn(3, 2, 5)
    emissions[1, 0, 2] = math.nan
    chain = Chain(drawn(5), drawn(5, 5), drawn(5))
    _, scores = viterbi(emissions, chain, Sites.of(torch.ones(3, 2, dtype=torch.bool)))
    assert "best_sequences" in used and scores.isnan().tolist() == [True, False]


@pytest.mark.parametrize("size", ((0, 2, 3), (3, 0, 3)))
def test_exact_decoding_of_nothing(size: tuple[int, int, int], used: set[str]) -> None:
    chain = Chain(drawn(3), drawn(3, 3), drawn(3))
    tags, scores = viterbi(drawn(*size), chain, Sites.of(torch.ones(size[:2], dtype=torch.bool)))
    assert not used and tags.shape == size[:2] and scores.tolist() == [0.0] * size[1]


def test_exact_decoding_of_emissions_with_strides(used: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    emissions, chain = drawn(4, 3, 10)[..., ::2], Chain(drawn(5), drawn(5, 5), drawn(5))
    where = Sites.of(torch.ones(4, 3, dtype=torch.bool))
    tags, scores = viterbi(emissions, chain, where)
    assert used
    monkeypatch.setattr(viterbi_module, "fused_kernels_for", lambda *_: None)
    twin, expected = viterbi(emissions, chain, where)
    assert torch.equal(tags, twin) and torch.equal(scores, expected)


@pytest.mark.parametrize("num_tags", (33, 1030))
def test_of_equal_ways_exact_decoding_takes_the_first(num_tags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(max_product_module, "WIDE", 512)
    chain = Chain(torch.zeros(num_tags), torch.zeros(num_tags, num_tags), torch.zeros(num_tags))
    tags, _ = viterbi(torch.zeros(3, 2, num_tags), chain, Sites.of(torch.ones(3, 2, dtype=torch.bool)))
    assert not tags.any()


def test_transforms_and_other_precisions_go_the_plain_way(used: set[str]) -> None:
    chain, where = Chain(drawn(5), drawn(5, 5), drawn(5)), Sites.of(torch.ones(4, 3, dtype=torch.bool))
    torch.func.vmap(lambda emissions: viterbi(emissions, chain, where)[1])(drawn(2, 4, 3, 5))
    viterbi(drawn(4, 3, 5).double(), Chain(*(part.double() for part in chain)), where)
    viterbi(drawn(4, 3, 5).bfloat16(), chain, where)
    assert not used


def transposed(tensor: Tensor) -> Tensor:
    """The same numbers, laid out as a convolution's output that was transposed: the last stride is not 1."""
    return tensor.transpose(1, 2).contiguous().transpose(1, 2)


def test_a_crf_takes_emissions_whose_tags_are_not_adjacent_in_memory(used: set[str]) -> None:
    head, tags = ChainCRF(7).to(DEVICE), torch.arange(12).view(4, 3) % 7
    emissions = drawn(4, 3, 7)
    strided = transposed(emissions)
    assert strided.stride(-1) != 1
    expected = step(head.double(), emissions.double(), tags)
    for ours, exact in zip(step(head.float(), strided, tags), expected, strict=True):
        close(ours, exact)
    assert "crf_messages" in used
    close(head.marginals(strided), head.double().marginals(emissions.double()))
    close(head.float().confidence(strided, tags=tags), head.double().confidence(emissions.double(), tags=tags))


@cross(
    options=({}, {"unary": 0.5}, {"rank": 2}, {"unary": 0.5, "rank": 2}),
    layout={"contiguous": lambda x: x, "transposed": transposed},
)
def test_a_chain_takes_tags_that_are_a_strided_view(options: dict[str, float], layout, used: set[str]) -> None:
    torch.manual_seed(0)
    head, emissions = LinearCoreChain(7, **options).to(DEVICE), drawn(4, 3, 7)
    pairs = torch.stack([torch.arange(12).view(4, 3) % 7, torch.zeros(4, 3, dtype=torch.long)], -1)
    expected = step(head.double(), emissions.double(), pairs[..., 0])
    for ours, exact in zip(step(head.float(), layout(emissions), pairs[..., 0]), expected, strict=True):
        close(ours, exact)
    assert used


@pytest.mark.parametrize("wrong", (-1, 5, 10**6))
def test_the_fused_log_odds_of_a_label_out_of_range_is_nan(wrong: int) -> None:
    own, _, _ = fused.log_odds(drawn(3, 5), torch.tensor([1, wrong, 4]))
    assert own.isnan().flatten().tolist() == [False, True, False]


@pytest.mark.parametrize("frozen", ("emissions", "start_transitions", "transitions", "end_transitions"))
@pytest.mark.parametrize("head", (LinearCoreChain(5), ChainCRF(5)), ids=("linear core", "crf"))
def test_second_derivatives_with_an_input_that_is_not_trained(head: ChainHead, frozen: str, used: set[str]) -> None:
    tags = torch.tensor([[0, 1], [2, 4], [3, 3]])

    def second(dtype: torch.dtype) -> list[Tensor]:
        twin = copy.deepcopy(head).to(DEVICE, dtype)
        inputs = {"emissions": drawn(3, 2, 5, scale=1.0).to(dtype).requires_grad_(), **dict(twin.named_parameters())}
        inputs[frozen].requires_grad_(False)
        trained = [tensor for tensor in inputs.values() if tensor.requires_grad]
        first = torch.autograd.grad(twin(inputs["emissions"], tags), trained, create_graph=True)
        return list(torch.autograd.grad(sum((slope**2).sum() for slope in first), trained))

    found = second(torch.float32)
    assert used
    for ours, exact in zip(found, second(torch.float64), strict=True):
        close(ours, exact, 1e-5)


def test_a_chain_of_one_tag(used: set[str]) -> None:
    head = LinearCoreChain(1).to(DEVICE)
    found = step(head, drawn(3, 2, 1), torch.zeros(3, 2, dtype=torch.long))
    assert "local_losses" in used and not any(part.any() for part in found)


@each("batch", {"4": 4, "33": 33, "65": 65}, ("33",))
def test_the_crf_has_full_precision_at_every_batch_size(batch: int) -> None:
    emissions, chain = drawn(3, batch, 200), Chain(drawn(200), drawn(200, 200, seed=1), drawn(200, seed=2))
    mask = torch.ones(3, batch, dtype=torch.bool)

    def gradients(dtype: torch.dtype) -> tuple[Tensor, ...]:
        leaves = [part.to(dtype).requires_grad_() for part in (emissions, *chain)]
        values = log_partition(leaves[0], Chain(*leaves[1:]), mask)
        return values, *torch.autograd.grad(values.sum(), leaves)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        found = gradients(torch.float32)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    for ours, exact in zip(found, gradients(torch.float64), strict=True):
        close(ours, exact, 5e-6)
