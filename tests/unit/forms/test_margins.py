"""What margin systems declare for the analysis: margins at inputs, directions, restrictions."""

import pytest
import torch
from torch import Tensor

from linearcore import LinearCore
from linearcore.analysis._infimum import infimum
from linearcore.analysis._problem import Problem
from linearcore.forms import LinearMargins, MarginSystem

GENERATOR = torch.Generator().manual_seed(0)
DESIGN = torch.randn(3, 2, dtype=torch.float64, generator=GENERATOR)
every_system = pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))


def at_inputs(form: str) -> tuple[MarginSystem, MarginSystem]:
    system = Problem(form, 4).system
    many = system.at_inputs(DESIGN)
    assert many is not None
    return system, many


@every_system
def test_margins_at_inputs(form: str) -> None:
    """The scores of input n are its row of the design times a matrix, which is the parameter."""
    system, many = at_inputs(form)
    matrix = torch.randn(2, system.basis.shape[1], dtype=torch.float64, generator=GENERATOR)
    torch.testing.assert_close(many.margins(matrix.reshape(1, -1)), system.margins(DESIGN @ matrix).reshape(1, -1))


@every_system
def test_directions(form: str) -> None:
    """Far out, a margin is the smallest of its parts."""
    _, system = at_inputs(form)
    theta = 1e6 * torch.randn(5, system.basis.shape[1], dtype=torch.float64, generator=GENERATOR)
    parts = torch.einsum("kpd,bd->bkp", system.directions, theta)
    torch.testing.assert_close(system.margins(theta), parts.amin(-1), rtol=0, atol=10.0)
    assert system.is_linear == (form != "logodds")


@every_system
def test_restricted(form: str) -> None:
    _, system = at_inputs(form)
    size = system.directions.shape[:2]
    kept = torch.arange(size[0]) % 3 > 0
    theta = torch.randn(5, system.basis.shape[1], dtype=torch.float64, generator=GENERATOR)
    some = system.restricted(kept.unsqueeze(-1).expand(size))
    torch.testing.assert_close(some.margins(theta), system.margins(theta)[:, kept])
    torch.testing.assert_close(
        some.restricted(kept[kept].unsqueeze(-1).expand(-1, size[1])).margins(theta), some.margins(theta)
    )


def test_log_odds_without_some_competitors() -> None:
    _, system = at_inputs("logodds")
    parts = torch.einsum("kpd,d->kp", system.directions, torch.ones(system.basis.shape[1], dtype=torch.float64))
    present = torch.rand(parts.shape, generator=GENERATOR) > 0.5
    kept = present.any(-1)
    expected = -(-parts).masked_fill(~present, -torch.inf).logsumexp(-1)[kept]
    theta = torch.ones(1, system.basis.shape[1], dtype=torch.float64)
    some = system.restricted(present)
    torch.testing.assert_close(some.margins(theta)[0], expected)
    # What is absent stays absent.
    again = some.restricted(torch.ones(int(kept.sum()), parts.shape[1], dtype=torch.bool))
    torch.testing.assert_close(again.margins(theta)[0], expected)


class OneInput(LinearMargins):
    """Margins that do not say what they are at several inputs."""

    def at_inputs(self, design: Tensor) -> None:
        return None


def test_a_system_that_does_not_declare_its_margins_at_inputs_is_refused() -> None:
    problem = Problem("pairwise", 3)
    system = problem.system
    assert isinstance(system, LinearMargins)
    problem.__dict__["system"] = OneInput(system.weights, system.basis, system.rows)
    with pytest.raises(ValueError, match="`form` must have margins with `at_inputs`, got OneInput"):
        infimum(LinearCore(), problem, DESIGN, torch.full((3, 3), 1 / 9, dtype=torch.float64))
