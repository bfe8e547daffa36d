"""What `Surrogate` takes and gives back: tensors of any floating dtype and layout, anything NumPy reads, and nothing else.

The numerics too: extreme margins never make a NaN, a NaN stays one, and every dtype is as exact as its rounding allows.
"""

import warnings

import numpy as np
import pytest
import torch
from torch import Tensor

from linearcore.surrogates import LinearCore, Surrogate
from tests.cases import every_surrogate

METHODS = ("value", "derivative", "curvature", "posterior")

every_method = pytest.mark.parametrize("method", METHODS)
every_dtype = pytest.mark.parametrize("dtype", (torch.float64, torch.float32, torch.bfloat16, torch.float16), ids=str)


def extremes(dtype: torch.dtype) -> Tensor:
    largest = torch.finfo(dtype).max
    numbers = (0.0, 1e-30, 20.0, 100.0, 800.0, 1e4, 1e10, 1e30, largest, torch.inf)
    return torch.tensor([*numbers, *(-number for number in numbers)], dtype=dtype)


@every_surrogate
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float16), ids=str)
def test_every_dtype_is_as_exact_as_its_rounding(phi: Surrogate, dtype: torch.dtype) -> None:
    """Judged by backward error: the result is right, up to rounding, for a margin within a few ulps of the one given."""
    u = torch.linspace(-9.7, 9.9, 99).to(dtype)
    exact_margin = u.double()
    ulps = 8 * torch.finfo(torch.float32).eps
    nearby = ulps * (exact_margin.abs() + max(map(abs, phi.knots), default=0) + 1)
    limits = torch.finfo(dtype)
    for method in ("value", "derivative", "curvature"):
        function = getattr(phi, method)
        result, exact = function(u), function(exact_margin)
        moved = torch.stack([(function(exact_margin + step) - exact).abs() for step in (nearby, -nearby)]).amax(0)
        rounding = (ulps + limits.eps / 2) * exact.abs() + limits.smallest_normal * limits.eps
        fits = exact.abs() <= limits.max
        assert result.dtype == dtype
        assert ((result.double() - exact).abs() <= moved + rounding)[fits].all(), method
        assert (result.double()[~fits].abs() >= limits.max).all(), method


@every_surrogate
@every_dtype
def test_no_nan_from_numbers(phi: Surrogate, dtype: torch.dtype) -> None:
    u = extremes(dtype)
    for method in METHODS:
        assert not getattr(phi, method)(u).isnan().any(), method


@every_surrogate
@every_dtype
def test_gradient_is_a_number_at_extreme_margins(phi: Surrogate, dtype: torch.dtype) -> None:
    u = extremes(dtype).requires_grad_()
    (gradient,) = torch.autograd.grad(phi.value(u).sum(), u)
    assert gradient.dtype == dtype
    assert not gradient.isnan().any()


@every_surrogate
@every_dtype
def test_nan_stays_nan(phi: Surrogate, dtype: torch.dtype) -> None:
    u = torch.tensor([0.0, torch.nan], dtype=dtype)
    for method in ("value", "derivative", "posterior"):
        assert getattr(phi, method)(u).isnan().tolist() == [False, True], method


@every_surrogate
def test_far_values_and_gradients_are_finite_where_slopes_are_bounded(phi: Surrogate) -> None:
    u = torch.tensor([-1e30, 1e30], dtype=torch.float32, requires_grad=True)
    if phi.lipschitz < torch.inf:
        (gradient,) = torch.autograd.grad(phi.value(u).sum(), u)
        assert phi.value(u).isfinite().all()
        assert gradient.isfinite().all()


@every_method
@pytest.mark.parametrize("shape", ((), (0,), (3, 0), (1,), (2, 3, 4)), ids=str)
def test_shapes_are_kept(method: str, shape: tuple[int, ...]) -> None:
    result = getattr(LinearCore(sides=2), method)(torch.zeros(shape, dtype=torch.float32))
    assert (result.shape, result.dtype) == (shape, torch.float32)


@every_surrogate
@every_method
def test_layout_does_not_matter(phi: Surrogate, method: str) -> None:
    u = torch.linspace(-6, 6, 48, dtype=torch.float64).reshape(6, 8)
    function = getattr(phi, method)
    whole = function(u)
    # Vectorised and scalar loops may differ in the last bit.
    torch.testing.assert_close(function(u.T), whole.T, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(function(u[::2, 1::3]), whole[::2, 1::3], rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(function(u[0].expand(3, 8)), whole[0].expand(3, 8), rtol=1e-14, atol=1e-15)


@every_surrogate
def test_inputs_are_left_alone(phi: Surrogate) -> None:
    u = torch.linspace(-6, 6, 25, dtype=torch.float64)
    array = u.numpy().copy()
    for method in METHODS:
        getattr(phi, method)(u)
        getattr(phi, method)(array)
    np.testing.assert_array_equal(u.numpy(), np.linspace(-6, 6, 25))
    np.testing.assert_array_equal(array, u.numpy())


@every_surrogate
def test_graph_is_kept(phi: Surrogate) -> None:
    u = torch.zeros(3, requires_grad=True)
    assert phi.value(u).requires_grad
    assert phi.derivative(u).requires_grad
    assert phi.value(u.half()).requires_grad


NUMPY_INPUTS = {
    "int": (2, np.float64, ()),
    "float": (0.5, np.float64, ()),
    "bool": (True, np.float64, ()),
    "np.float16": (np.float16(0.5), np.float16, ()),
    "np.float32": (np.float32(0.5), np.float32, ()),
    "np.float64": (np.float64(0.5), np.float64, ()),
    "np.longdouble": (np.longdouble(0.5), np.float64, ()),
    "np.int32": (np.int32(2), np.float64, ()),
    "0-d": (np.array(0.5, dtype=np.float32), np.float32, ()),
    "float16": (np.array([0.5, 2], dtype=np.float16), np.float16, (2,)),
    "float32": (np.array([[0.5], [2]], dtype=np.float32), np.float32, (2, 1)),
    "uint8": (np.array([0, 2], dtype=np.uint8), np.float64, (2,)),
    "big-endian": (np.array([0.5, 2], dtype=">f4"), np.float32, (2,)),
    "reversed": (np.arange(6.0)[::-2], np.float64, (3,)),
    "list": ([0, 0.5, 2], np.float64, (3,)),
    "nested": (((0, 1), (2, 3)), np.float64, (2, 2)),
    "empty": ([], np.float64, (0,)),
}


@every_method
@pytest.mark.parametrize(("margin", "dtype", "shape"), NUMPY_INPUTS.values(), ids=NUMPY_INPUTS.keys())
def test_numpy_comes_back(method: str, margin: object, dtype: type, shape: tuple[int, ...]) -> None:
    function = getattr(LinearCore("gamma"), method)
    result = function(margin)
    assert isinstance(result, np.ndarray if shape else np.generic)
    assert (result.dtype, result.shape) == (np.dtype(dtype), shape)
    expected = function(torch.from_numpy(np.array(margin, dtype=np.float64)))
    np.testing.assert_allclose(result, expected.numpy(), rtol=2 * np.finfo(dtype).eps)


def test_read_only_arrays_are_taken_without_a_warning() -> None:
    margin = np.zeros(3)
    margin.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearCore().value(margin)


@every_method
@pytest.mark.parametrize("dtype", (torch.int64, torch.bool, torch.complex64), ids=str)
def test_tensors_must_be_floating_point(method: str, dtype: torch.dtype) -> None:
    message = rf"`margin` must be floating point, got {dtype}; convert it with `.float\(\)`"
    with pytest.raises(TypeError, match=message):
        getattr(LinearCore(), method)(torch.ones(2, dtype=dtype))


@pytest.mark.parametrize(
    "margin",
    (1j, np.array([1j], dtype=np.complex64), np.array([1j, 2]), "1.5", ["a"], None, object()),
    ids=("complex", "complex64", "complex128", "digits", "letters", "None", "object"),
)
def test_margins_must_be_real_numbers(margin: object) -> None:
    with pytest.raises(TypeError, match=r"`margin` must be real numbers, got .*; pass a tensor, an array or a float"):
        LinearCore().value(margin)
