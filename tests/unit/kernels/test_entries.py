"""Look-ups with sparse gradients against dense ones."""

import pytest
import torch
from torch import Tensor

from linearcore.kernels import entries


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 1.5 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


#: A parameter's shape, and indices of its leading dimensions, with repetitions.
LOOK_UPS: dict[str, tuple[tuple[int, ...], tuple[Tensor, ...]]] = {
    "numbers": ((6,), (torch.tensor([[0, 5, 5], [2, 0, 5]]),)),
    "rows": ((6, 3), (torch.tensor([4, 4, 1, 4]),)),
    "rows in a matrix": ((6, 3), (torch.tensor([[4, 4], [1, 5]]),)),
    "pairs": ((4, 5), (torch.tensor([[3, 3], [0, 3]]), torch.tensor([[1, 4], [0, 1]]))),
    "pairs of rows": ((4, 5, 2), (torch.tensor([3, 3, 0]), torch.tensor([1, 1, 0]))),
    "nothing": ((4, 5), (torch.zeros(0, 3).long(), torch.zeros(0, 3).long())),
    "no rows": ((4, 5), (torch.zeros(0, 3).long(),)),
}
every_look_up = pytest.mark.parametrize(("size", "indices"), LOOK_UPS.values(), ids=LOOK_UPS.keys())


@every_look_up
def test_sparse_gradients_are_the_dense_ones(size: tuple[int, ...], indices: tuple[Tensor, ...]) -> None:
    gradients = []
    for sparse in (False, True):
        parameter = drawn(*size).requires_grad_()
        found = entries(parameter, *indices, sparse=sparse)
        assert torch.equal(found, parameter[indices])
        (gradient,) = torch.autograd.grad(found, parameter, drawn(*found.shape, seed=1))
        assert gradient.is_sparse == sparse
        gradients.append(gradient)
    dense, sparse_one = gradients
    assert sparse_one.sparse_dim() == len(indices) and sparse_one._nnz() == indices[0].numel()
    torch.testing.assert_close(sparse_one.to_dense(), dense, rtol=1e-14, atol=0)


def test_repetitions_are_added_up() -> None:
    parameter = torch.zeros(3, 2, requires_grad=True)
    entries(parameter, torch.tensor([1, 1, 2, 1]), sparse=True).sum().backward()
    assert parameter.grad.to_dense().tolist() == [[0, 0], [3, 3], [1, 1]]
    assert not parameter.grad.is_coalesced() and parameter.grad.coalesce().values().tolist() == [[3, 3], [1, 1]]


def test_sparse_gradients_gather_over_two_passes() -> None:
    parameter = torch.zeros(3, requires_grad=True)
    for index in (0, 2, 2):
        entries(parameter, torch.tensor([index]), sparse=True).sum().backward()
    assert parameter.grad.is_sparse and parameter.grad.to_dense().tolist() == [1, 0, 2]


def test_what_wants_no_gradient_gets_none() -> None:
    assert not entries(torch.zeros(3), torch.tensor([1]), sparse=True).requires_grad
