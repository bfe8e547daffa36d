"""The linear bound of `centered` passes through wrong labels: finite problems, noise of any kind, any scores."""

import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from linearcore import LinearCore, multiclass_loss
from tests.cases import each

SURROGATES = (LinearCore(), LinearCore("exponential", tau=0.3), LinearCore("truncated_quadratic", tau=2.0, sharpness=3.0))

SIZES = (2, 3, 5, 8)


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


@each(
    ("n", "phi", "kind"),
    {f"{n}-{phi.base.name}-{kind}": (n, phi, kind) for n in SIZES for phi in SURROGATES for kind in ("uniform", "any")},
    (f"{n}-{phi.base.name}-{kind}" for n, phi, kind in zip(SIZES, SURROGATES * 2, ("uniform", "any") * 2, strict=False)),
)
def test_clean_regret_is_bounded_by_noisy_regret(n: int, phi: LinearCore, kind: str) -> None:
    """For the scores that make a wrong answer as cheap as it can be, found by a minimiser."""
    generator, ratios, without = torch.Generator().manual_seed(n), [], []
    for _ in range(4):
        p = (2 * torch.randn(n, dtype=torch.float64, generator=generator)).softmax(0)
        best, k = p.argsort(descending=True)[:2].tolist()
        p[k] = 0.9 * p[best]  # Close behind, where the bound is put to the test.
        p /= p.sum()
        seen, gamma = wrong(p, kind, generator)
        assert gamma > 0
        if kind == "any":  # The class that γ is of.
            k = min((v for v in range(n) if v != best), key=lambda v: float((seen[best] - seen[v]) / (p[best] - p[v])))
        regret, clean = cheapest(seen, k, phi) - least_risk(seen, phi), float(p[best] - p[k])
        ratios.append(regret / (gamma * phi.tau * clean))
        without.append(regret / (phi.tau * clean))
    assert min(ratios) > 1 - 1e-4
    # Not a bound that anything would keep, and γ is no decoration. With more classes there is more slack.
    assert n > 3 or min(ratios) < 5
    assert n > 3 or kind == "any" or min(without) < 1


def cheapest(p: Tensor, k: int, phi: LinearCore) -> float:
    """The least risk among scores whose highest is that of k."""

    def risk(s):
        leaf = torch.tensor(s[None], requires_grad=True)
        value = (p * losses(leaf, phi)).sum()
        return float(value.detach()), torch.autograd.grad(value, leaf)[0][0].numpy()

    rows = torch.eye(len(p), dtype=torch.float64)
    ahead = (rows[k] - rows[[v for v in range(len(p)) if v != k]]).numpy()
    limits = {"type": "ineq", "fun": lambda s: ahead @ s, "jac": lambda s: ahead}
    return float(minimize(risk, rows[k].numpy(), jac=True, method="SLSQP", constraints=limits, options={"maxiter": 500}).fun)


def test_a_contradicted_label_is_raised_less_than_a_new_one() -> None:
    # The tail of this base ends, so that what lies far below −τ has no slope at all.
    phi = LinearCore("truncated_quadratic", tau=0.5, sharpness=4.0)
    scores = torch.tensor([[9.0, -1.0, -1.0, -1.0, -1.0, -5.0], [0.0] * 6], dtype=torch.float64, requires_grad=True)
    given = multiclass_loss(scores, torch.tensor([5, 5]), surrogate=phi, form="centered", normalize=False, reduction="sum")
    step = -torch.autograd.grad(given, scores)[0]
    assert step[0].tolist() == pytest.approx([-5 / 6, *[1 / 6] * 5])
    assert step[1].tolist() == pytest.approx([*[-1 / 6] * 5, 5 / 6])
