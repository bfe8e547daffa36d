"""The control variate against enumeration: unbiased for the mean over all sequences, whatever its slope."""

import math
from itertools import product

import pytest
import torch

from linearcore.structured import RunningSlope, controlled_estimate, mean_score, sequence_scores
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Hinge, LinearCore

SURROGATES = [LinearCore(), LinearCore(sides=2), LinearCore("exponential"), Hinge()]
TAGS, LENGTH = 3, 3


def drawn(*size: int, seed: int, scale: float = 2.0) -> torch.Tensor:
    return scale * torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Model:
    """A chain with transitions, its truth, and all 27 sequences."""

    def __init__(self, scale: float = 2.0) -> None:
        self.parameters = [
            drawn(*size, seed=seed, scale=scale).requires_grad_()
            for seed, size in enumerate([(LENGTH, 1, TAGS), (TAGS,), (TAGS, TAGS), (TAGS,)])
        ]
        emissions, self.chain = self.parameters[0], Chain(*self.parameters[1:])
        self.sites = Sites.of(torch.ones(LENGTH, 1, dtype=torch.bool))
        every = torch.tensor(list(product(range(TAGS), repeat=LENGTH))).unsqueeze(-1)
        self.scores = sequence_scores(emissions, self.chain, every, self.sites)
        self.truth = self.scores[5]
        self.mean = mean_score(emissions, self.chain, self.sites)

    def gradient(self, loss: torch.Tensor) -> torch.Tensor:
        parts = torch.autograd.grad(loss.sum(), self.parameters, retain_graph=True)
        return torch.cat([part.reshape(-1) for part in parts])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, -2.0, torch.tensor(1.7)])
@pytest.mark.parametrize("phi", SURROGATES, ids=str)
def test_mean_over_all_draws_is_the_mean_over_all_sequences(phi, alpha):
    model = Model()
    exact = phi.value(model.truth - model.scores).mean()
    single = torch.stack(
        [controlled_estimate(phi, model.truth, one, model.mean, alpha) for one in model.scores.unsqueeze(1)]
    )
    torch.testing.assert_close(single.mean(), exact)
    torch.testing.assert_close(model.gradient(single.mean()), model.gradient(exact))
    # Averages of two draws: over all pairs.
    pairs = torch.stack(torch.broadcast_tensors(model.scores, model.scores.t())).flatten(1).unsqueeze(-1)
    both = torch.stack([controlled_estimate(phi, model.truth, pairs[:, k], model.mean, alpha) for k in range(27 * 27)])
    torch.testing.assert_close(both.mean(), exact)


def test_in_the_core_nothing_is_left_to_chance_with_slope_one():
    model, phi = Model(scale=0.1), LinearCore()
    assert float((model.truth - model.scores).detach().max()) < 1
    exact = phi.value(model.truth - model.scores).mean()
    for one in model.scores:
        estimate = controlled_estimate(phi, model.truth, one.unsqueeze(0), model.mean, 1.0)
        torch.testing.assert_close(estimate.squeeze(), exact)
        torch.testing.assert_close(model.gradient(estimate), model.gradient(exact))


def test_slope_is_held_fixed_in_the_gradient():
    model = Model()
    alpha = model.parameters[0].sum()
    moving = model.gradient(controlled_estimate(LinearCore(), model.truth, model.scores[:4], model.mean, alpha))
    fixed = model.gradient(controlled_estimate(LinearCore(), model.truth, model.scores[:4], model.mean, alpha.item()))
    torch.testing.assert_close(moving, fixed)


def test_running_slope_starts_at_one_and_follows_the_mean_of_the_slopes():
    alpha, phi = RunningSlope(momentum=0.25), LinearCore()
    assert float(alpha.value) == 1
    margins = torch.tensor([[-1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    # −φ'(3) = 2σ(1 − 3).
    mean = (1 + 2 / (1 + math.exp(2))) / 2
    alpha.update(phi, margins)
    assert float(alpha.value) == pytest.approx(1 + 0.25 * (mean - 1), rel=1e-12)
    assert not alpha.value.requires_grad
    for _ in range(200):
        alpha.update(phi, margins)
    assert float(alpha.value) == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan])
def test_rate_out_of_range(rate):
    with pytest.raises(ValueError, match="`momentum` must be above 0 and at most 1"):
        RunningSlope(rate)
