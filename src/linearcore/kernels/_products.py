"""Products of half-precision matrices whose results are not rounded to half precision."""

from torch import Tensor

#: Numbers in 16 bytes of half precision.
ALIGNMENT = 8


def has_unrounded_product(left: Tensor, right: Tensor) -> bool:
    """Returns whether torch multiplies these matrices of half precision with `out_dtype=torch.float32`.

    Only on CUDA, and only with rows of 16 bytes or a multiple: the benchmarks compared only such products with the reference
    on a GPU, and cuBLAS has fewer algorithms for others.
    """
    if not (left.is_cuda and right.is_cuda):
        return False
    return all(
        number % ALIGNMENT == 0
        for factor in (left, right)
        for number in (*factor.shape, factor.storage_offset(), *(stride for stride in factor.stride() if stride != 1))
    )
