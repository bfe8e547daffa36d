"""Surrogates inside torch.compile, torch.func and on the meta device: whole graphs, same numbers, no look at the data."""

import shutil

import pytest
import torch
from torch import Tensor

from linearcore.surrogates import ConvolutionalFenchelYoung, ExponentialBase, Hinge, LinearCore, SmoothedHinge, Surrogate
from tests.cases import ALGEBRAIC, every_surrogate

METHODS = ("value", "derivative", "curvature", "posterior")

# One of each way of writing a surrogate; the others differ in a line of arithmetic.
REPRESENTATIVE: dict[str, Surrogate] = {
    "logistic-2": LinearCore("logistic", sides=2, sharpness=3.0, tau=0.3),
    "exponential-2": LinearCore(ExponentialBase(linear_past=2.0), sides=2),
    "gamma-1": LinearCore("gamma"),
    "truncated_quadratic-1": LinearCore("truncated_quadratic"),
    "quartic-2": LinearCore("quartic", sides=2),
    "user-2": LinearCore(ALGEBRAIC, sides=2),
    "hinge": Hinge(),
    "smoothed_hinge": SmoothedHinge(),
    "convolutional_fenchel_young": ConvolutionalFenchelYoung(),
}

representative = pytest.mark.parametrize("phi", REPRESENTATIVE.values(), ids=REPRESENTATIVE.keys())
needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def margins(phi: Surrogate) -> Tensor:
    return torch.cat([torch.linspace(-9, 9, 73, dtype=torch.float64), torch.tensor(phi.knots, dtype=torch.float64)])


def same_compiled_as_eager(phi: Surrogate, backend: str, u: Tensor) -> None:
    """All four functions in one graph, and the gradient of each."""

    def everything(margin: Tensor) -> Tensor:
        return torch.stack([getattr(phi, method)(margin) for method in METHODS])

    compiled = torch.compile(everything, fullgraph=True, backend=backend)
    plain, fast = u.clone().requires_grad_(), u.clone().requires_grad_()
    expected, got = everything(plain), compiled(fast)
    tolerance = {"rtol": 4 * torch.finfo(u.dtype).eps, "atol": 4 * torch.finfo(u.dtype).eps}
    torch.testing.assert_close(got, expected, **tolerance)
    weights = torch.linspace(1, 2, got.numel(), dtype=u.dtype).reshape(got.shape)
    (weights * expected).sum().backward()
    (weights * got).sum().backward()
    torch.testing.assert_close(fast.grad, plain.grad, rtol=100 * tolerance["rtol"], atol=100 * tolerance["atol"])


@representative
def test_traces_to_one_graph(phi: Surrogate) -> None:
    same_compiled_as_eager(phi, "aot_eager", margins(phi))


@needs_compiler
def test_generated_code_agrees() -> None:
    """The two-sided logistic has every branch there is; code generation costs seconds, so it stands for the others."""
    same_compiled_as_eager(REPRESENTATIVE["logistic-2"], "inductor", margins(REPRESENTATIVE["logistic-2"]))


@needs_compiler
def test_generated_code_agrees_at_extreme_margins() -> None:
    u = torch.tensor([-torch.inf, -1e30, -50.0, 0.0, 50.0, 1e30, torch.inf, torch.nan])
    phi = LinearCore("gamma", sides=2)
    compiled = torch.compile(phi.value, fullgraph=True)
    torch.testing.assert_close(compiled(u), phi.value(u), rtol=1e-6, atol=1e-7, equal_nan=True)


@every_surrogate
def test_func_transforms(phi: Surrogate) -> None:
    """grad of value = derivative, hessian = curvature, forward over any of them, all under vmap and at the knots."""
    u = margins(phi)

    def close(got: Tensor, expected: Tensor) -> None:
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-14)

    close(torch.vmap(phi.value)(u), phi.value(u))
    close(torch.vmap(torch.func.grad(phi.value))(u), phi.derivative(u))
    close(torch.vmap(torch.func.jacfwd(phi.value))(u), phi.derivative(u))
    close(torch.vmap(torch.func.hessian(phi.value))(u), phi.curvature(u))
    close(torch.vmap(torch.func.grad(phi.derivative))(u), phi.curvature(u))


@every_surrogate
@pytest.mark.parametrize("method", METHODS)
def test_never_looks_at_the_data(phi: Surrogate, method: str) -> None:
    """The meta device has no data: a host synchronisation or a branch on a margin would raise here."""
    u = torch.empty(2, 3, device="meta", dtype=torch.float16, requires_grad=True)
    result = getattr(phi, method)(u)
    assert (result.device.type, result.shape, result.dtype) == ("meta", u.shape, u.dtype)
    if method == "value":
        (gradient,) = torch.autograd.grad(result.sum(), u)
        assert gradient.shape == u.shape
