"""Every base known by name: its facts, one half line at a time, and its numbers far out."""

import math

import pytest
import torch
from torch import Tensor

from linearcore.surrogates import BASES, Base, Half
from linearcore.surrogates.bases import resolve_base
from linearcore.surrogates.bases._verify import verify_base
from tests.cases import ALGEBRAIC

KNOWN = BASES | {"algebraic": ALGEBRAIC}

every_base = pytest.mark.parametrize("base", KNOWN.values(), ids=KNOWN.keys())


def halves(base: Base) -> list[tuple[Half, Tensor]]:
    """Either half with points on it: densely near zero, then out to 1e9, the end point 0 left out."""
    z = torch.cat([torch.linspace(1e-9, 40, 80001, dtype=torch.float64), 10.0 ** torch.arange(2, 10, dtype=torch.float64)])
    return [(base.left, -z), (base.right, z)]


@every_base
def test_our_own_bases_pass_the_check_for_users_bases(base: Base) -> None:
    verify_base(base)


@every_base
def test_numbers_at_zero(base: Base) -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    assert float(base.value(zero)) == pytest.approx(base.at_zero, rel=1e-15)
    assert float(base.derivative(zero)) == pytest.approx(base.slope_at_zero, rel=1e-15)


@every_base
def test_constants_of_each_half_are_reached_and_never_exceeded(base: Base) -> None:
    for half, z in halves(base):
        for declared, found in ((half.slope, base.derivative(z).abs().max()), (half.curvature, base.curvature(z).max())):
            if math.isinf(declared):
                assert found >= 1e6
            else:
                assert declared * (1 - 1e-6) <= float(found) <= declared * (1 + 1e-14)


@every_base
def test_flat_at_zero_is_as_declared(base: Base) -> None:
    for half, z in halves(base):
        assert half.is_flat_at_zero == bool(base.curvature(z[:1]) < 1e-6)


@every_base
def test_monotone_and_vanishing_are_as_declared(base: Base) -> None:
    _, z = halves(base)[0]
    assert base.is_monotone == bool((base.derivative(z) >= 0).all())
    assert base.vanishes == bool(base.value(z[-1:]) < 1e-8)


@every_base
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_no_nan_however_far_out(base: Base, dtype: torch.dtype) -> None:
    z = torch.tensor([-math.inf, -1e30, -1e3, 0.0, 1e3, 1e30, math.inf], dtype=dtype)
    for function in (base.value, base.derivative, base.curvature):
        assert function(z).dtype == dtype
        assert not function(z).isnan().any()


def test_names_resolve() -> None:
    assert [resolve_base(name).name for name in BASES] == list(BASES)
    assert resolve_base(ALGEBRAIC) is ALGEBRAIC
