"""AdamW on the rows of a sparse gradient."""

from torch import Tensor
from torch.autograd.graph import increment_version

from linearcore.kernels._adamw_types import AdamWStep
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels.compiled import compiled_adamw


def sparse_adamw(
    tables: tuple[Tensor, Tensor, Tensor], last_step: Tensor | None, index: Tensor, values: Tensor, step: AdamWStep
) -> bool:
    """Updates the rows `index` of parameter and moments in place; the gradients of repeated rows are summed.

    Returns False, with nothing changed, if there is no kernel for these tensors.

    Args:
        tables: parameter and its first and second moments, (R, D) each, contiguous.
        last_step: (R,) int32 number of the step that updated the row last, for weight decay; None for no decay.
        index: (M,) int64 in [0, R).
        values: (M, D) gradients.
        step: numbers of the step.

    Time O(M·D), and that of sorting M integers; on a GPU without synchronisation. Deterministic.
    """
    kernels = fused_kernels_for(*tables, values)
    if kernels is not None:
        kernels.sparse_adamw(values, tables, last_step, index, step)
    elif not compiled_adamw(tables, last_step, index, values, step):
        return False
    for table in tables:  # So that autograd notices that a tensor it has saved was overwritten.
        increment_version(table)
    return True
