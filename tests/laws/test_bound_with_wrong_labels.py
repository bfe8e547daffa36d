"""The linear bound of `centered` passes through wrong labels: finite problems, noise of any kind, any scores."""

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from linearcore import LinearCore, multiclass_loss

SURROGATES = (LinearCore(), LinearCore("exponential", tau=0.3), LinearCore("truncated_quadratic", tau=2.0, sharpness=3.0))
every_surrogate = pytest.mark.parametrize("phi", SURROGATES, ids=("logistic", "exponential", "quadratic"))
every_n = pytest.mark.parametrize("n", (2, 3, 5, 8))


def losses(scores: Tensor, phi: LinearCore) -> Tensor:
    """(N, n): the sum for every label."""
    labels = range(scores.shape[1])
    return torch.stack(
        [
            multiclass_loss(
                scores, torch.full((len(scores),), y), surrogate=phi, form="centered", normalize=False, reduction="none"
            )
            for y in labels
        ],
        1,
    )


def least_risk(p: Tensor, phi: LinearCore) -> float:
    """By a minimiser that knows nothing of the proof. It may stop above the infimum, which makes the test harder to pass."""

    def risk(s):
        leaf = torch.tensor(s[None], requires_grad=True)
        value = (p * losses(leaf, phi)).sum()
        (slope,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), slope[0].numpy()

    return min(minimize(risk, start.numpy(), jac=True, method="BFGS").fun for start in (5 * (p - p.mean()), 0 * p))


def wrong(p: Tensor, kind: str, generator: torch.Generator) -> tuple[Tensor, float]:
    """What training sees of p, and γ."""
    n = len(p)
    if kind == "uniform":
        eta = 0.6 * (1 - 1 / n)
        return (1 - eta) * p + eta / (n - 1) * (1 - p), 1 - eta * n / (n - 1)
    mixed = torch.rand(n, dtype=torch.float64, generator=generator)
    top = int(p.argmax())
    others = torch.arange(n) != top
    mixed[top] = mixed[others].max() + 0.3  # Else another class becomes the likeliest, and no loss can tell.
    mixed = mixed / mixed.sum()
    return mixed, float(((mixed[top] - mixed) / (p[top] - p))[others].min())


@every_n
@every_surrogate
@pytest.mark.parametrize("kind", ("uniform", "any"))
def test_clean_regret_is_bounded_by_noisy_regret(n: int, phi: LinearCore, kind: str) -> None:
    generator = torch.Generator().manual_seed(n)
    tightest = torch.inf
    for _ in range(6):
        p = (2 * torch.randn(n, dtype=torch.float64, generator=generator)).softmax(0)
        seen, gamma = wrong(p, kind, generator)
        assert gamma > 0
        scores = torch.logspace(-2, 2, 600, dtype=torch.float64)[:, None] * torch.randn(
            600, n, dtype=torch.float64, generator=generator
        )
        # Ties between the best answer and another are where the bound is put to the test.
        scores[300:] = torch.where(torch.arange(n) == p.argmax(), scores[300:].amax(1, keepdim=True) - 1e-9, scores[300:])
        clean = p.max() - p[scores.argmax(1)]
        noisy = losses(scores, phi) @ seen - least_risk(seen, phi)
        assert (clean <= noisy / (gamma * phi.tau) + 1e-6).all()
        at = clean > 1e-3
        tightest = min(tightest, float((noisy[at] / (gamma * phi.tau * clean[at])).min()) if at.any() else torch.inf)
    # Not a bound that anything would keep.
    assert tightest < 20


def test_a_label_that_is_contradicted_pushes_one_score_where_a_new_one_pushes_all() -> None:
    scores = torch.tensor([[9.0, -1.0, -1.0, -1.0, -1.0, -5.0], [0.0] * 6], dtype=torch.float64, requires_grad=True)
    phi = LinearCore("truncated_quadratic", tau=0.5, sharpness=4.0)
    # Of centred scores: the tail of this base ends, so that what lies far below −τ has no slope at all.
    given = multiclass_loss(scores, torch.tensor([5, 5]), surrogate=phi, form="centered", normalize=False, reduction="sum")
    (slope,) = torch.autograd.grad(given, scores)
    pushed = slope + (1 / 6) * torch.tensor([[1.0], [5.0]], dtype=torch.float64)  # without what the mean hands on
    assert pushed[0].tolist() == pytest.approx([1, 0, 0, 0, 0, 0]) and pushed[1].tolist() == pytest.approx(
        [1, 1, 1, 1, 1, 0]
    )
