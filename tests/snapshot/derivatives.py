"""Values, gradients and Hessian-vector products of a function of several tensors."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from tests.snapshot.inputs import fixed

#: Seeds of the upstream gradient of an unreduced loss, and of the vector that the Hessian is multiplied with.
_UPSTREAM, _DIRECTION = 900, 901


def derivatives(
    function: Callable[..., Tensor], inputs: dict[str, Tensor], *, of: Iterable[str] | None = None, second: bool = True
) -> dict[str, Tensor]:
    """The value, `gradient/NAME` and `second/NAME`: the Hessian of ⟨upstream, value⟩ times a fixed vector.

    Many losses have a backward pass of their own, and another one where a second derivative may follow. So the gradient is
    taken twice: `gradient/NAME [create_graph]` is compared with the record of `gradient/NAME`.

    Args:
        function: takes `inputs` as keyword arguments.
        inputs: floating-point tensors.
        of: the names of those to differentiate by; None means all. Sparse gradients come back dense.
        second: whether to differentiate twice.
    """
    names = list(inputs if of is None else of)
    leaves = {name: tensor.detach().clone().requires_grad_(name in names) for name, tensor in inputs.items()}
    value = function(**leaves)
    results = {"value": value.detach()}
    if not names:
        return results
    upstream = fixed(_UPSTREAM, *value.shape, dtype=value.dtype, low=0.5)
    gradients = _gradients(value, leaves, names, upstream, create_graph=False)
    results |= {f"gradient/{name}": gradient for name, gradient in gradients.items()}
    if not second:
        return results
    gradients = _gradients(function(**leaves), leaves, names, upstream, create_graph=True)
    results |= {f"gradient/{name} [create_graph]": gradient.detach() for name, gradient in gradients.items()}
    products = [
        (gradient * fixed(_DIRECTION + place, *gradient.shape, dtype=gradient.dtype)).sum()
        for place, gradient in enumerate(gradients.values())
        if gradient.requires_grad
    ]
    twice = {name: torch.zeros_like(leaves[name]) for name in names}
    if products:  # A loss of straight pieces has none.
        total = torch.stack(products).sum()
        twice = _gradients(total, leaves, names, torch.ones_like(total), create_graph=False)
    return results | {f"second/{name}": product for name, product in twice.items()}


def _gradients(
    value: Tensor, leaves: dict[str, Tensor], names: list[str], upstream: Tensor, *, create_graph: bool
) -> dict[str, Tensor]:
    found = torch.autograd.grad(
        value, [leaves[name] for name in names], upstream, create_graph=create_graph, allow_unused=True
    )
    return {
        name: torch.zeros_like(leaves[name]) if gradient is None else _dense(gradient)
        for name, gradient in zip(names, found, strict=True)
    }


def _dense(gradient: Tensor) -> Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient
