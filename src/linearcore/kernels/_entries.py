"""Look-ups in a large parameter whose gradient is sparse."""

import torch
from torch import Tensor


class _Entries(torch.autograd.Function):
    """parameter[indices], with a sparse gradient: as many entries as were looked up, whatever the parameter's size."""

    @staticmethod
    def forward(ctx, parameter: Tensor, *indices: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*indices)
        ctx.size = parameter.shape
        return parameter[indices]

    @staticmethod
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        indices = torch.stack([index.reshape(-1) for index in ctx.saved_tensors])
        values = upstream.reshape(-1, *ctx.size[len(indices) :])
        gradient = torch.sparse_coo_tensor(indices, values, ctx.size, check_invariants=False)
        return gradient, *(None for _ in ctx.saved_tensors)


def entries(parameter: Tensor, *indices: Tensor, sparse: bool) -> Tensor:
    """parameter[indices] for equally shaped `indices` of its leading dimensions.

    With `sparse` the gradient is a sparse COO tensor, uncoalesced, which torch.optim.SGD and SparseAdam apply as it is: the
    cost of a step then does not depend on the parameter's size. Without, it is dense.
    """
    if not sparse:
        return parameter[indices]
    found: Tensor = _Entries.apply(parameter, *indices)  # type: ignore[no-untyped-call]
    return found
