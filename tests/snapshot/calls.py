"""The calls whose names or defaults may change, each in one place. When one does, change it here and nowhere else."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

import linearcore as lc
from linearcore import losses
from linearcore.heads import ChainHead
from linearcore.losses import baselines as literature

#: Ways to compute a loss that must agree with the default, by the names that records know them by.
BACKENDS = {"reference": "reference", "eager": "eager"}

#: Every form by a name that says what it does with the sum over competitors, whatever the default of a name is.
FORMS: dict[str, lc.Form] = {
    "pairwise-mean": lc.Pairwise(normalize=True),
    "pairwise-sum": lc.Pairwise(normalize=False),
    "centered-mean": lc.Centered(normalize=True),
    "centered-sum": lc.Centered(normalize=False),
    "logodds": lc.LogOdds(),
}


def multiclass_loss(scores: Tensor, target: Tensor, **options: Any) -> Tensor:
    return lc.multiclass_loss(scores, target, **options)


def binary_loss(scores: Tensor, target: Tensor, **options: Any) -> Tensor:
    return lc.binary_loss(scores, target, **options)


def robust_loss(scores: Tensor, target: Tensor, **options: Any) -> Tensor:
    return losses.robust_loss(scores, target, **options)


def sampled_multiclass_loss(hidden: Tensor, linear_weight: Tensor, target: Tensor, **options: Any) -> Tensor:
    return lc.sampled_multiclass_loss(hidden, linear_weight, target, **options)


def multiclass_module(**options: Any) -> nn.Module:
    return lc.LinearCoreLoss(**options)


def binary_module(**options: Any) -> nn.Module:
    return lc.BinaryLinearCoreLoss(**options)


def robust_module(**options: Any) -> nn.Module:
    return lc.RobustLinearCoreLoss(**options)


def baselines() -> Mapping[str, Any]:
    return literature.BASELINES


def baseline_module(name: str, **options: Any) -> nn.Module:
    return literature.BaselineLoss(name, **options)


def early_learning_loss(scores: Tensor, target: Tensor, history: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    return literature.early_learning_loss(scores, target, history, **options)


def early_learning_module(num_samples: int, num_classes: int, **options: Any) -> nn.Module:
    return literature.EarlyLearning(num_samples, num_classes, **options)


def chain_loss(head: ChainHead, emissions: Tensor, tags: Tensor, mask: Tensor | None, reduction: str) -> Tensor:
    """The loss itself, which is what heads return with the opposite sign."""
    return -head(emissions, tags, mask, reduction)


def sampled_chain_loss(head: lc.LinearCoreChain, hidden: Tensor, projection: Any, tags: Tensor, **options: Any) -> Tensor:
    return head.sampled_loss(hidden, projection, tags, **{"reduction": "sum", "sparse": True, **options})


def structured_loss(head: lc.LinearCoreChain, emissions: Tensor, tags: Tensor, **options: Any) -> Tensor:
    if options.get("form") == "pairs":
        options["form"] = "sum"
    return head.structured(emissions, tags, **options)


def candidates(proposal: Any, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator) -> Any:
    return proposal.candidates(target, num_classes, num_samples, generator)
