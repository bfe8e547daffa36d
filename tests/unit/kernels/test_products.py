"""Half-precision products use `out_dtype` only on CUDA and with aligned rows; all others take the path of a CPU."""

import pytest
import torch
from torch import Tensor

from linearcore.forms._projected import add_product
from linearcore.kernels import has_unrounded_product
from linearcore.kernels._sampled import _unrounded_product


def factors(rows: int, depth: int, columns: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(*shape, generator=generator).bfloat16() for shape in ((rows, depth), (depth, columns)))
    return left, right


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All tensors say that they are on CUDA. Filled with the names of the functions that were called with `out_dtype`."""
    called: list[str] = []

    def product(name: str, *tensors: Tensor, out: Tensor | None = None) -> Tensor:
        called.append(name)
        *total, left, right = (tensor.float() for tensor in tensors)
        result = left @ right + (total[0] if total else 0.0)
        return result if out is None else out.copy_(result)

    def spied(name: str) -> None:
        original = getattr(torch, name)

        def spy(*given: Tensor, out_dtype: torch.dtype | None = None, **options: Tensor) -> Tensor:
            return original(*given, **options) if out_dtype is None else product(name, *given, **options)

        monkeypatch.setattr(torch, name, spy)

    monkeypatch.setattr(Tensor, "is_cuda", True)
    spied("mm")
    spied("addmm")
    return called


def test_a_cpu_has_no_mixed_products() -> None:
    assert not has_unrounded_product(*factors(8, 16, 8))


@pytest.mark.parametrize("sizes", [(8, 16, 8), (24, 8, 32), (3, 16, 8)])
def test_aligned_factors_take_the_mixed_product(sizes: tuple[int, int, int], mixed: list[str]) -> None:
    left, right = factors(*sizes)
    exact = left.float() @ right.float()
    torch.testing.assert_close(_unrounded_product(left, right), exact)
    total = torch.empty_like(exact)
    add_product(total, left, right, is_first=True)
    add_product(total, left, right, is_first=False)
    torch.testing.assert_close(total, 2 * exact)
    assert mixed == ["mm", "mm", "addmm"]


@pytest.mark.parametrize("sizes", [(8, 6, 8), (8, 16, 3)])
def test_other_sizes_take_the_path_of_a_cpu(sizes: tuple[int, int, int], mixed: list[str]) -> None:
    left, right = factors(*sizes)
    exact = left.float() @ right.float()
    torch.testing.assert_close(_unrounded_product(left, right), exact)
    total = torch.empty_like(exact)
    add_product(total, left, right, is_first=True)
    torch.testing.assert_close(total, exact, rtol=2**-7, atol=2**-7)
    add_product(total, left, right, is_first=False)
    torch.testing.assert_close(total, 2 * exact, rtol=2**-7, atol=2**-6)
    assert mixed == []


@pytest.mark.usefixtures("mixed")
def test_slices_are_aligned_if_their_rows_are() -> None:
    left, right = factors(8, 16, 24)
    assert has_unrounded_product(left, right[:, 8:]) and has_unrounded_product(left.t(), left)
    wide = torch.zeros(16, 25, dtype=torch.bfloat16)
    assert not has_unrounded_product(left, wide[:, :24])  # Rows begin at multiples of 50 bytes.
    assert not has_unrounded_product(left, right.view(-1)[4:-4].view(47, 8)[:16])
