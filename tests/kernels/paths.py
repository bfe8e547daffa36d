"""The fast paths that the grid goes through, each as a function of the tensors that it can differentiate.

The reference of every path is the same function in float64 on a CPU inside `torch.func.vjp`: under a transform the library
takes its differentiable definition, and no fast path.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from linearcore import (
    ChainCRF,
    ChainSSVM,
    LinearCoreChain,
    binary_loss,
    linear_multiclass_loss,
    multiclass_loss,
    sampled_multiclass_loss,
)
from linearcore._torch import is_transformed
from linearcore.heads import ChainHead
from linearcore.losses import robust_loss
from linearcore.proposals import Uniform

#: Where the tests run; see conftest.py.
DEVICE = torch.device(os.environ.get("LINEARCORE_TEST_DEVICE", "cpu"))
IGNORED = -100
#: Tensors by name, and labels, to unreduced losses.
Losses = Callable[[dict[str, Tensor], Tensor], Tensor]


@dataclass(frozen=True)
class Path:
    """A loss of named inputs and labels.

    Attributes:
        losses: the function.
        shapes: the shape of every input, from the sizes (rows, classes).
        labels: the shape of the labels, likewise.
        has_labels: whether labels can be ignored or out of range.
        roundings: how often numbers are rounded to the dtype: in a linear layer and its loss the scores are, and their
            gradients, whose errors add up over the classes or candidates.
    """

    losses: Losses
    shapes: Callable[[int, int], dict[str, tuple[int, ...]]]
    labels: Callable[[int, int], tuple[int, ...]]
    has_labels: bool = True
    roundings: int = 1


def rows(loss: Callable[..., Tensor] = multiclass_loss, **options: object) -> Path:
    """A loss of rows of scores."""

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        given = {"reduction": "none"} | options
        if given.pop("margin", False):
            given["class_margin"] = torch.linspace(0.0, 0.5, inputs["scores"].shape[1], device=target.device)
        return loss(inputs["scores"], target, **given)

    return Path(losses, lambda n, c: {"scores": (n, c)}, lambda n, c: (n,))


def binary() -> Path:
    """`binary_loss` of independent labels."""

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        return binary_loss(inputs["scores"], target.unsqueeze(-1).expand(inputs["scores"].shape) % 2, reduction="none")

    return Path(losses, lambda n, c: {"scores": (n, c)}, lambda n, c: (n,), has_labels=False)


def sampled(form: str, *, sparse: bool) -> Path:
    """`sampled_multiclass_loss` with the same draws every time."""

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        return sampled_multiclass_loss(
            inputs["hidden"], inputs["weight"], target, linear_bias=inputs["bias"], proposal=Fixed(), num_samples=5,
            form=form, sparse=sparse and not is_transformed(), reduction="none",
        )  # fmt: skip

    shapes = lambda n, c: {"hidden": (n, 3), "weight": (c, 3), "bias": (c,)}  # noqa: E731
    return Path(losses, shapes, lambda n, c: (n,), roundings=2)


def linear(form: str, *, bias: bool = True) -> Path:
    """`linear_multiclass_loss` in chunks of a row or of all classes."""

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        return linear_multiclass_loss(
            inputs["hidden"], inputs["weight"], target, linear_bias=inputs.get("bias"), form=form, chunk_bytes=1,
            reduction="none",
        )  # fmt: skip

    shapes = lambda n, c: {"hidden": (n, 3), "weight": (c, 3)} | ({"bias": (c,)} if bias else {})  # noqa: E731
    return Path(losses, shapes, lambda n, c: (n,), roundings=3)


def sampled_chain(**options: object) -> Path:
    """`LinearCoreChain.sampled_loss` with the same draws every time; its parameters among the inputs."""
    make = lambda tags: LinearCoreChain(tags, validate=False, **options)  # noqa: E731

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        hidden, weight, bias, *_ = inputs.values()
        head = make(weight.shape[0])
        parameters = {name: tensor for name, tensor in inputs.items() if name not in ("hidden", "weight", "bias")}
        sampling = {"proposal": Fixed(), "num_samples": 5, "reduction": "none"}
        named = {f"head.{name}": tensor for name, tensor in parameters.items()}
        return functional_call(SampledLoss(head), named, (hidden, (weight, bias), target), sampling)

    def shapes(chains: int, tags: int) -> dict[str, tuple[int, ...]]:
        own = {name: tuple(parameter.shape) for name, parameter in make(tags).named_parameters()}
        return {"hidden": (LENGTH, chains, 3), "weight": (tags, 3), "bias": (tags,), **own}

    return Path(losses, shapes, lambda n, c: (LENGTH, n))


class SampledLoss(torch.nn.Module):
    """`head.sampled_loss` as a module's `forward`, for `functional_call`."""

    def __init__(self, head: LinearCoreChain) -> None:
        super().__init__()
        self.head = head

    def forward(self, *inputs: object, **options: object) -> Tensor:
        return self.head.sampled_loss(*inputs, **options)


class Fixed(Uniform):
    """Draws that do not depend on the device."""

    def sample(self, size, num_classes, like, generator):  # type: ignore[no-untyped-def]
        drawn = torch.randint(num_classes, size, generator=torch.Generator().manual_seed(5))
        return drawn.to(like.device)


LENGTH = 4


def chain(make: Callable[[int], ChainHead]) -> Path:
    """The losses of a head, its parameters among the inputs; rows are chains and classes are tags."""

    def losses(inputs: dict[str, Tensor], target: Tensor) -> Tensor:
        emissions, *_ = inputs.values()
        head = make(emissions.shape[-1])
        parameters = {name: tensor for name, tensor in inputs.items() if name != "emissions"}
        return -functional_call(head, parameters, (emissions, target), {"reduction": "none"})

    def shapes(chains: int, tags: int) -> dict[str, tuple[int, ...]]:
        own = {name: tuple(parameter.shape) for name, parameter in make(tags).named_parameters()}
        return {"emissions": (LENGTH, chains, tags), **own}

    return Path(losses, shapes, lambda n, c: (LENGTH, n))


PATHS: dict[str, Path] = {
    **{form: rows(form=form) for form in ("logodds", "pairwise", "centered")},
    **{f"{form}, margins": rows(form=form, margin=True) for form in ("logodds", "pairwise", "centered")},
    **{f"{form}, summed": rows(form=form, reduction="sum") for form in ("logodds", "pairwise", "centered")},
    "robust": rows(robust_loss),
    "robust, summed": rows(robust_loss, reduction="sum"),
    **{f"{form}, smoothed": rows(form=form, label_smoothing=0.2) for form in ("logodds", "pairwise", "centered")},
    "binary": binary(),
    **{f"sampled {form}": sampled(form, sparse=False) for form in ("logodds", "pairwise")},
    "sampled logodds, sparse": sampled("logodds", sparse=True),
    **{f"linear {form}": linear(form) for form in ("logodds", "pairwise", "centered")},
    "linear pairwise, no bias": linear("pairwise", bias=False),
    "sampled chain": sampled_chain(),
    "sampled chain, rank": sampled_chain(rank=2),
    "sampled chain, rank, unary": sampled_chain(rank=2, unary=0.5, form="pairwise"),
    "chain": chain(lambda tags: LinearCoreChain(tags, validate=False)),
    "chain, unary": chain(lambda tags: LinearCoreChain(tags, unary=0.5, validate=False)),
    "chain, rank": chain(lambda tags: LinearCoreChain(tags, rank=2, validate=False)),
    "chain, centered": chain(lambda tags: LinearCoreChain(tags, form="centered", validate=False)),
    "chain, pairwise": chain(lambda tags: LinearCoreChain(tags, form="pairwise", rank=2, unary=0.5, validate=False)),
    "crf": chain(lambda tags: ChainCRF(tags, validate=False)),
    "ssvm": chain(lambda tags: ChainSSVM(tags, validate=False)),
}
