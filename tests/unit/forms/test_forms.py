"""Forms as objects: small, frozen, known by name, and the refusals that the library promises."""

import dataclasses

import pytest

from linearcore import Centered, Form, LogOdds, Pairwise, Surrogate
from linearcore.forms import FORMS, resolve_form
from tests import cases


@pytest.mark.parametrize(("name", "form"), FORMS.items(), ids=FORMS.keys())
def test_names_are_shortcuts(name: str, form: Form) -> None:
    assert resolve_form(name) == form
    assert resolve_form(form) is form
    assert form.name == name
    assert resolve_form(name, False).name == name


def test_there_are_three() -> None:
    assert list(FORMS) == ["pairwise", "centered", "logodds"]
    assert (Pairwise(), Centered(), LogOdds()) == tuple(FORMS.values())


@pytest.mark.parametrize("form", (Pairwise, Centered))
def test_normalize_is_put_in_where_it_is_given(form: type) -> None:
    assert form().normalize is True
    for given in (True, False):
        assert resolve_form(form.name, given) == form(normalize=given)
        assert resolve_form(form(normalize=not given), given) == form(normalize=given)
        assert resolve_form(form(normalize=given)) == form(normalize=given)
        assert form(normalize=given).is_mean is given


def test_forms_are_frozen_and_hashable() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pairwise().normalize = False  # type: ignore[misc]
    assert len({Pairwise(), Pairwise(True), Pairwise(False), LogOdds(), LogOdds()}) == 3


@cases.every_surrogate
@pytest.mark.parametrize("form", cases.FORMS.values(), ids=cases.FORMS.keys())
def test_refuses_exactly_what_the_table_refuses(form: Form, phi: Surrogate) -> None:
    if cases.allows(form, phi):
        form.check(phi)
    else:
        with pytest.raises(ValueError, match="`surrogate` must be"):
            form.check(phi)
