"""The baselines take everything F.cross_entropy takes and give it back in the same shapes and dtypes; a loop agrees."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.losses.baselines import BASELINES
from tests.baselines import CASES, early_learning
from tests.cases import cross

LOSSES = dict(BASELINES) | {"early_learning": early_learning}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
every_case = pytest.mark.parametrize(("name", "options"), CASES.values(), ids=CASES.keys())
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SHAPES = {"(C)": (5,), "(N, C)": (4, 5), "(N, C, d)": (4, 5, 3), "(N, C, d1, d2, d3)": (2, 5, 3, 1, 2)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)


def drawn(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return (2 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))).to(dtype)


def index_for(scores: Tensor) -> Tensor:
    classes = min(1, scores.dim() - 1)
    shape = scores.shape[:classes] + scores.shape[classes + 1 :]
    return torch.randint(scores.shape[classes], shape, generator=torch.Generator().manual_seed(1))


def with_gradient(loss: object, scores: Tensor, target: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, target, **options)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@cross(loss=LOSSES, shape=SHAPES, reduction=("none", "mean", "sum"), dtype=DTYPES)
def test_shapes_and_dtypes_are_cross_entropys(
    loss: object, shape: tuple[int, ...], reduction: str, dtype: torch.dtype
) -> None:
    scores = drawn(shape, dtype)
    for target in (index_for(scores), scores.softmax(min(1, scores.dim() - 1))):
        theirs = F.cross_entropy(scores, target, reduction=reduction)
        ours, gradient = with_gradient(loss, scores, target, reduction=reduction)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert (gradient.shape, gradient.dtype) == (scores.shape, dtype)
        assert ours.isfinite().all() and gradient.isfinite().all()


@cross(loss=LOSSES, inside=(torch.bfloat16, torch.float16), dtype=DTYPES)
def test_dtypes_under_autocast_are_cross_entropys(loss: object, inside: torch.dtype, dtype: torch.dtype) -> None:
    scores = drawn((4, 5), dtype)
    with torch.autocast("cpu", dtype=inside):
        for target in (index_for(scores), scores.softmax(1)):
            ours, gradient = with_gradient(loss, scores, target)
            assert ours.dtype == F.cross_entropy(scores, target).dtype
            assert gradient.dtype == dtype


@every_loss
@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=str)
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_half_precision_rounds_only_at_the_end(loss: object, dtype: torch.dtype, soft: bool) -> None:
    scores = drawn((64, 10), dtype)
    target = drawn((64, 10)).softmax(1) if soft else index_for(scores)
    exact = with_gradient(loss, scores.double(), target, reduction="none")
    ours = with_gradient(loss, scores, target, reduction="none")
    half = torch.finfo(dtype).eps / 2
    for rounded, expected in zip(ours, exact, strict=True):
        torch.testing.assert_close(rounded.double(), expected, rtol=1.01 * half, atol=1e-6)


def loop(loss: object, scores: Tensor, target: Tensor, **options: object) -> Tensor:
    """(N, d): one call a sample, with nothing but its scores, its label and the loss's own options."""
    rows = scores.movedim(1, -1)
    soft = target.shape == scores.shape
    labels = target.movedim(1, -1) if soft else target
    return torch.stack([
        torch.stack([loss(row, label, **options) for row, label in zip(*pair, strict=True)])
        for pair in zip(rows, labels, strict=True)
    ])  # fmt: skip


@every_loss
@pytest.mark.parametrize("smoothing", (0.0, 0.2))
def test_index_targets_weights_and_reductions_are_those_of_a_loop(loss: object, smoothing: float) -> None:
    """torch's rules, spelled out: weights w_y, means over them, ignored targets, label smoothing as a mixture."""
    scores, per_sample = drawn((3, 5, 4)), drawn((3, 4), seed=5).exp()
    target = index_for(scores)
    ignored = torch.zeros(3, 4, dtype=torch.bool)
    ignored[0, 1] = ignored[2, 3] = True
    each = torch.stack([loop(loss, scores, torch.full_like(target, y)) for y in range(5)], -1)
    mixture = (1 - smoothing) * F.one_hot(target, 5).double() + smoothing / 5
    expected = ((mixture * WEIGHT * each).sum(-1) * per_sample).masked_fill(ignored, 0.0)
    divisor = (WEIGHT[target] * per_sample).masked_fill(ignored, 0.0).sum()
    options = {"weight": WEIGHT, "sample_weight": per_sample, "ignore_index": 7, "label_smoothing": smoothing}
    asked = target.masked_fill(ignored, 7)
    close(loss(scores, asked, reduction="none", **options), expected)
    close(loss(scores, asked, reduction="sum", **options), expected.sum())
    close(loss(scores, asked, **options), expected.sum() / divisor)
    plain = (mixture * each).sum(-1)[~ignored]
    close(loss(scores, asked, ignore_index=7, label_smoothing=smoothing), plain.mean())
    if smoothing:
        close(loss(scores, target, label_smoothing=smoothing), loss(scores, mixture.movedim(-1, 1)))


@every_loss
@pytest.mark.parametrize("smoothing", (0.0, 0.2))
def test_probability_targets_are_those_of_a_loop(loss: object, smoothing: float) -> None:
    scores, per_sample = drawn((3, 5, 4)), drawn((3, 4), seed=5).exp()
    target = drawn((3, 5, 4), seed=6).softmax(1)
    each = torch.stack([loop(loss, scores, torch.full((3, 4), y)) for y in range(5)], 1)
    mixture = (1 - smoothing) * target + smoothing / 5
    expected = (mixture * WEIGHT[:, None] * each).sum(1)
    options = {"weight": WEIGHT, "label_smoothing": smoothing}
    close(loss(scores, target, reduction="none", **options), expected)
    close(loss(scores, target, **options), expected.mean())
    weighted = (expected * per_sample).sum() / per_sample.sum()
    close(loss(scores, target, sample_weight=per_sample, **options), weighted)


@every_case
def test_one_hot_is_the_index(name: str, options: dict[str, object]) -> None:
    scores = drawn((5, 4)) * torch.tensor([1.0, 1.0, 10.0, 1e3, 1e4], dtype=torch.float64)[:, None]
    target = index_for(scores)
    hard = with_gradient(BASELINES[name], scores, target, reduction="none", **options)
    soft = with_gradient(BASELINES[name], scores, F.one_hot(target, 4).double(), reduction="none", **options)
    for ours, expected in zip(soft, hard, strict=True):
        close(ours, expected)


@every_loss
@pytest.mark.parametrize("dtype", (torch.float64, torch.float32, torch.bfloat16), ids=str)
def test_huge_scores(loss: object, dtype: torch.dtype) -> None:
    scores = torch.tensor([[1e4, -1e4, 0.0], [-1e4, -1e4, 1e4], [1e4, 1e4, 1e4], [-1e4, -1e4, -1e4]], dtype=dtype)
    for y in range(3):
        one_hot = F.one_hot(torch.full((4,), y), 3).to(dtype)
        for target in (torch.full((4,), y), one_hot, torch.full((4, 3), 1 / 3, dtype=dtype)):
            for smoothing in (0.0, 0.1):
                value, gradient = with_gradient(loss, scores, target, reduction="none", label_smoothing=smoothing)
                assert value.isfinite().all() and gradient.isfinite().all()


@every_loss
@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
def test_empty_batches_and_all_ignored_are_torchs(loss: object, reduction: str) -> None:
    for shape in ((0, 5), (0, 5, 3), (2, 5, 0)):
        scores = torch.zeros(shape)
        for target in (index_for(scores), torch.zeros(shape)):
            ours, gradient = with_gradient(loss, scores, target, reduction=reduction)
            close(ours, F.cross_entropy(scores, target, reduction=reduction))
            assert gradient.shape == shape
    scores, target = drawn((3, 4)), torch.full((3,), -100)
    for options in ({}, {"label_smoothing": 0.1}, {"weight": torch.ones(4).double()}):
        theirs = F.cross_entropy(scores, target, reduction=reduction, **options)
        close(loss(scores, target, reduction=reduction, **options), theirs)


@every_loss
def test_an_ignored_row_may_hold_anything(loss: object) -> None:
    for filling in (-math.inf, math.nan):
        scores = torch.tensor([[1.0, 0.0, 2.0], [filling] * 3])
        value, gradient = with_gradient(loss, scores, torch.tensor([0, -100]))
        assert value.isfinite() and gradient.isfinite().all() and (gradient[1] == 0).all()


@every_loss
def test_nan_is_not_hidden(loss: object) -> None:
    scores = drawn((3, 4))
    scores[1, 2] = math.nan
    for target in (torch.tensor([0, 1, 3]), drawn((3, 4)).softmax(1)):
        assert loss(scores, target, reduction="none").isnan().tolist() == [False, True, False]


@every_case
def test_gradcheck(name: str, options: dict[str, object]) -> None:
    scores, per_sample = drawn((4, 3)).requires_grad_(), drawn((4,), seed=3).exp()
    soft = drawn((4, 3), seed=4).softmax(1)
    for target in (torch.tensor([0, 2, -100, 1]), soft):
        for smoothing in (0.0, 0.1):
            settings = {"weight": WEIGHT[:3], "sample_weight": per_sample, "label_smoothing": smoothing, **options}
            function = BASELINES[name]
            assert torch.autograd.gradcheck(lambda s, t=target, k=settings, f=function: f(s, t, **k), scores)
    target = soft.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: BASELINES[name](scores.detach(), t, **options), target)


@every_loss
def test_inputs_are_left_alone_and_layouts_do_not_matter(loss: object) -> None:
    target = index_for(drawn((6, 7)))
    for scores in (drawn((7, 6)).T, drawn((12, 7, 2))[::2, :, 1], drawn((1, 7)).expand(6, 7)):
        before = scores.clone()
        close(loss(scores, target, reduction="none"), loss(before.contiguous(), target, reduction="none"))
        assert torch.equal(scores, before)
