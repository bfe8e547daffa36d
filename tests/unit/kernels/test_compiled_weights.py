"""Compiled kernels with weights of classes and rows, and half precision that is computed in float32."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore import LinearCore, multiclass_loss
from linearcore.kernels import has_compiled_kernels
from linearcore.losses import robust_loss
from tests.cases import PAIRS
from tests.unit.kernels.test_compiled import TOLERANCE, agree, drawn, is_compiled, labels

pytestmark = pytest.mark.skipif(not has_compiled_kernels(), reason="built without a C compiler")


@settings(max_examples=100)
@given(
    pair=st.sampled_from(sorted(name for name, (phi, _) in PAIRS.items() if phi.kernel_identity is not None)),
    dtype=st.sampled_from(sorted(TOLERANCE, key=str)),
    size=st.tuples(st.integers(2, 20), st.sampled_from((2, 3, 17, 40))),
    reduction=st.sampled_from(("mean", "sum")),
    given_for=st.sampled_from(("classes", "rows", "both")),
    strided=st.booleans(),
)
def test_weights_of_classes_and_rows(
    pair: str, dtype: torch.dtype, size: tuple[int, int], reduction: str, given_for: str, strided: bool
) -> None:
    phi, form = PAIRS[pair]
    scores, target = drawn(*size, dtype=dtype), labels(*size)
    target[0] = -100
    weights = [drawn(length, dtype=torch.float32, seed=5 + place).abs() for place, length in enumerate(reversed(size))]
    weights[1][-1] = 0.0 if len(target) > 2 else 1.0
    if strided:
        weights = [torch.stack([weight, -weight], -1)[:, 0] for weight in weights]
    names = {"classes": ("weight",), "rows": ("sample_weight",), "both": ("weight", "sample_weight")}[given_for]
    options = dict(zip(names, weights if given_for != "rows" else weights[1:], strict=False))
    agree(multiclass_loss, scores, target, surrogate=phi, form=form, reduction=reduction, **options)
    if size[1] > 2:
        agree(robust_loss, scores, target, reduction=reduction, **options)


def test_weights_that_are_left_to_other_backends() -> None:
    """Trained weights, and a mean over weights whose sum is 0 or too large for float32."""
    scores, target = drawn(4, 5, dtype=torch.float32), labels(4, 5)
    for weight in (torch.zeros(5), -torch.ones(5), torch.full((5,), 1e-35), torch.full((5,), 1e35)):
        results = []
        for backend in ("auto", "eager"):
            leaf = scores.clone().requires_grad_()
            loss = multiclass_loss(leaf, target, weight=weight, backend=backend)
            assert not is_compiled(loss)
            results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
        for found, expected in zip(*results, strict=True):
            torch.testing.assert_close(found, expected, equal_nan=True)
    trained = torch.rand(4).requires_grad_()
    found = torch.autograd.grad(multiclass_loss(scores, target, sample_weight=trained), trained)
    torch.testing.assert_close(
        found, torch.autograd.grad(multiclass_loss(scores, target, sample_weight=trained, backend="reference"), trained)
    )
    for name, wrong in (("weight", torch.ones(4)), ("sample_weight", torch.ones(5))):
        with pytest.raises(ValueError, match=f"`{name}` must have shape"):
            multiclass_loss(scores, target, **{name: wrong})


def test_weights_that_change_before_a_second_pass_are_an_error() -> None:
    leaf, target, weight = drawn(4, 5).requires_grad_(), labels(4, 5), torch.rand(5, dtype=torch.float64)
    loss = multiclass_loss(leaf, target, weight=weight)
    loss.backward(retain_graph=True)
    weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_second_derivatives_with_weights() -> None:
    leaf, target, weight = drawn(4, 5).requires_grad_(), labels(4, 5), drawn(5, seed=2).abs()
    curvatures = []
    for backend in ("auto", "reference"):
        loss = multiclass_loss(leaf, target, weight=weight, sample_weight=drawn(4, seed=3).abs(), backend=backend)
        assert is_compiled(loss) == (backend == "auto")
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        curvatures.append(torch.autograd.grad(gradient.square().sum(), leaf)[0])
    torch.testing.assert_close(*curvatures)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16), ids=str)
@pytest.mark.parametrize("autocast", (False, True))
@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, autocast: bool, form: str) -> None:
    leaf, target = drawn(30, 20, dtype=dtype).requires_grad_(), labels(30, 20)
    exact = leaf.detach().double().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss = multiclass_loss(leaf, target, form=form, weight=torch.ones(20))
    assert loss.dtype == (torch.float32 if autocast else dtype)
    if autocast or dtype == torch.float16:  # Another dtype only in the last step, so that nothing underflows before it.
        inner = loss if autocast else loss.grad_fn.next_functions[0][0]
        assert (inner.grad_fn if autocast else inner).name() == "_WithGradientBackward"
    upstream = 2.0**10
    (loss * upstream).backward()
    (multiclass_loss(exact, target, form=form, backend="reference") * upstream).backward()
    assert leaf.grad is not None and exact.grad is not None
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(leaf.grad.double(), exact.grad, rtol=rounding, atol=rounding * float(exact.grad.abs().max()))


def test_a_tiny_gradient_in_float16_is_scaled_before_it_is_rounded() -> None:
    scores = torch.tensor([[12.0, 0.0, 0.0]], dtype=torch.float16).expand(64, 3).contiguous().requires_grad_()
    exact = scores.detach().double().requires_grad_()
    for leaf, backend in ((scores, "auto"), (exact, "reference")):
        loss = multiclass_loss(leaf, torch.zeros(64, dtype=torch.long), surrogate=LinearCore(tau=1.0), backend=backend)
        (loss.float() * 2.0**14).backward()
    assert float(exact.grad.abs().min()) > 0
    torch.testing.assert_close(scores.grad.double(), exact.grad, rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
def test_probabilities_with_any_strides(form: str) -> None:
    target = drawn(4, 20, seed=1).softmax(1)
    views = (target.t().contiguous().t(), torch.stack([target, -target], -1)[..., 0], target[:1].expand(4, 20))
    for view in views:
        losses = [
            multiclass_loss(drawn(4, 20), given, form=form, reduction="none", backend="compiled")
            for given in (view, view.contiguous())
        ]
        assert torch.equal(*losses)
