"""`LinearCore` as an object: what it refuses and with which words, and that it is a frozen value."""

import copy
import dataclasses

import pytest

from linearcore.surrogates import BASES, GammaBase, LinearCore, LogisticBase, QuarticBase
from tests.cases import ALGEBRAIC

NOT_POSITIVE = (0, 0.0, -1.0, float("nan"), float("inf"), "1", True, None)


@pytest.mark.parametrize("number", NOT_POSITIVE, ids=repr)
def test_tau_must_be_positive(number: object) -> None:
    with pytest.raises(ValueError, match=r"`tau` must be a positive number, got ") as error:
        LinearCore(tau=number)
    assert repr(number) in str(error.value)


@pytest.mark.parametrize("number", NOT_POSITIVE, ids=repr)
def test_sharpness_must_be_positive(number: object) -> None:
    message = r"`sharpness` must be a positive number, got "
    with pytest.raises(ValueError, match=message) as error:
        LinearCore(sharpness=number)
    assert repr(number) in str(error.value)


@pytest.mark.parametrize("sides", (0, 3, -1, 1.5, "1", None), ids=repr)
def test_sides_are_one_or_two(sides: object) -> None:
    message = rf"`sides` must be one of 1, 2, got {sides!r}; "
    with pytest.raises(ValueError, match=message):
        LinearCore(sides=sides)


def test_unknown_base_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"`base` must be one of .*, got 'logit'; .*`UserBase`") as error:
        LinearCore("logit")
    assert all(repr(name) in str(error.value) for name in BASES)


@pytest.mark.parametrize("base", (abs, None, 1.0, LogisticBase), ids=("function", "None", "number", "class"))
def test_base_of_a_wrong_type(base: object) -> None:
    message = (
        rf"`base` must be a name or a `Base`, got {type(base).__name__}; wrap a callable in linearcore.surrogates.UserBase"
    )
    with pytest.raises(TypeError, match=message):
        LinearCore(base)


def test_defaults_are_the_papers() -> None:
    assert LinearCore() == LinearCore(base="logistic", tau=1.0, sides=1, sharpness=1.0)


@pytest.mark.parametrize("name", BASES)
def test_name_and_object_are_the_same_base(name: str) -> None:
    assert LinearCore(name) == LinearCore(BASES[name])
    assert LinearCore(name).base.name == name


def test_it_is_a_frozen_value() -> None:
    phi = LinearCore("gamma", tau=2)
    assert phi == LinearCore(GammaBase(), tau=2.0)
    assert hash(phi) == hash(LinearCore("gamma", tau=2.0))
    assert phi != LinearCore("gamma", tau=2, sides=2)
    assert LinearCore(QuarticBase(a=2.0)) != LinearCore("quartic")
    with pytest.raises(dataclasses.FrozenInstanceError):
        phi.tau = 3.0


@pytest.mark.parametrize("base", ("logistic", ALGEBRAIC), ids=("named", "user"))
def test_copies_are_equal(base) -> None:
    """Modules that hold a surrogate are deep-copied by averaging and by sweeps."""
    phi = LinearCore(base, 0.5, 2, 3.0)
    assert copy.deepcopy(phi) == phi


def test_numbers_become_floats() -> None:
    phi = LinearCore(tau=1, sharpness=2)
    assert (type(phi.tau), type(phi.sharpness)) == (float, float)


@pytest.mark.parametrize(("tau", "bounds"), ((0.25, False), (0.5, True), (0.75, True)))
def test_bound_on_the_zero_one_loss_needs_tau_plus_c_of_one(tau: float, bounds: bool) -> None:
    """Truncated quadratic: c = ½, so τ ≥ ½."""
    assert LinearCore("truncated_quadratic", tau).bounds_zero_one is bounds


def test_knots_of_the_truncated_quadratic() -> None:
    assert LinearCore("truncated_quadratic", 0.5, 2, sharpness=4.0).knots == (-0.5, 0.5, 0.75)
