"""Products of half-precision matrices whose results are not rounded to half precision."""

from torch import Tensor

#: Numbers in 16 bytes of half precision.
_ALIGNMENT = 8


def has_unrounded_product(left: Tensor, right: Tensor) -> bool:
    """Returns whether to multiply these matrices of half precision with `out_dtype=torch.float32`.

    Only on CUDA, with rows that begin at multiples of 16 bytes. No other products were compared with the reference on a GPU.
    """
    if not (left.is_cuda and right.is_cuda):
        return False
    sizes = *left.shape[1:], *right.shape
    places = (number for factor in (left, right) for number in (factor.storage_offset(), *factor.stride()) if number != 1)
    return all(number % _ALIGNMENT == 0 for number in (*sizes, *places))
