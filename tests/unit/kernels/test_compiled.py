"""Compiled kernels: plain calls of the losses against the reference, and which values are left to other backends."""

import math
import os
import shlex
import shutil
import subprocess

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import linearcore.kernels.compiled._library as library_module
from linearcore import LinearCore, LinearCoreLoss, binary_loss, multiclass_loss
from linearcore.kernels import has_compiled_kernels
from linearcore.kernels.compiled import build
from linearcore.losses import Form, robust_loss
from linearcore.surrogates import Surrogate
from tests.cases import PAIRS, SURROGATES, cross

pytestmark = pytest.mark.skipif(not has_compiled_kernels(), reason="built without a C compiler")

TOLERANCE = {torch.float64: 1e-13, torch.float32: 3e-6, torch.bfloat16: 8e-3}


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return (3 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))).to(dtype)


def labels(num_rows: int, num_classes: int, seed: int = 0) -> Tensor:
    return torch.randint(num_classes, (num_rows,), generator=torch.Generator().manual_seed(seed))


def is_compiled(loss: Tensor) -> bool:
    """Whether the whole loss is one call of a kernel."""
    return loss.grad_fn is not None and loss.grad_fn.name() == "_WithGradientBackward"


def agree(function, scores: Tensor, target: Tensor, **options: object) -> None:
    """Compares the compiled loss and gradient with the reference in float64."""
    leaf, exact = scores.clone().requires_grad_(), scores.double().clone().requires_grad_()
    loss = function(leaf, target, **options)
    assert is_compiled(loss) and loss.dtype == scores.dtype
    reference = function(exact, target.double() if target.is_floating_point() else target, backend="reference", **options)
    loss.backward()
    reference.backward()
    assert leaf.grad is not None and exact.grad is not None
    tolerance = TOLERANCE[scores.dtype]
    torch.testing.assert_close(loss.detach().double(), reference.detach(), rtol=tolerance, atol=tolerance)
    largest = max(float(exact.grad.abs().max()), 1e-3)
    torch.testing.assert_close(leaf.grad.double(), exact.grad, rtol=tolerance, atol=tolerance * largest)
    with torch.no_grad():  # Without a gradient it is the same sum.
        assert torch.equal(function(scores, target, **options), loss)


@settings(max_examples=150)
@given(
    pair=st.sampled_from(sorted(name for name, (phi, _) in PAIRS.items() if phi.kernel_identity is not None)),
    dtype=st.sampled_from(sorted(TOLERANCE, key=str)),
    size=st.tuples(st.integers(1, 20), st.sampled_from((2, 3, 15, 16, 17, 100, 1100))),
    reduction=st.sampled_from(("mean", "sum")),
    ignored=st.booleans(),
)
def test_rows_are_those_of_the_reference(
    pair: str, dtype: torch.dtype, size: tuple[int, int], reduction: str, ignored: bool
) -> None:
    phi, form = PAIRS[pair]
    scores, target = drawn(*size, dtype=dtype), labels(*size)
    if ignored and len(target) > 1:
        target[0] = 7_000
    agree(multiclass_loss, scores, target, surrogate=phi, form=form, reduction=reduction, ignore_index=7_000)


@settings(max_examples=100)
@given(
    pair=st.sampled_from(sorted(name for name, (phi, _) in PAIRS.items() if phi.kernel_identity is not None)),
    dtype=st.sampled_from((torch.float32, torch.float64)),
    size=st.tuples(st.integers(1, 20), st.sampled_from((2, 3, 15, 16, 17, 100, 300))),
    kind=st.sampled_from(("smoothed", "probability", "one-hot")),
    is_weighted=st.booleans(),
)
def test_rows_with_a_weight_for_each_class(
    pair: str, dtype: torch.dtype, size: tuple[int, int], kind: str, is_weighted: bool
) -> None:
    phi, form = PAIRS[pair]
    target = {
        "smoothed": labels(*size),
        "probability": drawn(*size, dtype=dtype, seed=1).softmax(1),
        "one-hot": torch.nn.functional.one_hot(labels(*size), size[1]).to(dtype),
    }[kind]
    weight = drawn(size[1], dtype=dtype, seed=2).abs() if is_weighted else None
    options = {"surrogate": phi, "form": form, "weight": weight, "label_smoothing": 0.1 if kind == "smoothed" else 0.0}
    leaf, eager, exact = (drawn(*size, dtype=dtype).to(kept).requires_grad_() for kept in (dtype, dtype, torch.float64))
    upstream = drawn(size[0], seed=3)
    losses = multiclass_loss(leaf, target, reduction="none", backend="compiled", **options)
    assert losses.grad_fn is not None and losses.grad_fn.next_functions[0][0].name() == "_WithGradientBackward"
    if weight is not None:
        options["weight"] = weight.double()
    others = multiclass_loss(eager, target, reduction="none", backend="eager", **options)
    target = target if kind == "smoothed" else target.double()
    reference = multiclass_loss(exact, target, reduction="none", backend="reference", **options)
    for values in (losses, others, reference):
        (values * upstream).sum().backward()
    assert leaf.grad is not None and eager.grad is not None and exact.grad is not None
    pairs = ((losses, others, reference), (leaf.grad, eager.grad, exact.grad))
    for ours, theirs, true in pairs:  # The error is at most that of the other implementation, and a few roundings.
        rounding = 8 * torch.finfo(dtype).eps * true.abs().max()
        if dtype == torch.float64:
            rounding = rounding * 10  # The other implementation is the reference itself.
        assert (ours - true).abs().max() <= 1.1 * (theirs - true).abs().max() + rounding


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
def test_second_derivatives_of_weighted_classes(form: str) -> None:
    leaf, target = drawn(4, 5).requires_grad_(), drawn(4, 5, seed=1).softmax(1)
    curvatures = []
    for backend in ("compiled", "reference"):
        loss = multiclass_loss(leaf, target, form=form, backend=backend)
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        curvatures.append(torch.autograd.grad(gradient.square().sum(), leaf)[0])
    torch.testing.assert_close(*curvatures)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("tau", "sides"), ((2.0, 1), (0.3, 1), (2.0, 2)))
@pytest.mark.parametrize("radius", (1.0, 2.5))
def test_the_robust_loss(dtype: torch.dtype, tau: float, sides: int, radius: float) -> None:
    scores = drawn(9, 21, dtype=dtype)
    scores[3] *= 1e-5  # A norm below the lower bound.
    scores[4] += 1e3
    scores[5] *= 1e4
    agree(robust_loss, scores, labels(9, 21), surrogate=LinearCore(tau=tau, sides=sides), radius=radius, scale=0.1)


@pytest.mark.parametrize("phi", [phi for phi in SURROGATES.values() if phi.kernel_identity is not None], ids=repr)
def test_binary_losses(phi: Surrogate) -> None:
    for size in ((1,), (7, 3), (1000,)):
        scores = drawn(*size)
        for target in (scores > 1, (scores > 1).long(), (scores > 1).byte(), scores.sigmoid()):
            agree(binary_loss, scores, target, surrogate=phi)
    agree(binary_loss, drawn(300, dtype=torch.float32), drawn(300, dtype=torch.float32, seed=1).sigmoid(), reduction="sum")


def test_threads_do_not_change_the_result() -> None:
    scores, target = drawn(300, 1000, dtype=torch.float32).requires_grad_(), labels(300, 1000)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (2, 2, 3, 1):
            torch.set_num_threads(threads)
            loss = multiclass_loss(scores, target, form="pairwise")
            results.append((loss.detach(), *torch.autograd.grad(loss, scores)))
    finally:
        torch.set_num_threads(before)
    for loss, gradient in results[1:]:
        assert torch.equal(gradient, results[0][1])
        torch.testing.assert_close(loss, results[0][0])
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][0], results[2][0])


def test_upstream_gradients_and_second_passes() -> None:
    leaf, target = drawn(4, 5).requires_grad_(), labels(4, 5)
    loss = multiclass_loss(leaf, target)
    (once,) = torch.autograd.grad(loss, leaf, retain_graph=True)
    (again,) = torch.autograd.grad(loss, leaf, retain_graph=True)
    (scaled,) = torch.autograd.grad(loss, leaf, torch.tensor(-3.0, dtype=torch.float64), retain_graph=True)
    assert torch.equal(once, again)
    torch.testing.assert_close(scaled, -3 * once)
    (graph,) = torch.autograd.grad(loss, leaf, create_graph=True)
    (curvature,) = torch.autograd.grad(graph.square().sum(), leaf)
    (exact,) = torch.autograd.grad(multiclass_loss(leaf, target, backend="reference"), leaf, create_graph=True)
    torch.testing.assert_close(curvature, *torch.autograd.grad(exact.square().sum(), leaf))


#: First three of 20 scores in each row, the others are 0: the kernels leave these to the eager backend.
UNUSUAL = {
    "masked": [[1.0, -math.inf, 0.0]] * 3,
    "masked label": [[-math.inf, 1.0, 0.0]] * 3,
    "infinite": [[1.0, math.inf, 0.0]] * 3,
    "nan": [[1.0, 0.0, math.nan]] * 3,
    "overflow": [[-3e38, 3e38, -3e38]] * 3,
}


@pytest.mark.parametrize("rows", UNUSUAL.values(), ids=UNUSUAL.keys())
@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
@pytest.mark.parametrize("reduction", ("mean", "none"))
def test_unusual_scores_are_as_in_the_eager_backend(rows: list[list[float]], form: str, reduction: str) -> None:
    results = []
    for backend in ("auto", "eager"):
        leaf = torch.nn.functional.pad(torch.tensor(rows), (0, 17)).requires_grad_()
        loss = multiclass_loss(leaf, torch.tensor([0, 0, 0]), form=form, reduction=reduction, backend=backend)
        assert not is_compiled(loss)
        results.append((loss.detach(), *torch.autograd.grad(loss.sum(), leaf)))
    for compiled, eager in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager, equal_nan=True, rtol=0, atol=0)


def test_what_is_refused_or_ignored_is_so_as_before() -> None:
    scores = drawn(3, 4).requires_grad_()
    with pytest.raises(ValueError, match=r"`target` must be .*, got target\[1\] = 4"):
        multiclass_loss(scores, torch.tensor([0, 4, 1]))
    assert multiclass_loss(scores, torch.full((3,), -100)).isnan()
    assert multiclass_loss(scores[:0], torch.zeros(0, dtype=torch.long)).isnan()
    strided = multiclass_loss(scores.t(), torch.tensor([0, 2, 1, 1]))
    assert not is_compiled(strided)
    torch.testing.assert_close(strided, multiclass_loss(scores.t().contiguous(), torch.tensor([0, 2, 1, 1])))
    assert not is_compiled(binary_loss(torch.tensor([math.inf, 1.0], requires_grad=True), torch.tensor([1, 1])))


@pytest.mark.parametrize("loss", (multiclass_loss, robust_loss))
@pytest.mark.parametrize("ignore_index", (2**63, -(2**63) - 1))
def test_an_ignored_label_beyond_64_bits_is_left_to_other_backends(loss, ignore_index: int) -> None:
    scores, target = drawn(5, 3).requires_grad_(), labels(5, 3)
    result = loss(scores, target, ignore_index=ignore_index)
    assert not is_compiled(result)
    torch.testing.assert_close(result, loss(scores, target))
    for inside in (2**63 - 1, -(2**63)):
        assert is_compiled(loss(scores, target, ignore_index=inside))


def test_autocast_has_its_dtype() -> None:
    scores, target = drawn(4, 3, dtype=torch.bfloat16), labels(4, 3)
    assert LinearCoreLoss()(scores, target).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert LinearCoreLoss()(scores, target).dtype == torch.float32


@cross(
    phi={name: phi for name, phi in SURROGATES.items() if phi.kernel_identity is not None},
    bad=(math.nan, math.inf, -math.inf),
    dtype=(torch.float32, torch.float64),
)
def test_scores_that_are_not_finite_never_have_a_finite_loss(phi: Surrogate, bad: float, dtype: torch.dtype) -> None:
    for size in (1, 3, 40):
        scores = drawn(size, dtype=dtype)
        scores[size // 2] = bad
        for target in (torch.ones(size, dtype=dtype), torch.zeros(size, dtype=torch.long)):
            assert not binary_loss(scores, target, surrogate=phi).isfinite()


@pytest.mark.parametrize("backend", ("auto", "eager", "reference"))
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_a_mean_score_that_overflows_has_no_finite_loss(backend: str, smoothing: float) -> None:
    """φ(∞) is 0: without a check the loss of this wrong prediction would be 0."""
    scores, phi = torch.full((2, 20), 3e38), LinearCore("truncated_quadratic")
    scores[:, 0] = -3e38
    target = torch.zeros(2, dtype=torch.long)
    loss = multiclass_loss(
        scores, target, form="centered", surrogate=phi, label_smoothing=smoothing, backend=backend, reduction="none"
    )
    exact = multiclass_loss(
        scores.double(), target, form="centered", surrogate=phi, label_smoothing=smoothing, reduction="none"
    )
    assert bool(((loss.double() / exact - 1).abs() < 1e-3).all()) or not loss.isfinite().any()


@pytest.mark.parametrize("backend", ("auto", "eager", "reference"))
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_a_mean_score_that_overflows_in_float64_has_no_finite_loss(backend: str, smoothing: float) -> None:
    scores, phi = torch.tensor([[0.0, 1.5e308, 1.5e308]], dtype=torch.float64), LinearCore("truncated_quadratic")
    options = {"form": "centered", "surrogate": phi, "label_smoothing": smoothing, "backend": backend}
    assert not multiclass_loss(scores, torch.tensor([0]), **options).isfinite()


def test_jit_tracing_and_negative_views_do_not_use_the_kernels() -> None:
    scores, target = drawn(4, 3), labels(4, 3)
    traced = torch.jit.trace(lambda scores: multiclass_loss(scores, target), scores)
    other = drawn(4, 3, seed=1)
    torch.testing.assert_close(traced(other), multiclass_loss(other, target))
    torch.testing.assert_close(multiclass_loss(torch._neg_view(scores), target), multiclass_loss(-scores, target))


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(path: str) -> None:
        raise OSError(path)

    monkeypatch.setattr(library_module.ctypes, "CDLL", missing)
    cached = library_module.library, library_module.entry
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("without_library")
def test_without_a_library_everything_works_and_one_warning_is_given() -> None:
    scores, target = drawn(4, 3).requires_grad_(), labels(4, 3)
    with pytest.warns(RuntimeWarning, match="compiled CPU kernels") as caught:
        losses = [multiclass_loss(scores, target), multiclass_loss(scores, target), binary_loss(scores, scores > 0)]
    assert len(caught) == 1 and not any(map(is_compiled, losses))
    torch.testing.assert_close(losses[0], multiclass_loss(scores, target, backend="reference"))


def test_a_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "source_hash", lambda: 0)
    library_module.library.cache_clear()
    with pytest.warns(RuntimeWarning, match="another version"):
        assert library_module.library() is None
    library_module.library.cache_clear()


def test_compilers_have_nothing_to_warn_of() -> None:
    """Newer compilers refuse what older ones warn of, such as a pointer to a function with other arguments."""
    compiler, folder = shlex.split(os.environ.get("CC", "cc")), build.LIBRARY.parent
    if shutil.which(compiler[0]) is None:
        pytest.skip("there is no C compiler")
    flags = [*build.FLAGS, "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fsyntax-only", "-DLC_SOURCE_HASH=0LL"]
    done = subprocess.run([*compiler, *flags, *map(str, sorted(folder.glob("*.c")))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_building_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(build, "LIBRARY", tmp_path / "_kernels.so")
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "no C compiler" in str(build.compile_kernels())
    (tmp_path / "broken.c").write_text("this is not C")
    monkeypatch.setenv("CC", "cc")
    assert "failed" in str(build.compile_kernels())
    assert not build.LIBRARY.exists() and [path.name for path in tmp_path.iterdir()] == ["broken.c"]


def test_a_form_of_a_user_is_not_compiled() -> None:
    class Largest(Form):
        name = "largest"

        def hard_losses(self, surrogate, scores, labels):
            return surrogate._value(self.decision_margin(scores, labels.index))

    scores = drawn(4, 3).requires_grad_()
    assert not is_compiled(multiclass_loss(scores, labels(4, 3), form=Largest()))
