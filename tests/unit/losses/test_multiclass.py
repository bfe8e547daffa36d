"""`multiclass_loss` takes everything torch.nn.functional.cross_entropy takes, and gives back what that would.

Shapes, dtypes, autocast, empty and ignored batches, layouts and precision; the meaning of the options is in
tests/laws/test_form_targets.py, the messages are in test_messages.py.
"""

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore import Exponential, LinearCore, LinearCoreLoss, Logistic, multiclass_loss
from tests.cases import cross

every_form = pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
every_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES.keys())
half_dtype = pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=("bfloat16", "float16"))

SHAPES = {"(C)": (5,), "(N, C)": (4, 5), "(N, C, d)": (4, 5, 3), "(N, C, d1, d2, d3)": (2, 5, 3, 1, 2)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
every_reduction = pytest.mark.parametrize("reduction", ("none", "mean", "sum"))


def drawn(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, scale: float = 3.0) -> Tensor:
    return (scale * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).to(dtype)


def index_for(scores: Tensor, dtype: torch.dtype = torch.long) -> Tensor:
    """Class indices in the shape cross_entropy wants."""
    classes = min(1, scores.dim() - 1)
    shape = scores.shape[:classes] + scores.shape[classes + 1 :]
    return torch.randint(scores.shape[classes], shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def gradient_of(loss: Tensor, scores: Tensor) -> Tensor:
    return torch.autograd.grad(loss.sum(), scores)[0]


@cross(form=("pairwise", "centered", "logodds"), shape=SHAPES, reduction=("none", "mean", "sum"), dtype=DTYPES)
def test_shapes_and_dtypes_are_cross_entropys(form: str, shape: tuple[int, ...], reduction: str, dtype: torch.dtype) -> None:
    scores = drawn(shape, dtype).requires_grad_()
    classes = min(1, scores.dim() - 1)
    for target in (index_for(scores), scores.detach().softmax(classes)):
        theirs = F.cross_entropy(scores, target, reduction=reduction)
        ours = multiclass_loss(scores, target, form=form, reduction=reduction)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        gradient = gradient_of(ours, scores)
        assert (gradient.shape, gradient.dtype) == (scores.shape, dtype)
        assert gradient.isfinite().all()


@every_form
@every_dtype
@pytest.mark.parametrize("inside", (torch.bfloat16, torch.float16), ids=("autocast-bf16", "autocast-fp16"))
@both_backends
def test_dtypes_under_autocast_are_cross_entropys(form: str, dtype: torch.dtype, inside: torch.dtype, backend: str) -> None:
    scores = drawn((4, 5), dtype).requires_grad_()
    with torch.autocast("cpu", dtype=inside):
        for target in (index_for(scores), scores.detach().softmax(1)):
            for options in ({}, {"label_smoothing": 0.1}, {"reduction": "none"}):
                ours = multiclass_loss(scores, target, form=form, backend=backend, **options)
                assert ours.dtype == F.cross_entropy(scores, target, **options).dtype
                assert gradient_of(ours, scores).dtype == dtype


@every_form
@every_shape
@both_backends
def test_extra_dimensions_are_rows(form: str, shape: tuple[int, ...], backend: str) -> None:
    scores, options = drawn(shape), {"form": form, "reduction": "none", "backend": backend}
    classes = min(1, scores.dim() - 1)
    index = index_for(scores)
    rows = scores.movedim(classes, -1).reshape(-1, 5)
    expected = multiclass_loss(rows, index.reshape(-1), **options).reshape(index.shape)
    torch.testing.assert_close(multiclass_loss(scores, index, **options), expected, rtol=0, atol=0)
    soft = scores.softmax(classes)
    expected = multiclass_loss(rows, soft.movedim(classes, -1).reshape(-1, 5), **options).reshape(index.shape)
    torch.testing.assert_close(multiclass_loss(scores, soft, **options), expected, rtol=0, atol=0)


@every_form
@every_reduction
@both_backends
def test_empty_batches(form: str, reduction: str, backend: str) -> None:
    for shape in ((0, 5), (0, 5, 3), (2, 5, 0)):
        scores = torch.zeros(shape, requires_grad=True)
        for target in (index_for(scores), torch.zeros(shape)):
            theirs = F.cross_entropy(scores, target, reduction=reduction)
            ours = multiclass_loss(scores, target, form=form, reduction=reduction, backend=backend)
            torch.testing.assert_close(ours, theirs, equal_nan=True)
            assert gradient_of(ours, scores).shape == shape


@every_form
@every_reduction
@both_backends
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_all_ignored(form: str, reduction: str, backend: str, smoothing: float) -> None:
    """NaN mean, zero sum, zeros: as torch has it."""
    scores, target = drawn((3, 4)), torch.full((3,), -100)
    options = {"reduction": reduction, "label_smoothing": smoothing}
    ours = multiclass_loss(scores, target, form=form, backend=backend, **options)
    torch.testing.assert_close(ours, F.cross_entropy(scores, target, **options), equal_nan=True)
    weighted = multiclass_loss(scores, target, form=form, weight=torch.ones(4), backend=backend, **options)
    torch.testing.assert_close(weighted, ours, equal_nan=True)


@every_form
@both_backends
def test_ignored_rows_count_for_nothing(form: str, backend: str) -> None:
    scores = drawn((4, 5)).requires_grad_()
    kept = torch.tensor([0, 2, 3])
    target = torch.tensor([1, 7, 0, 4])
    options = {"form": form, "backend": backend, "weight": torch.arange(1.0, 6.0)}
    loss = multiclass_loss(scores, target, ignore_index=7, **options)
    torch.testing.assert_close(loss, multiclass_loss(scores[kept], target[kept], **options))
    assert (gradient_of(loss, scores)[1] == 0).all()
    unreduced = multiclass_loss(scores, target, ignore_index=7, reduction="none", **options)
    assert unreduced[1] == 0 and (unreduced[kept] > 0).all()


@every_form
@both_backends
@pytest.mark.parametrize("dtype", (torch.uint8, torch.int8, torch.int16, torch.int32), ids=str)
def test_any_integer_dtype_is_an_index(form: str, backend: str, dtype: torch.dtype) -> None:
    scores = drawn((6, 5))
    expected = multiclass_loss(scores, index_for(scores), form=form, backend=backend)
    assert multiclass_loss(scores, index_for(scores, dtype), form=form, backend=backend) == expected


@every_form
@both_backends
def test_layout_does_not_matter_and_nothing_is_written(form: str, backend: str) -> None:
    """Transposed, sliced and expanded scores, and the tensors passed in are as they were afterwards."""
    base = drawn((12, 7, 2))
    target, weight, margin = index_for(drawn((6, 7))), drawn((7,)).exp(), drawn((7,))
    layouts = {
        "transposed": drawn((7, 6)).T,
        "sliced": base[::2, :, 1],
        "flipped": base[:6, :, 0].flip(1),
        "expanded": drawn((1, 7)).expand(6, 7),
    }
    options = {"weight": weight, "class_margin": margin, "form": form, "backend": backend, "reduction": "none"}
    for scores in layouts.values():
        for labels in (target, drawn((7, 6)).softmax(0).T):
            passed = [scores, labels, weight, margin]
            before = [tensor.clone() for tensor in passed]
            leaf, dense = scores.detach().requires_grad_(), scores.clone().contiguous().requires_grad_()
            ours, plain = (multiclass_loss(x, labels.clone().contiguous(), **options) for x in (leaf, dense))
            torch.testing.assert_close(ours, plain, rtol=1e-13, atol=1e-13)
            torch.testing.assert_close(gradient_of(ours, leaf), gradient_of(plain, dense), rtol=1e-13, atol=1e-13)
            assert all(torch.equal(tensor, copy) for tensor, copy in zip(passed, before, strict=True))


@every_form
@half_dtype
@both_backends
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_half_precision_rounds_only_at_the_end(form: str, dtype: torch.dtype, backend: str, soft: bool) -> None:
    """Loss and gradient are float64's on the same scores, within half a unit in the last place."""
    scores = drawn((64, 10), dtype)
    target = drawn((64, 10)).softmax(1) if soft else index_for(scores)
    results = []
    for leaf in (scores.clone().requires_grad_(), scores.double().requires_grad_()):
        loss = multiclass_loss(leaf, target, form=form, backend=backend, reduction="none")
        results.append((loss.detach(), gradient_of(loss, leaf)))
    half = torch.finfo(dtype).eps / 2
    for ours, exact in zip(*results, strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=1.01 * half, atol=2 * torch.finfo(dtype).smallest_normal)


@every_form
@half_dtype
@both_backends
def test_sums_over_many_classes_are_accurate_in_half_precision(form: str, dtype: torch.dtype, backend: str) -> None:
    """32,000 terms: adding them up in bfloat16 would stop at 256 times one of them."""
    scores = drawn((3, 32000), dtype, scale=1.0)
    target = index_for(scores)
    ours = multiclass_loss(scores, target, form=form, backend=backend, reduction="none")
    exact = multiclass_loss(scores.double(), target, form=form, reduction="none")
    torch.testing.assert_close(ours.double(), exact, rtol=1.01 * torch.finfo(dtype).eps / 2, atol=0)


@every_form
def test_the_mean_of_many_rows_is_accurate_in_half_precision(form: str) -> None:
    scores = drawn((20000, 3), torch.bfloat16)
    target = index_for(scores)
    exact = float(multiclass_loss(scores.double(), target, form=form))
    assert float(multiclass_loss(scores, target, form=form)) == pytest.approx(exact, rel=2**-8)


@every_form
@both_backends
def test_weights_of_another_dtype_are_fine(form: str, backend: str) -> None:
    """The scores decide: float32 scores with float64 weights give float32, the other way round float64."""
    for dtype, other in ((torch.float32, torch.float64), (torch.float64, torch.float32), (torch.bfloat16, torch.float64)):
        scores = drawn((6, 5), dtype).requires_grad_()
        tensors = {"weight": drawn((5,), other).exp(), "class_margin": drawn((5,), other)}
        for target in (index_for(scores), drawn((6, 5), other).softmax(1)):
            sample_weight = drawn((6,), other).exp()
            loss = multiclass_loss(scores, target, form=form, backend=backend, sample_weight=sample_weight, **tensors)
            assert loss.dtype == dtype
            assert gradient_of(loss, scores).dtype == dtype
            exact = {name: tensor.double() for name, tensor in tensors.items()}
            labels = target.double() if target.is_floating_point() else target
            expected = multiclass_loss(scores.double(), labels, form=form, sample_weight=sample_weight.double(), **exact)
            assert float(loss.detach()) == pytest.approx(
                float(expected.detach()), rel=1e-5 if dtype != torch.bfloat16 else 4e-3
            )


@every_form
@both_backends
def test_nan_is_not_hidden(form: str, backend: str) -> None:
    scores = drawn((3, 4))
    scores[1, 2] = math.nan
    for target in (torch.tensor([0, 1, 3]), drawn((3, 4)).softmax(1)):
        losses = multiclass_loss(scores, target, form=form, backend=backend, reduction="none")
        assert losses.isnan().tolist() == [False, True, False]


@both_backends
def test_one_hot_targets_do_not_trip_over_losses_that_overflow(backend: str) -> None:
    """0 · inf: the exponential loss of a label nobody asked for overflows at margin −100 in float32."""
    for form in ("pairwise", "centered", "logodds"):
        scores = torch.tensor([[400.0, 0.0, 1.0]], requires_grad=True)
        loss = multiclass_loss(scores, torch.tensor([[1.0, 0.0, 0.0]]), surrogate=Exponential(), form=form, backend=backend)
        assert loss == 0
        assert (gradient_of(loss, scores) == 0).all()


def test_validate_lets_good_input_pass() -> None:
    scores = drawn((3, 4))
    scores[0, 1] = -math.inf
    target = torch.tensor([0, -100, 3])
    assert multiclass_loss(scores, target, validate=True) == multiclass_loss(scores, target)
    soft = F.one_hot(torch.tensor([0, 2, 3]), 4).double()
    assert multiclass_loss(scores, soft, validate=True) == multiclass_loss(scores, soft)


def test_the_defaults_are_the_documented_ones() -> None:
    scores = drawn((6, 5))
    target = index_for(scores)
    spelled_out = multiclass_loss(scores, target, surrogate=LinearCore("logistic", 1.0, 1, 1.0), form="logodds")
    assert multiclass_loss(scores, target) == spelled_out
    for form in ("pairwise", "centered"):
        averaged = multiclass_loss(scores, target, form=form, normalize=True)
        assert multiclass_loss(scores, target, form=form) == averaged
        summed = multiclass_loss(scores, target, form=form, normalize=False)
        torch.testing.assert_close(summed, 4 * averaged)
    parameters = inspect.signature(multiclass_loss).parameters
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name not in ("scores", "target"))


def test_takes_every_argument_of_cross_entropy() -> None:
    """All but the two that torch itself has given up."""
    theirs = set(inspect.signature(nn.CrossEntropyLoss).parameters) - {"size_average", "reduce"}
    assert theirs <= set(inspect.signature(multiclass_loss).parameters)
    assert theirs <= set(inspect.signature(LinearCoreLoss).parameters)


def test_gradient_flows_through_a_network() -> None:
    torch.manual_seed(0)
    network, inputs, target = nn.Linear(4, 3), torch.randn(8, 4), torch.randint(3, (8,))
    F.cross_entropy(network(inputs), target).backward()
    expected = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    multiclass_loss(network(inputs), target, surrogate=Logistic()).backward()
    for parameter, gradient in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
