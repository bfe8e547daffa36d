"""Compiled kernels with label smoothing and probability targets, reduced in the kernel."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore import LinearCoreLoss, multiclass_loss
from linearcore.kernels import has_compiled_kernels
from linearcore.losses import robust_loss
from tests.cases import PAIRS
from tests.unit.kernels.test_compiled import TOLERANCE, UNUSUAL, agree, drawn, is_compiled, labels

pytestmark = pytest.mark.skipif(not has_compiled_kernels(), reason="built without a C compiler")

all_forms = pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))


def target_of(kind: str, size: tuple[int, int]) -> tuple[torch.Tensor, dict[str, float]]:
    """A target, and the options that go with it."""
    target = labels(*size) if kind == "smoothed" else drawn(*size, dtype=torch.float32, seed=1).softmax(1)
    return target, {} if kind == "probabilities" else {"label_smoothing": 0.1}


@settings(max_examples=150)
@given(
    pair=st.sampled_from(sorted(name for name, (phi, _) in PAIRS.items() if phi.kernel_identity is not None)),
    dtype=st.sampled_from(sorted(TOLERANCE, key=str)),
    size=st.tuples(st.integers(2, 20), st.sampled_from((2, 3, 16, 17, 100, 300))),
    kind=st.sampled_from(("smoothed", "probabilities", "both")),
    reduction=st.sampled_from(("mean", "sum")),
    ignored=st.booleans(),
    weighted=st.sampled_from(((), ("weight",), ("sample_weight",), ("weight", "sample_weight"))),
)
def test_soft_labels(
    pair: str, dtype: torch.dtype, size: tuple[int, int], kind: str, reduction: str, ignored: bool, weighted: tuple[str, ...]
) -> None:
    phi, form = PAIRS[pair]
    target, options = target_of(kind, size)
    if ignored and kind == "smoothed":
        target[0] = -7_000
    given = {"weight": drawn(size[1], dtype=torch.float32, seed=2).abs(), "sample_weight": drawn(size[0], seed=3).abs()}
    options |= {name: given[name] for name in weighted} | {"ignore_index": -7_000, "reduction": reduction}
    agree(multiclass_loss, drawn(*size, dtype=dtype), target, surrogate=phi, form=form, **options)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("form", "num_classes"), (("logodds", 1100), ("centered", 1100), ("pairwise", 450)))
def test_rows_that_need_more_memory_than_the_stack_has(form: str, num_classes: int, dtype: torch.dtype) -> None:
    target, options = target_of("smoothed", (3, num_classes))
    agree(multiclass_loss, drawn(3, num_classes, dtype=dtype), target, form=form, **options)


@pytest.mark.parametrize("kind", ("smoothed", "probabilities"))
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_the_robust_loss(kind: str, dtype: torch.dtype) -> None:
    target, options = target_of(kind, (9, 21))
    for radius in (1.0, 2.5):
        agree(robust_loss, drawn(9, 21, dtype=dtype), target, radius=radius, scale=0.1, **options)


@all_forms
@pytest.mark.parametrize("kind", ("smoothed", "probabilities"))
@pytest.mark.parametrize("rows", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_unusual_scores_are_as_in_the_eager_backend(rows: list[list[float]], kind: str, form: str) -> None:
    target, options = target_of(kind, (3, 20))
    results = []
    for backend in ("auto", "eager"):
        leaf = torch.nn.functional.pad(torch.tensor(rows), (0, 17)).requires_grad_()
        loss = multiclass_loss(leaf, target, form=form, backend=backend, **options)
        # Margins of −6e38 overflow in the loss of another class, not always in that of these forms.
        assert not is_compiled(loss) or bool(leaf.isfinite().all())
        results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
    for compiled, eager in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager, equal_nan=True)


@all_forms
@pytest.mark.parametrize("kind", ("smoothed", "probabilities"))
def test_second_derivatives_and_second_passes(form: str, kind: str) -> None:
    target, options = target_of(kind, (4, 18))
    curvatures = []
    for backend in ("auto", "reference"):
        leaf = drawn(4, 18).requires_grad_()
        loss = multiclass_loss(leaf, target, form=form, backend=backend, weight=drawn(18, seed=4).abs(), **options)
        assert is_compiled(loss) == (backend == "auto")
        once, again = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for _ in range(2))
        assert torch.equal(once, again)
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        curvatures.append(torch.autograd.grad(gradient.square().sum(), leaf)[0])
    torch.testing.assert_close(*curvatures)


def test_what_is_refused_or_ignored_is_so_as_before() -> None:
    scores, target = drawn(3, 20).requires_grad_(), labels(3, 20)
    smooth = LinearCoreLoss(label_smoothing=0.1)
    with pytest.raises(ValueError, match=r"`target` must be .*, got target\[1\] = 20"):
        smooth(scores, torch.tensor([0, 20, 1]))
    assert smooth(scores, torch.full((3,), -100)).isnan() and smooth(scores[:0], target[:0]).isnan()
    strided = torch.stack([scores, -scores], -1)[..., 0]
    assert not is_compiled(smooth(strided, target))
    torch.testing.assert_close(smooth(strided, target), smooth(scores, target))
    for wrong in (-0.1, 1.1, math.nan, "0.1"):
        with pytest.raises(ValueError, match="`label_smoothing` must be in"):
            multiclass_loss(scores, target, label_smoothing=wrong)
    probabilities = drawn(3, 20, seed=1).softmax(1)
    with pytest.raises(ValueError, match="`ignore_index` must be negative"):
        multiclass_loss(scores, probabilities, ignore_index=0)
    with pytest.raises(TypeError, match="`target` must be floating point"):
        multiclass_loss(scores, probabilities.long())


def test_probabilities_that_need_a_gradient_or_have_strides() -> None:
    scores, probabilities = drawn(3, 20).requires_grad_(), drawn(3, 20, seed=1).softmax(1)
    trained = probabilities.clone().requires_grad_()
    loss = multiclass_loss(scores, trained)
    assert not is_compiled(loss)
    (found,) = torch.autograd.grad(loss, trained)
    torch.testing.assert_close(found, torch.autograd.grad(multiclass_loss(scores, trained, backend="reference"), trained)[0])
    expected = multiclass_loss(scores, probabilities)
    for view in (probabilities.t().contiguous().t(), torch.stack([probabilities, -probabilities], -1)[..., 0]):
        found = multiclass_loss(scores, view)
        assert is_compiled(found) and torch.equal(found, expected)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=str)
def test_half_precision(dtype: torch.dtype) -> None:
    for kind in ("smoothed", "probabilities"):
        target, options = target_of(kind, (30, 20))
        leaf = drawn(30, 20, dtype=dtype).requires_grad_()
        exact = leaf.detach().double().requires_grad_()
        loss = multiclass_loss(leaf, target.to(dtype) if target.is_floating_point() else target, **options)
        assert loss.dtype == dtype
        loss.backward()
        multiclass_loss(exact, target, backend="reference", **options).backward()
        rounding = 2 * torch.finfo(dtype).eps * float(exact.grad.abs().max())
        torch.testing.assert_close(leaf.grad.double(), exact.grad, rtol=0, atol=rounding)


def test_threads_and_transforms() -> None:
    scores, target = drawn(400, 170).requires_grad_(), labels(400, 170)
    smooth = LinearCoreLoss(label_smoothing=0.1)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (2, 1):
            torch.set_num_threads(threads)
            results.append(torch.autograd.grad(smooth(scores, target), scores)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    each = torch.func.vmap(smooth)(scores.view(4, 100, 170), target.view(4, 100))
    torch.testing.assert_close(each.mean(), smooth(scores, target))
    traced = torch.compile(smooth, backend="eager", fullgraph=True)
    torch.testing.assert_close(traced(scores, target), smooth(scores, target))
