"""Blocks cover everything exactly once, do not change the result, and keep memory to what the docstrings promise."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from linearcore.kernels import _blocks
from linearcore.kernels._blocks import CPU_BLOCK, DEVICE_BLOCK, block_size, row_blocks, slices
from linearcore.losses import Form, binary_loss, multiclass_loss
from linearcore.surrogates import Surrogate
from tests.cases import a_few_pairs

every_form = pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))

GENERATOR = torch.Generator().manual_seed(3)
SCORES = 2 * torch.randn(11, 7, dtype=torch.float64, generator=GENERATOR)
SHARES = torch.randn(11, 7, dtype=torch.float64, generator=GENERATOR).softmax(1)
TARGETS = {"hard": torch.randint(7, (11,), generator=GENERATOR), "soft": SHARES}
MARGIN = torch.randn(7, dtype=torch.float64, generator=GENERATOR)
UPSTREAM = torch.randn(11, dtype=torch.float64, generator=GENERATOR)


@pytest.mark.parametrize("length", (0, 1, 5, 6, 7, 100))
@pytest.mark.parametrize("step", (-1, 0, 1, 3, 6, 1000))
def test_slices_cover_everything_once(length: int, step: int) -> None:
    cut = list(slices(length, step))
    assert [i for part in cut for i in range(part.start, part.stop)] == list(range(length))
    assert all(1 <= part.stop - part.start <= max(1, step) for part in cut)


@pytest.mark.parametrize("elements_per_row", (0, 1, 10, CPU_BLOCK // 2, CPU_BLOCK + 1, 10 * CPU_BLOCK))
def test_row_blocks_stay_within_the_budget_or_are_single_rows(elements_per_row: int) -> None:
    rows = 50
    cut = list(row_blocks(torch.empty(rows, 3), elements_per_row))
    assert sum(part.stop - part.start for part in cut) == rows
    assert all((part.stop - part.start) * elements_per_row <= CPU_BLOCK or part.stop - part.start == 1 for part in cut)
    assert len(cut) <= max(1, -(-rows // max(1, CPU_BLOCK // max(1, elements_per_row))))


def test_the_block_size_depends_on_the_device() -> None:
    assert block_size(torch.empty(1)) == CPU_BLOCK
    assert block_size(torch.empty(1, device="meta")) == DEVICE_BLOCK


def count_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> list[tuple[int, int]]:
    """Makes blocks `size` elements large, and returns a list that will hold every (length, step) asked for."""
    asked: list[tuple[int, int]] = []
    original = _blocks.slices

    def spy(length: int, step: int):
        asked.append((length, step))
        return original(length, step)

    monkeypatch.setattr(_blocks, "CPU_BLOCK", size)
    monkeypatch.setattr(_blocks, "slices", spy)
    return asked


@a_few_pairs
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("margin", (None, MARGIN), ids=("plain", "margin"))
@pytest.mark.parametrize("size", (1, 21), ids="block{}".format)
def test_many_blocks_are_one_piece(
    monkeypatch: pytest.MonkeyPatch, phi: Surrogate, form: Form, target: Tensor, margin: Tensor | None, size: int
) -> None:
    """Blocks of 1 element (single rows, single labels) and of 21 (three rows, or three labels of a row)."""
    options = {"surrogate": phi, "form": form, "class_margin": margin, "reduction": "none"}
    whole = SCORES.clone().requires_grad_()
    expected = multiclass_loss(whole, target, backend="reference", **options)
    asked = count_blocks(monkeypatch, size)
    leaf = SCORES.clone().requires_grad_()
    losses = multiclass_loss(leaf, target, backend="eager", **options)
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=1e-13)
    (gradient,) = torch.autograd.grad(losses, leaf, UPSTREAM)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, whole, UPSTREAM)[0], rtol=1e-12, atol=1e-13)
    assert (11, max(size // 7, 0)) in asked or (11, size // 49) in asked


@pytest.mark.parametrize("size", (1, 9, 40))
def test_many_blocks_of_binary_losses_are_one_piece(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for target in (SCORES > 0.3, SHARES):
        results = []
        for block, backend in ((CPU_BLOCK, "reference"), (size, "eager")):
            asked = count_blocks(monkeypatch, block)
            leaf = SCORES.clone().requires_grad_()
            losses = binary_loss(leaf, target, pos_weight=MARGIN.exp(), backend=backend, reduction="none")
            results.append((losses, *torch.autograd.grad(losses, leaf, SHARES)))
            assert backend == "reference" or (11, size // 7) in asked
        for plain, blocked in zip(*results, strict=True):
            torch.testing.assert_close(blocked, plain, rtol=1e-13, atol=1e-14)


class Allocations(TorchDispatchMode):
    """The sizes of all storages that operations make, in elements."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        known = {tensor.untyped_storage().data_ptr() for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)}
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in known:
                self.sizes.append(tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


def allocations(scores: Tensor, target: Tensor, **options: object) -> tuple[list[int], list[int], int]:
    """What the forward and the backward pass allocate, and how many elements besides the scores are kept between them."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    forward, backward = Allocations(), Allocations()
    with forward, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = multiclass_loss(scores, target, **options)
    with backward:
        torch.autograd.grad(loss, scores)
    own = {scores.untyped_storage().data_ptr(), target.untyped_storage().data_ptr()}
    return forward.sizes, backward.sizes, sum(size for pointer, size in kept.items() if pointer not in own)


@every_form
def test_no_temporary_is_as_large_as_the_scores(form: str) -> None:
    """At (4096, 1000): blocks of at most CPU_BLOCK elements, and in the backward pass the gradient itself, once."""
    scores, target = torch.zeros(4096, 1000, requires_grad=True), torch.arange(4096) % 1000
    forward, backward, kept = allocations(scores, target, form=form, backend="eager")
    assert max(forward) <= CPU_BLOCK
    assert sorted(backward)[-1] == scores.numel() and sorted(backward)[-2] <= CPU_BLOCK
    assert kept <= 9 * 4096  # index, three numbers and two marks of infinite labels a row, and what the reduction keeps
    assert max(allocations(scores, target, form=form, backend="reference")[0]) == scores.numel()  # the measure sees them


@every_form
def test_half_precision_scores_are_not_widened_as_a_whole(form: str) -> None:
    scores = torch.zeros(4096, 500, dtype=torch.bfloat16, requires_grad=True)
    forward, backward, _ = allocations(scores, torch.arange(4096) % 500, form=form, backend="eager")
    assert max(forward) <= CPU_BLOCK
    assert sorted(backward)[-2] <= CPU_BLOCK


@every_form
@pytest.mark.parametrize("margin", (None, torch.zeros(64)), ids=("plain", "margin"))
def test_soft_targets_stay_within_blocks_too(monkeypatch: pytest.MonkeyPatch, form: str, margin: Tensor | None) -> None:
    """C² numbers a row, twice the budget here, are cut along the labels."""
    monkeypatch.setattr(_blocks, "CPU_BLOCK", 2048)
    scores, target = torch.zeros(128, 64, requires_grad=True), torch.full((128, 64), 1 / 64)
    forward, backward, kept = allocations(scores, target, form=form, class_margin=margin, backend="eager")
    assert max(forward) <= 2048
    assert sorted(backward)[-1] == scores.numel() and sorted(backward)[-2] <= 2048
    assert kept <= 8 * 128
