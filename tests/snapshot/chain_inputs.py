"""Small batches of chains, and heads with fixed parameters."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore.heads import ChainHead
from linearcore.structures import Constraints, bio
from tests.snapshot.inputs import fixed, whole

LENGTH, BATCH, TAGS = 4, 3, 5


def constraints() -> Constraints:
    """Those of BIO tags with two types."""
    return bio(["O", "B-X", "I-X", "B-Y", "I-Y"])


def masks() -> dict[str, Tensor | None]:
    """(L, B): no mask, padding at the end, and positions that are off in between."""
    lengths = torch.tensor([4, 2, 3])
    holes = torch.tensor([[1, 1, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=torch.bool)
    return {"no mask": None, "padding": torch.arange(LENGTH).unsqueeze(-1) < lengths, "holes": holes}


def emissions(dtype: torch.dtype) -> Tensor:
    """(L, B, |Y|). With this seed no two of the best sequences have nearly the same score."""
    return fixed(673, LENGTH, BATCH, TAGS, dtype=dtype)


def tags(*, allowed: bool = False) -> Tensor:
    """(L, B); with `allowed` they obey the constraints under every mask."""
    if allowed:
        return torch.tensor([[1, 0, 3], [2, 1, 4], [2, 2, 4], [0, 2, 4]])
    return whole(61, TAGS, LENGTH, BATCH)


def build(make: Callable[..., ChainHead], dtype: torch.dtype, **options: Any) -> ChainHead:
    """A head with fixed parameters."""
    head = make(TAGS, **options).to(dtype)
    with torch.no_grad():
        for place, (_, parameter) in enumerate(sorted(head.named_parameters())):
            parameter.copy_(fixed(62 + place, *parameter.shape, dtype=dtype, low=-1.0, high=1.0))
    return head


def parameters(head: ChainHead) -> dict[str, Tensor]:
    """The parameters by name, for functions that take them as inputs."""
    return {name: parameter.detach() for name, parameter in sorted(head.named_parameters())}


def with_parameters(head: ChainHead, given: dict[str, Tensor], function: Callable[[ChainHead], Tensor]) -> Tensor:
    """function(head) while the head has the parameters `given`, so that it can be differentiated by them."""
    calls = _Calls(head, function)
    result: Tensor = torch.func.functional_call(calls, {f"head.{name}": tensor for name, tensor in given.items()}, ())
    return result


class _Calls(torch.nn.Module):
    """What `functional_call` needs: a module whose `forward` is the function."""

    def __init__(self, head: ChainHead, function: Callable[[ChainHead], Tensor]) -> None:
        super().__init__()
        self.head = head
        self.function = function

    def forward(self) -> Tensor:
        return self.function(self.head)
