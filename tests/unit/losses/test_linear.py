"""The loss of a linear layer in chunks: equal to `multiclass_loss` of all scores, and no score matrix."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from linearcore import LinearCore, linear_multiclass_loss, multiclass_loss
from linearcore.forms import Labels
from linearcore.losses import Form
from linearcore.surrogates import Surrogate
from tests.cases import A_FEW, PAIRS, a_few_pairs
from tests.cases import FORMS as FORMS

ROWS, WIDTH, CLASSES = 6, 3, 300
TARGET = torch.tensor([0, 299, -100, 2, 2, 256])
#: Chunks of 256 classes and of single rows in float64.
CHUNK = 8 * ROWS * 256
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
both_backends = pytest.mark.parametrize("backend", ("auto", "eager"))


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def leaves(
    rows: int = ROWS, width: int = WIDTH, classes: int = CLASSES, dtype: torch.dtype = torch.float64, seed: int = 0
) -> list[Tensor]:
    """Hidden states, weight and bias."""
    shapes = ((rows, width), (classes, width), (classes,))
    return [drawn(*shape, seed=seed + place, dtype=dtype).requires_grad_() for place, shape in enumerate(shapes)]


def ours(layer: list[Tensor], target: Tensor = TARGET, **options: object) -> Tensor:
    hidden, weight, bias = layer
    return linear_multiclass_loss(hidden, weight, target, linear_bias=bias, **({"chunk_bytes": CHUNK} | options))


def composed(layer: list[Tensor], target: Tensor = TARGET, **options: object) -> Tensor:
    return multiclass_loss(F.linear(*layer), target, **options)


def with_gradients(function: Callable[..., Tensor], layer: list[Tensor], upstream: Tensor | None, **options: object) -> list:
    loss = function(layer, **options)
    needed = [tensor for tensor in layer if tensor.requires_grad]
    grad_output = torch.ones_like(loss) if upstream is None else upstream.to(loss.dtype).expand_as(loss)
    return [loss.detach(), *torch.autograd.grad(loss, needed, grad_output)]


def close(found: list[Tensor], expected: list[Tensor], tolerance: float = 1e-10) -> None:
    for mine, right in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, right.to(mine.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)


@dataclass(frozen=True)
class Case:
    """One call: its layer, target and options, and the gradient of its result."""

    target: Tensor
    options: dict[str, object]
    masked: list[int]
    upstream: float
    chunk: int
    backend: str


@st.composite
def cases(draw: st.DrawFn) -> Case:
    phi, form = PAIRS[draw(st.sampled_from(sorted(PAIRS)))]
    kind = draw(st.sampled_from(("index", "index", "index", "smoothed", "probability")))
    weighed = st.one_of(st.none(), st.integers(0, 99))
    vector = lambda size, seed: None if seed is None else drawn(size, seed=seed).abs()  # noqa: E731
    weight, per_row, margin = draw(weighed), draw(weighed), draw(weighed)
    options = {
        "surrogate": phi,
        "form": form,
        "reduction": draw(st.sampled_from(("mean", "sum", "none"))),
        "weight": vector(CLASSES, weight),
        "sample_weight": vector(ROWS, per_row),
        "class_margin": vector(CLASSES, margin),
        "label_smoothing": 0.1 if kind == "smoothed" else 0.0,
    }
    target = TARGET
    if kind == "probability":
        target = drawn(ROWS, CLASSES, seed=draw(st.integers(0, 9))).softmax(1)
        options["label_smoothing"] = 0.1 * draw(st.integers(0, 1))
    masked = draw(st.lists(st.integers(3, 255), max_size=3)) if kind == "index" else []
    chunk = draw(st.sampled_from((1, CHUNK, 10**9)))
    backend = draw(st.sampled_from(("auto", "eager", "reference")))
    return Case(target, options, masked, draw(st.sampled_from((1.0, -2.5))), chunk, backend)


@settings(max_examples=60)
@given(case=cases())
def test_equals_the_loss_of_all_scores(case: Case) -> None:
    results = []
    for function, more in ((composed, {}), (ours, {"chunk_bytes": case.chunk, "backend": case.backend})):
        layer = leaves()
        with torch.no_grad():
            layer[2][case.masked] = -math.inf
        upstream = torch.tensor(case.upstream)
        if case.options["reduction"] == "none":
            upstream = upstream * drawn(ROWS, seed=7)
        results.append(with_gradients(function, layer, upstream, target=case.target, **case.options, **more))
    scale = max(1.0, *(float(part.nan_to_num(0.0, 0.0, 0.0).abs().max()) for part in results[0]))
    close([part / scale for part in results[1]], [part / scale for part in results[0]])


@a_few_pairs
@both_backends
@pytest.mark.parametrize("reduction", ("mean", "none"))
def test_every_form_and_a_few_surrogates(phi: Surrogate, form: Form, backend: str, reduction: str) -> None:
    options = {"surrogate": phi, "form": form, "reduction": reduction}
    expected = with_gradients(composed, leaves(), torch.tensor(3.0), **options)
    close(with_gradients(ours, leaves(), torch.tensor(3.0), backend=backend, **options), expected)
    assert expected[1].abs().sum() > 0 and (expected[1][2] == 0).all()


@every_form
@both_backends
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16), ids=str)
@pytest.mark.parametrize("reduction", ("mean", "none"))
def test_rounding(form: Form, backend: str, dtype: torch.dtype, reduction: str) -> None:
    """The error is at most that of all scores in the same dtype, with one unit in the last place more.

    Errors are root mean squares over ten draws: a single one depends on the order in which a processor adds.
    """
    options = {"form": form, "reduction": reduction}
    upstream = torch.tensor(64.0)  # As a GradScaler's, so that float16 does not underflow.
    errors = []
    for draw in range(10):
        layer = leaves(dtype=dtype, seed=10 * draw)
        exact = [tensor.detach().double().requires_grad_() for tensor in layer]
        expected = with_gradients(composed, exact, upstream, **options)
        plain = with_gradients(composed, layer, upstream, backend="reference", **options)
        found = with_gradients(ours, layer, upstream, backend=backend, **options)
        for mine, theirs, right in zip(found, plain, expected, strict=True):
            assert mine.dtype == theirs.dtype
            unit = torch.finfo(dtype).eps * right.abs().max()
            errors += [(one.double() - right).abs().max() / unit for one in (mine, theirs)]
    errors_of_both = torch.stack(errors).view(10, -1, 2).square().mean(0).sqrt()
    assert (errors_of_both[:, 0] <= 1.1 * errors_of_both[:, 1] + 1).all()


def test_the_gradient_of_centered_is_exact_where_all_margins_are_in_the_core() -> None:
    """It is then a small difference of large sums, unless the sums are of differences."""
    layer = [tensor.detach().mul(0.01).bfloat16().requires_grad_() for tensor in leaves(64, 16, 2000)]
    target = torch.arange(64)
    exact = [tensor.detach().double().requires_grad_() for tensor in layer]
    options = {"form": "centered", "surrogate": LinearCore("truncated_quadratic", tau=2.0), "target": target}
    expected = with_gradients(composed, exact, None, **options)
    found = with_gradients(ours, layer, None, **options, chunk_bytes=2 * 64 * 512)
    for mine, right in zip(found, expected, strict=True):
        rest = slice(64 if right.shape[:1] == (2000,) else 0, None)  # The rows of the labels are large.
        mine, right = (part.reshape(-1, *part.shape[1:]) for part in (mine, right))
        assert (mine.double() - right)[rest].abs().max() <= 2**-7 * right[rest].abs().max()


def test_the_factor_of_a_grad_scaler_comes_before_float16_rounds() -> None:
    layer = leaves(64, 2, 40_000, torch.float16)
    options = {"form": "pairwise", "target": torch.arange(64), "surrogate": LinearCore(tau=50.0)}
    exact = [tensor.detach().double().requires_grad_() for tensor in layer]
    expected = with_gradients(composed, exact, torch.tensor(2.0**15), **options)
    found = with_gradients(ours, layer, torch.tensor(2.0**15), **options, chunk_bytes=2 * 64 * 4096)
    assert (found[2].double() - expected[2])[64:].abs().max() <= 0.01 * expected[2][64:].abs().max()


@both_backends
def test_ignored_rows_may_have_infinite_slopes(backend: str) -> None:
    results = []
    for function, more in ((composed, {}), (ours, {"backend": backend})):
        layer = leaves()
        with torch.no_grad():
            layer[0][2] *= 1e5
        results.append(with_gradients(function, layer, None, form="pairwise", surrogate=A_FEW["exponential"], **more))
    close(results[1], results[0])
    assert all(part.isfinite().all() for part in results[0])


@every_form
@pytest.mark.parametrize("frozen", (0, 1, 2, (0, 1), (1, 2)))
def test_frozen_inputs(form: Form, frozen: int | tuple[int, ...]) -> None:
    results = []
    for function in (composed, ours):
        layer = leaves()
        for place in frozen if isinstance(frozen, tuple) else (frozen,):
            layer[place].requires_grad_(False)
        results.append(with_gradients(function, layer, None, form=form))
    close(results[1], results[0])


@every_form
def test_without_bias_and_without_gradient(form: Form) -> None:
    hidden, weight, _ = leaves()
    expected = multiclass_loss(hidden @ weight.t(), TARGET, form=form)
    for context in (torch.no_grad(), torch.enable_grad()):
        with context:
            found = linear_multiclass_loss(hidden, weight, TARGET, form=form, chunk_bytes=CHUNK)
        close([found], [expected])
    found.backward()
    assert hidden.grad is not None


@every_form
@pytest.mark.parametrize("lead", ((), (1,), (2, 3), (0,), (2, 0, 3)))
@pytest.mark.parametrize("reduction", ("sum", "none"))
def test_leading_shapes(form: Form, lead: tuple[int, ...], reduction: str) -> None:
    hidden, (_, weight, bias) = drawn(*lead, WIDTH).requires_grad_(), leaves()
    target = torch.arange(math.prod(lead)).reshape(lead)
    found = ours([hidden, weight, bias], target, form=form, reduction=reduction)
    flat = composed([hidden.reshape(-1, WIDTH), weight, bias], target.reshape(-1), form=form, reduction=reduction)
    assert found.shape == (lead if reduction == "none" else ())
    close([found], [flat.reshape(found.shape)])
    found.sum().backward()
    assert hidden.grad.shape == hidden.shape and weight.grad.shape == weight.shape and bias.grad.isfinite().all()
    probability = drawn(*lead, CLASSES).softmax(-1)
    soft = ours([hidden, weight, bias], probability, form=form, reduction=reduction)
    rows = composed(
        [hidden.reshape(-1, WIDTH), weight, bias], probability.reshape(-1, CLASSES), form=form, reduction=reduction
    )
    close([soft], [rows.reshape(soft.shape)])


@every_form
@both_backends
def test_all_rows_ignored(form: Form, backend: str) -> None:
    layer = leaves()
    loss = ours(layer, torch.full((ROWS,), -100), form=form, backend=backend)
    assert loss.isnan()  # As in torch.
    loss.backward()
    assert all((tensor.grad == 0).all() for tensor in layer)


@every_form
@both_backends
@pytest.mark.parametrize("wrong", (-1, CLASSES))
def test_a_label_out_of_range_raises(form: Form, backend: str, wrong: int) -> None:
    target = TARGET.clone()
    target[1] = wrong
    with pytest.raises(ValueError, match=r"`target` must be in \[0, 300\)"):
        ours(leaves(), target, form=form, backend=backend)


@every_form
@both_backends
@pytest.mark.parametrize("place", (299, 17))
@pytest.mark.parametrize("value", (-math.inf, math.inf, math.nan))
def test_infinite_biases(form: Form, backend: str, value: float, place: int) -> None:
    """Of a label (299) and of another class. Nothing finite comes out where `multiclass_loss` has inf or NaN."""
    results = []
    for function, more in ((composed, {"backend": "eager"}), (ours, {"backend": backend})):
        layer = leaves()
        with torch.no_grad():
            layer[2][place] = value
        results.append(with_gradients(function, layer, drawn(ROWS, seed=8).abs(), form=form, reduction="none", **more))
    for found, expected in zip(*reversed(results), strict=True):
        assert torch.equal(found.isfinite(), expected.isfinite())
        finite = expected.isfinite()
        close([found[finite]], [expected[finite]])
    if place == 299 and value == -math.inf:
        assert results[1][0][1] == math.inf


@every_form
@both_backends
def test_scores_that_are_minus_infinity_for_some_rows_only(form: Form, backend: str) -> None:
    """An overflow of the product, so that the number of masked classes differs between rows."""
    results = []
    for function in (composed, ours):
        layer = leaves(dtype=torch.float32)
        with torch.no_grad():
            layer[0][0], layer[1][77] = 1e20, -1e20
            layer[0][1:] = layer[0][1:].abs()
        more = {} if function is composed else {"backend": backend}
        results.append(with_gradients(function, layer, None, form=form, reduction="none", **more)[0])
    finite = results[0].isfinite()
    close([results[1][finite]], [results[0][finite]], 1e-4)
    assert torch.equal(results[0].isfinite(), results[1].isfinite())


@every_form
def test_second_derivatives(form: Form) -> None:
    layer = [tensor.detach()[:, :2].requires_grad_() if tensor.dim() == 2 else tensor for tensor in leaves()]
    options = {"form": form, "surrogate": A_FEW["logistic"]}
    results = []
    for function in (composed, ours):
        gradients = torch.autograd.grad(function(layer, **options), layer, create_graph=True)
        total = sum(gradient.square().sum() for gradient in gradients)
        results.append(torch.autograd.grad(total, layer))
    close(results[1], results[0])


@every_form
@pytest.mark.parametrize("reduction", ("mean", "none"))
def test_a_second_backward_pass(form: Form, reduction: str) -> None:
    layer = leaves()
    loss = ours(layer, form=form, reduction=reduction)
    upstream = torch.ones_like(loss) * 2.0
    first = torch.autograd.grad(loss, layer, upstream, retain_graph=True)
    close(list(torch.autograd.grad(loss, layer, upstream / 2)), [gradient / 2 for gradient in first])


def test_an_input_overwritten_before_the_second_pass_is_an_error() -> None:
    layer = leaves()
    loss = ours(layer)
    loss.backward(retain_graph=True)
    with torch.no_grad():
        layer[1].mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        loss.backward()


@every_form
def test_transforms_take_the_reference(form: Form) -> None:
    hidden, weight, bias = (tensor.detach() for tensor in leaves())
    expected = with_gradients(composed, leaves(), None, form=form)
    gradient = torch.func.grad(lambda states: ours([states, weight, bias], form=form))(hidden)
    close([gradient], [expected[1]])
    _, tangent = torch.func.jvp(lambda states: ours([states, weight, bias], form=form), (hidden,), (hidden,))
    close([tangent], [(gradient * hidden).sum()])
    stacked = torch.func.vmap(lambda states: ours([states, weight, bias], form=form))(torch.stack([hidden, 2 * hidden]))
    close([stacked[0]], [expected[0]])


def test_weights_that_are_trained_take_the_reference() -> None:
    sample_weight = drawn(ROWS, seed=5).abs().requires_grad_()
    results = []
    for function in (composed, ours):
        loss = function(leaves(), sample_weight=sample_weight, form="pairwise")
        results.append([loss.detach(), *torch.autograd.grad(loss, sample_weight)])
    close(results[1], results[0])
    with pytest.raises(ValueError, match="`backend` must be able to differentiate"):
        ours(leaves(), sample_weight=sample_weight, backend="eager")


@every_form
def test_autocast(form: Form) -> None:
    results = []
    for function in (composed, ours):
        layer = leaves(dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            loss = function(layer, form=form)
        loss.backward()
        assert loss.dtype == torch.float32 and all(tensor.grad.dtype == torch.float32 for tensor in layer)
        results.append([loss.detach(), *(tensor.grad for tensor in layer)])
    close(results[1], results[0], 1e-2)


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest result that is not a view of `given`."""

    def __init__(self, given: Tensor) -> None:
        super().__init__()
        self.given, self.largest = given.untyped_storage().data_ptr(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() != self.given:
                self.largest = max(self.largest, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@pytest.mark.parametrize("reduction", ("mean", "none"))
@pytest.mark.parametrize(
    ("form", "kind"),
    # With probabilities pairwise takes O(C²) for each row.
    [(form, "index") for form in ("pairwise", "centered", "logodds")]
    + [("centered", "probability"), ("logodds", "probability")],
)
def test_there_is_no_score_matrix(form: str, reduction: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A dispatch mode otherwise counts as tracing.
    monkeypatch.setattr("linearcore._torch._is_symbolic", lambda tensor: False)
    rows, classes = 64, 5000
    layer = leaves(rows, 2, classes)
    target = torch.arange(rows) if kind == "index" else torch.full((rows, classes), 1 / classes, dtype=torch.float64)
    with LargestTensor(target) as record:
        ours(layer, target, form=form, reduction=reduction, backend="eager", chunk_bytes=8 * rows * 512).sum().backward()
    assert record.largest <= 1.1 * rows * 512
    with LargestTensor(target) as record:
        composed(layer, target, form=form, reduction=reduction).sum().backward()
    assert record.largest >= rows * classes


def test_small_layers_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linearcore.losses._linear.LinearLoss", None)
    ours(leaves(), chunk_bytes=None)
    with pytest.raises(TypeError):
        ours(leaves())


class Straight(Surrogate):
    """1 − u, a surrogate of a user."""

    lipschitz, smoothness, is_c1, is_c2, is_monotone, vanishes = 1.0, 0.0, True, True, True, False
    knots, core = (), None

    def _value(self, u: Tensor) -> Tensor:
        return 1 - u

    def _derivative(self, u: Tensor) -> Tensor:
        return torch.full_like(u, -1.0)

    def _curvature(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)


@every_form
def test_a_surrogate_of_a_user(form: Form) -> None:
    results = []
    for function in (composed, ours):
        layer = leaves()
        with torch.no_grad():
            layer[2][5] = -math.inf  # φ(∞) is not 0, so that masked classes have to be left out.
        results.append(with_gradients(function, layer, None, form=form, surrogate=Straight()))
    close(results[1], results[0])


class SquaredScores(Form):
    """Σ_v s_v² − s_y, a form of a user: it declares nothing, so it takes chunks of rows."""

    name = "squared"

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        return scores.square().sum(-1) - scores.gather(-1, labels.index.unsqueeze(-1)).squeeze(-1)


def test_a_form_of_a_user() -> None:
    for reduction in ("mean", "none"):
        options = {"form": SquaredScores(), "reduction": reduction}
        expected = with_gradients(composed, leaves(), None, **options)
        close(with_gradients(ours, leaves(), None, **options), expected)


def test_validate() -> None:
    layer = leaves()
    close([ours(layer, validate=True)], [ours(layer)])
    with torch.no_grad():
        layer[2][299] = -math.inf
    with pytest.raises(ValueError, match=r"`target` must be a class that is not masked out.*target\[1\]"):
        ours(layer, validate=True)
    with torch.no_grad():
        layer[2][299], layer[2][3] = 0.0, math.nan
    with pytest.raises(ValueError, match=r"`scores` must not be NaN or \+inf"):
        ours(layer, validate=True)
    with pytest.raises(ValueError, match="`weight` must not be negative"):
        ours(leaves(), weight=-torch.ones(CLASSES).double(), validate=True)


@pytest.mark.parametrize(
    ("error", "message", "change"),
    (
        (TypeError, "`hidden` must be floating point", {"hidden": torch.ones(6, 3, dtype=torch.long)}),
        (ValueError, "`hidden` must have shape", {"hidden": torch.ones(())}),
        (ValueError, "`linear_weight` must have shape", {"linear_weight": torch.ones(CLASSES, 4)}),
        (TypeError, "`linear_weight` must have the dtype of `hidden`", {"linear_weight": torch.ones(CLASSES, WIDTH)}),
        (ValueError, "`linear_bias` must have shape", {"linear_bias": torch.ones(4)}),
        (ValueError, "`target` must have shape", {"target": torch.zeros(5, dtype=torch.long)}),
        (TypeError, "`target` must be a torch tensor", {"target": [0] * 6}),
        (TypeError, "`target` must be integer class indices", {"target": torch.zeros(6)}),
        (
            ValueError,
            "`target` must be on the device of `hidden`",
            {"target": torch.zeros(6, dtype=torch.long, device="meta")},
        ),
        (ValueError, "`sample_weight` must have shape", {"sample_weight": torch.ones(5)}),
        (ValueError, "`weight` must have shape", {"weight": torch.ones(5)}),
        (ValueError, "`class_margin` must have shape", {"class_margin": torch.ones(5)}),
        (ValueError, "`reduction` must be one of", {"reduction": "all"}),
        (ValueError, "`label_smoothing` must be in", {"label_smoothing": 2.0}),
        (ValueError, "`backend` must be one of", {"backend": "fast"}),
        (ValueError, "`form` must be one of", {"form": "best"}),
        (ValueError, "`chunk_bytes` must be", {"chunk_bytes": 0}),
        (ValueError, "`backend` must have fused kernels", {"backend": "fused"}),
    ),
)
def test_messages(error: type[Exception], message: str, change: dict[str, object]) -> None:
    hidden, weight, bias = leaves()
    call = {"hidden": hidden, "linear_weight": weight, "target": TARGET, "linear_bias": bias, "chunk_bytes": CHUNK} | change
    with pytest.raises(error, match=message):
        linear_multiclass_loss(**call)  # type: ignore[arg-type]
