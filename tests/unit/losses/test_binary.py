"""`binary_loss` takes what torch.nn.functional.binary_cross_entropy_with_logits takes; with `Logistic` it is that."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore import Exponential, LinearCore, Logistic, Surrogate, binary_loss
from tests.cases import A_FEW

a_few_surrogates = pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))
every_reduction = pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
every_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES.keys())

SHAPES = {"()": (), "(N)": (6,), "(N, 1)": (6, 1), "(N, L)": (6, 4), "(N, L, d)": (3, 4, 2), "empty": (0, 4)}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def drawn(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return 3 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def value_and_gradient(loss, scores: Tensor, target: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, target, **options)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def same(ours: tuple[Tensor, Tensor], theirs: tuple[Tensor, Tensor]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-13, equal_nan=True)


def ours(scores: Tensor, target: Tensor, **options: object) -> Tensor:
    return binary_loss(scores, target, surrogate=Logistic(), **options)


@every_shape
@every_reduction
@both_backends
@pytest.mark.parametrize("soft", (False, True), ids=("sure", "soft"))
def test_logistic_is_bce_with_logits(shape: tuple[int, ...], reduction: str, backend: str, soft: bool) -> None:
    scores = drawn(shape)
    target = drawn(shape, 1).sigmoid() if soft else (drawn(shape, 1) > 0).double()
    theirs = value_and_gradient(F.binary_cross_entropy_with_logits, scores, target, reduction=reduction)
    same(value_and_gradient(ours, scores, target, reduction=reduction, backend=backend), theirs)
    if not soft:
        for dtype in (torch.bool, torch.long, torch.uint8):
            same(value_and_gradient(ours, scores, target.to(dtype), reduction=reduction, backend=backend), theirs)


@every_reduction
@both_backends
@pytest.mark.parametrize("soft", (False, True), ids=("sure", "soft"))
@pytest.mark.parametrize("weight_shape", ((), (4,), (6, 1), (6, 4)), ids=str)
def test_pos_weight_is_torchs(reduction: str, backend: str, soft: bool, weight_shape: tuple[int, ...]) -> None:
    """The mean divides by the number of elements and not by these weights."""
    scores, pos_weight = drawn((6, 4)), drawn(weight_shape, 2).exp()
    target = drawn((6, 4), 1).sigmoid() if soft else (drawn((6, 4), 1) > 0).double()
    options = {"pos_weight": pos_weight, "reduction": reduction}
    theirs = value_and_gradient(F.binary_cross_entropy_with_logits, scores, target, **options)
    same(value_and_gradient(ours, scores, target, backend=backend, **options), theirs)
    if not soft:
        same(value_and_gradient(ours, scores, target.bool(), backend=backend, **options), theirs)


@both_backends
@pytest.mark.parametrize("weight_shape", ((), (4,), (6, 1), (6, 4)), ids=str)
def test_sample_weight_is_torchs_weight_and_the_mean_divides_by_it(backend: str, weight_shape: tuple[int, ...]) -> None:
    scores, target, weight = drawn((6, 4)), drawn((6, 4), 1).sigmoid(), drawn(weight_shape, 2).exp()
    for reduction in ("none", "sum"):
        theirs = value_and_gradient(F.binary_cross_entropy_with_logits, scores, target, weight=weight, reduction=reduction)
        same(value_and_gradient(ours, scores, target, sample_weight=weight, reduction=reduction, backend=backend), theirs)
    total = ours(scores, target, sample_weight=weight, reduction="sum")
    torch.testing.assert_close(ours(scores, target, sample_weight=weight), total / weight.expand(6, 4).sum())


def test_integer_sample_weights_are_repetition() -> None:
    scores, target, times = drawn((5,)), drawn((5,), 1) > 0, torch.tensor([2, 0, 1, 3, 1])
    repeated = binary_loss(scores.repeat_interleave(times), target.repeat_interleave(times))
    torch.testing.assert_close(binary_loss(scores, target, sample_weight=times), repeated)


@a_few_surrogates
@both_backends
def test_is_the_surrogate_of_the_signed_margin(phi: Surrogate, backend: str) -> None:
    """ℓ = φ(y·h), y = ±1; a probability mixes the two."""
    scores, options = drawn((30,)), {"surrogate": phi, "reduction": "none", "backend": backend}
    sign = torch.where(drawn((30,), 1) > 0, 1.0, -1.0).double()
    expected = phi.value(sign * scores)
    for target in (sign > 0, (sign > 0).long(), (sign > 0).double()):
        torch.testing.assert_close(binary_loss(scores, target, **options), expected, rtol=1e-13, atol=1e-14)
    for target in (sign, sign.int()):
        torch.testing.assert_close(binary_loss(scores, target, signed=True, **options), expected, rtol=1e-13, atol=1e-14)
    t = drawn((30,), 2).sigmoid()
    mixed = t * phi.value(scores) + (1 - t) * phi.value(-scores)
    torch.testing.assert_close(binary_loss(scores, t, **options), mixed, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(binary_loss(scores, 2 * t - 1, signed=True, **options), mixed, rtol=1e-12, atol=1e-13)


@every_dtype
@every_reduction
@both_backends
@pytest.mark.parametrize("autocast", (False, True), ids=("eager", "autocast"))
def test_dtype_is_cross_entropys(dtype: torch.dtype, reduction: str, backend: str, autocast: bool) -> None:
    scores = drawn((6, 4)).to(dtype).requires_grad_()
    weights = {"pos_weight": drawn((4,)).exp(), "sample_weight": drawn((6, 4)).exp()}  # float64, whatever the scores are
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        expected = F.cross_entropy(scores, torch.zeros(6, dtype=torch.long)).dtype
        for target in (drawn((6, 4), 1) > 0, drawn((6, 4), 1).sigmoid()):
            for options in ({}, weights):
                loss = binary_loss(scores, target, reduction=reduction, backend=backend, **options)
                assert loss.dtype == expected
                assert torch.autograd.grad(loss.sum(), scores)[0].dtype == dtype


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=("bfloat16", "float16"))
@both_backends
def test_half_precision_rounds_only_at_the_end(dtype: torch.dtype, backend: str) -> None:
    scores, half = drawn((200, 4)).to(dtype), torch.finfo(dtype).eps / 2
    for target in (drawn((200, 4), 1) > 0, drawn((200, 4), 1).sigmoid()):
        low, exact = (
            value_and_gradient(binary_loss, x, target, reduction="none", backend=backend) for x in (scores, scores.double())
        )
        for mine, other in zip(low, exact, strict=True):
            smallest = torch.finfo(dtype).smallest_normal
            torch.testing.assert_close(mine.double(), other, rtol=1.01 * half + 1e-6, atol=max(2 * smallest, 1e-7))


@both_backends
def test_sure_float_targets_do_not_trip_over_losses_that_overflow(backend: str) -> None:
    """0 · inf: at score 100 the exponential loss of the other label overflows in float32."""
    scores, target = torch.tensor([100.0, -100.0]), torch.tensor([1.0, 0.0])
    losses, gradient = value_and_gradient(binary_loss, scores, target, surrogate=Exponential(), backend=backend)
    assert 0 <= float(losses) < 1e-30
    assert (gradient.abs() < 1e-30).all()


@both_backends
def test_layout_does_not_matter_and_nothing_is_written(backend: str) -> None:
    for scores in (drawn((4, 6)).T, drawn((12, 4))[::2], drawn((1, 4)).expand(6, 4)):
        for target in ((drawn((4, 6), 1) > 0).T, drawn((4, 6), 1).sigmoid().T):
            before = scores.clone(), target.clone()
            leaf = scores.detach().requires_grad_()
            value = binary_loss(leaf, target, reduction="none", backend=backend)
            gradient = torch.autograd.grad(value, leaf, drawn((6, 4), 3))[0]
            dense = scores.clone().contiguous().requires_grad_()
            expected = binary_loss(dense, target.clone().contiguous(), reduction="none", backend="reference")
            same((value, gradient), (expected, torch.autograd.grad(expected, dense, drawn((6, 4), 3))[0]))
            assert torch.equal(scores, before[0]) and torch.equal(target, before[1])


def test_upstream_gradients_multiply_element_by_element() -> None:
    scores, upstream = drawn((6, 4)).requires_grad_(), drawn((6, 4), 3)
    losses = binary_loss(scores, drawn((6, 4), 1) > 0, reduction="none", backend="eager")
    (with_upstream,) = torch.autograd.grad(losses, scores, upstream, retain_graph=True)
    (alone,) = torch.autograd.grad(losses.sum(), scores)
    torch.testing.assert_close(with_upstream, upstream * alone)


def test_gradients_reach_targets_and_weights() -> None:
    """The default backend differentiates them too, also at a share of exactly 0 or 1."""
    target = drawn((6, 4), 1).sigmoid()
    target[0, :2] = torch.tensor([0.0, 1.0])
    leaves = [tensor.requires_grad_() for tensor in (target, drawn((4,), 2).exp(), drawn((6, 1), 3).exp())]

    def loss(target: Tensor, pos_weight: Tensor, sample_weight: Tensor) -> Tensor:
        return binary_loss(drawn((6, 4)), target, pos_weight=pos_weight, sample_weight=sample_weight)

    assert torch.autograd.gradcheck(loss, leaves)


@pytest.mark.parametrize("which", ("target", "pos_weight"))
def test_the_blocked_backend_refuses_gradients_it_cannot_give(which: str) -> None:
    tensors = {"target": torch.full((3,), 0.5), "pos_weight": torch.ones(3)}
    tensors[which].requires_grad_()
    with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs, got 'eager'"):
        binary_loss(torch.zeros(3), backend="eager", **tensors)


def test_validate_lets_good_input_pass_and_defaults_are_documented() -> None:
    scores = drawn((6,))
    for target, signed in ((drawn((6,)) > 0, False), (drawn((6,)).sigmoid(), False), (torch.ones(6).int(), True)):
        plain = binary_loss(scores, target, signed=signed)
        assert binary_loss(scores, target, signed=signed, validate=True) == plain
        assert binary_loss(scores, target, signed=signed, surrogate=LinearCore()) == plain
