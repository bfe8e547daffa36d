"""`UserBase`: derivatives by autograd when none are given, and a reason for every function it refuses."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from linearcore.surrogates import BASES, Half, LinearCore, UserBase
from tests.cases import algebraic


def test_derivatives_by_autograd() -> None:
    base = UserBase(algebraic)
    z = torch.tensor([-3.0, -0.5, 0.0, 0.5, 3.0], dtype=torch.float64)
    slope = (1 + z.abs()) ** -2.0
    torch.testing.assert_close(base.derivative(z), torch.where(z > 0, 2 - slope, slope), rtol=1e-15, atol=0)
    torch.testing.assert_close(base.curvature(z), 2 * (1 + z.abs()) ** -3.0, rtol=1e-14, atol=0)


def test_given_derivatives_are_used() -> None:
    calls: list[str] = []

    def first(z: torch.Tensor) -> torch.Tensor:
        calls.append("first")
        return z.exp()

    def second(z: torch.Tensor) -> torch.Tensor:
        calls.append("second")
        return z.exp()

    base = UserBase(torch.exp, first, second)
    calls.clear()
    z = torch.zeros(2)
    base.derivative(z)
    base.curvature(z)
    assert calls == ["first", "second"]


def test_facts_left_out_are_the_weakest() -> None:
    phi = LinearCore(UserBase(torch.exp))
    assert (phi.lipschitz, phi.smoothness) == (math.inf, math.inf)
    assert (phi.is_c1, phi.is_c2, phi.is_monotone, phi.vanishes) == (True, False, False, False)


def test_declared_facts_reach_the_surrogate() -> None:
    left = Half(1.0, 1.0)
    phi = LinearCore(UserBase(torch.exp, left=left, is_monotone=True, vanishes=True), sharpness=2.0)
    assert (phi.lipschitz, phi.smoothness, phi.is_monotone, phi.vanishes) == (1.0, 2.0, True, True)


@pytest.mark.parametrize("name", BASES)
def test_a_known_base_written_by_a_user_gives_the_same_surrogate(name: str) -> None:
    known = BASES[name]
    user = UserBase(known.value, left=known.left, right=known.right, is_monotone=known.is_monotone, vanishes=known.vanishes)
    u = torch.linspace(-7, 7, 57, dtype=torch.float64)
    for sides in (1, 2):
        for method in ("value", "derivative", "curvature"):
            ours, theirs = (getattr(LinearCore(base, sides=sides), method)(u) for base in (known, user))
            torch.testing.assert_close(theirs, ours, rtol=1e-12, atol=1e-14)


def test_fast_growth_is_allowed() -> None:
    """Points where Φ overflows are left out of the check."""
    assert UserBase(lambda z: (z + z**3 / 3).clamp(min=-20).exp()).slope_at_zero == 1.0


NOT_BASES = {
    "wavy": (lambda z: 2 + z.sin(), r"be convex, got a violation near z = "),
    "kink on the grid": (lambda z: F.relu(z + 3), r"be continuously differentiable, .* near z = -3"),
    "kink off the grid": (lambda z: F.relu(z + 1.01234), r"be continuously differentiable, .* near z = -1\.0"),
    "kink at zero": (lambda z: F.relu(z) + z.exp(), r"be continuously differentiable, .*; smooth the kink"),
    "negative": (lambda z: z.exp() - 0.5, r"be non-negative, got a violation near z = -30; add a constant"),
    "falling": (lambda z: (-z).exp(), r"have Φ'\(0\) > 0, got Φ'\(0\) = -1"),
    "flat": (lambda z: z * z, r"have Φ'\(0\) > 0, got Φ'\(0\) = 0"),
    "nowhere": (lambda z: z * torch.nan, r"be defined for all z, got a violation near z = -30"),
    "undefined on the left": (lambda z: (1 + z) ** 1.5, r"be defined for all z"),
}


@pytest.mark.parametrize(("function", "message"), NOT_BASES.values(), ids=NOT_BASES.keys())
def test_functions_that_are_no_bases(function, message: str) -> None:
    with pytest.raises(ValueError, match="`base` must " + message):
        UserBase(function)


@pytest.mark.parametrize("first", (lambda z: 2 * z.exp(), lambda z: z.exp() + 0.01), ids=("twice", "shifted"))
def test_wrong_derivative(first) -> None:
    message = r"`base` must have `first` equal to the derivative of `function`, .*; check the derivative"
    with pytest.raises(ValueError, match=message):
        UserBase(torch.exp, first)


INF = math.inf
CONTRADICTED = {
    "left slope": ({"left": Half(0.5, 1.0)}, r"have .*slope.* 0.5, .*; correct `left`"),
    "left curvature": ({"left": Half(1.0, 0.5)}, r"have curvature .* 0.5, .*; correct `left`"),
    "left flat": ({"left": Half(1.0, 1.0, is_flat_at_zero=True)}, r"have Φ'' = 0 at zero .*; correct `left`"),
    "right slope": ({"right": Half(5.0, INF)}, r"have .*slope.* 5, .*; correct `right`"),
    "right curvature": ({"right": Half(INF, 5.0)}, r"have curvature .* 5, .*; correct `right`"),
    "right flat": ({"right": Half(INF, INF, is_flat_at_zero=True)}, r"have Φ'' = 0 at zero .*; correct `right`"),
}


@pytest.mark.parametrize(("facts", "message"), CONTRADICTED.values(), ids=CONTRADICTED.keys())
def test_declared_facts_that_are_false(facts: dict[str, Half], message: str) -> None:
    """All of e^z, whose slope and curvature are at most 1 on the left, unbounded on the right, and 1 at zero."""
    with pytest.raises(ValueError, match="`base` must " + message):
        UserBase(torch.exp, **facts)


def test_monotone_that_is_false() -> None:
    with pytest.raises(ValueError, match=r"`base` must be non-decreasing with `is_monotone=True`"):
        UserBase(lambda z: z + z**4 / 12 + 2, is_monotone=True)


WRONG_CLAIMS = {
    "second derivative": ({"first": torch.exp, "second": lambda z: 0 * z}, r"have `second` equal to the derivative of Φ'"),
    "jump hidden by `first`": (
        {"function": lambda z: z.exp() + (z > 0.01).double(), "first": torch.exp},
        r"have `first` equal to the derivative of `function`",
    ),
    "vanishes": ({"function": lambda z: z.exp() + 1, "vanishes": True}, r"be 0 at −inf with `vanishes=True`"),
    "vanishes, but NaN at −inf": (
        {"function": lambda z: (z + torch.sqrt(z * z + 4)) / 2, "is_monotone": True, "vanishes": True},
        r"be 0 at −inf with `vanishes=True`",
    ),
}


@pytest.mark.parametrize(("claims", "message"), WRONG_CLAIMS.values(), ids=WRONG_CLAIMS.keys())
def test_claims_that_are_not_true(claims: dict, message: str) -> None:
    with pytest.raises(ValueError, match="`base` must " + message):
        UserBase(**{"function": torch.exp, **claims})


WRONG_KINDS = {
    "no function": "exp",
    "a function of floats": math.exp,
    "a function of arrays": np.exp,
}


@pytest.mark.parametrize("function", WRONG_KINDS.values(), ids=WRONG_KINDS.keys())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_functions_of_the_wrong_kind(function: object) -> None:
    with pytest.raises(TypeError, match=r"`function` must map tensors to tensors, got .*; write it with torch operations"):
        UserBase(function)


def test_a_function_that_sums() -> None:
    with pytest.raises(TypeError, match=r"`function` must return a tensor of the shape of its input, got \(\)"):
        UserBase(lambda z: z.exp().sum())


def test_it_prints_as_its_name() -> None:
    assert repr(LinearCore(UserBase(torch.exp, name="mine"))) == "LinearCore(UserBase('mine'), tau=1, sides=1, sharpness=1)"
