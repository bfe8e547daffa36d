"""Look-ups in a large parameter with sparse gradients."""

import torch
from torch import Tensor


class _Entries(torch.autograd.Function):
    """parameter[indices] with a sparse gradient, whose size is the number of look-ups."""

    @staticmethod
    def forward(ctx, parameter: Tensor, *indices: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*indices)
        ctx.size = parameter.shape
        return parameter[indices]

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        indices = torch.stack([index.reshape(-1) for index in ctx.saved_tensors])
        values = grad_output.reshape(-1, *ctx.size[len(indices) :])
        gradient = torch.sparse_coo_tensor(indices, values, ctx.size, check_invariants=False)
        return gradient, *(None for _ in ctx.saved_tensors)


def entries(parameter: Tensor, *indices: Tensor, sparse: bool) -> Tensor:
    """Returns parameter[indices] for `indices` of equal shape into its leading dimensions.

    With `sparse` the gradient is an uncoalesced sparse COO tensor, which torch.optim.SGD and SparseAdam support. The time
    of a step then does not depend on the parameter's size. Otherwise the gradient is dense.
    """
    if not sparse:
        return parameter[indices]
    values: Tensor = _Entries.apply(parameter, *indices)  # type: ignore[no-untyped-call]
    return values
