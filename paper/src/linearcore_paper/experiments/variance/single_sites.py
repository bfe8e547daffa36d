"""Variance of the linear-core chain's gradient with a few sampled candidates per position."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from linearcore.heads import LinearCoreChain
from linearcore.proposals import Uniform
from linearcore_paper.experiments._numbers import round_values
from linearcore_paper.experiments.variance.uniform_tags import LENGTH

TAGS, FEATURES = 100, 16


def local_draws(num_samples: Sequence[int], runs: int, seed: int) -> list[dict[str, Any]]:
    """Measures E ‖ĝ − ∇‖² of projection and transitions for every K, with samples shared between positions and without.

    The loss is the mean over positions and candidates, 1/L Σ_j 1/(|Y| − 1) Σ_{v≠y_j} φ(s_j(y_j) − s_j(v)). ∇ is its gradient
    over all candidates, so a bias of ĝ is included.
    """
    stream = torch.Generator().manual_seed(seed)
    # The constructor uses torch's global random state, which is restored; the parameters are set below.
    with torch.random.fork_rng(devices=[]):
        head = LinearCoreChain(TAGS, form="pairwise", normalize=True).double()
    hidden = torch.nn.functional.normalize(_normal(1.0, stream, LENGTH, 1, FEATURES), dim=-1)
    weight = _normal(1.5, stream, TAGS, FEATURES).requires_grad_()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(_normal(0.5, stream, *parameter.shape))
    tags = torch.randint(TAGS, (LENGTH, 1), generator=stream)
    parameters = [weight, *head.parameters()]

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, parameters)])

    exact = gradient(-head(hidden @ weight.t(), tags, reduction="token_mean"))
    rows = []
    for shared in (True, False):
        variances = []
        for k in num_samples:
            total = 0.0
            for _ in range(runs):
                loss = head.sampled_loss(
                    hidden,
                    (weight, None),
                    tags,
                    proposal=Uniform(shared=shared),
                    num_samples=k,
                    generator=stream,
                )
                total += float((gradient(loss) - exact).square().sum())
            variances.append(total / runs)
        rows.append({"shared": shared, "samples": list(num_samples), "variance": round_values(variances, 5)})
    return rows


def _normal(spread: float, stream: torch.Generator, *size: int) -> Tensor:
    return spread * torch.randn(*size, generator=stream, dtype=torch.float64)
