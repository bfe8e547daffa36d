"""SparseAdamW is AdamW on the entries that have a gradient, and catches up on weight decay."""

import copy

import pytest
import torch
from torch import Tensor

from linearcore.optim import SparseAdamW
from tests.cases import cross


def drawn(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sparse(indices: list[list[int]], values: Tensor, size: tuple[int, ...]) -> Tensor:
    return torch.sparse_coo_tensor(torch.tensor(indices), values, size, check_invariants=True)


@pytest.mark.parametrize("sparse_dim", (None, 1, 2))
def test_gradients_everywhere_are_adamw(sparse_dim: int | None) -> None:
    ours, theirs = (torch.nn.Parameter(drawn(5, 3)) for _ in range(2))
    options = {"lr": 0.1, "weight_decay": 0.3, "betas": (0.8, 0.9)}
    mine, torchs = SparseAdamW([ours], **options), torch.optim.AdamW([theirs], **options)
    for step in range(7):
        gradient = drawn(5, 3, seed=step)
        theirs.grad = gradient
        ours.grad = gradient if sparse_dim is None else gradient.to_sparse(sparse_dim)
        mine.step()
        torchs.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_without_decay_it_is_sparse_adam() -> None:
    ours, theirs = (torch.nn.Parameter(drawn(6, 2)) for _ in range(2))
    mine, torchs = SparseAdamW([ours], lr=0.1, weight_decay=0.0), torch.optim.SparseAdam([theirs], lr=0.1)
    for step in range(7):
        gradient = sparse([[step % 4, 1, 1]], drawn(3, 2, seed=step), (6, 2))
        ours.grad, theirs.grad = gradient, gradient.clone()
        mine.step()
        torchs.step()
    # Not to the last digit: SparseAdam adds ε before the correction of v, AdamW and we after it.
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


@cross(columns=((), (1,), (40,), (3, 700)), decay=(0.0, 0.4), dtype=(torch.float32, torch.float64))
def test_rows_that_repeat_are_summed_whatever_computes_it(
    columns: tuple[int, ...], dtype: torch.dtype, decay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel against torch operations in float64; one row comes twenty times and more."""
    results = []
    for kind in (dtype, torch.float64):
        parameter = torch.nn.Parameter(drawn(5000, *columns).to(kind))
        optimizer = SparseAdamW([parameter], lr=0.1, weight_decay=decay)
        for step in range(4):
            index = torch.randint(5000, (1, 60), generator=torch.Generator().manual_seed(step))
            index[0, ::3] = 4321
            values = drawn(60, *columns, seed=step).to(kind)
            parameter.grad = torch.sparse_coo_tensor(index, values, parameter.shape, check_invariants=True)
            optimizer.step()
        state = [part for part in optimizer.state[parameter].values() if isinstance(part, Tensor)]
        results.append([part.detach().double() for part in (parameter, *state)])
        monkeypatch.setattr("linearcore.optim._sparse_adamw.sparse_adamw", lambda *_: False)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", (1, 2))
def test_rows_that_repeat_between_others_and_in_any_layout(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices that agree in their last 11 bits, which are sorted first; enough of one row for several threads."""
    before, results = torch.get_num_threads(), []
    index = torch.randint(3, (1, 2000), generator=torch.Generator().manual_seed(0)) * 2048 + 7
    index[0, 900:1100] = 7
    values = drawn(2000, 33)
    try:
        torch.set_num_threads(threads)
        for _ in range(2):
            parameter = torch.nn.Parameter(drawn(5000, 33, seed=1))
            # Views with gaps, and columns of a matrix.
            places = torch.stack([index, index + 1], -1)[..., 0]
            parameter.grad = torch.sparse_coo_tensor(places, values.t().contiguous().t(), parameter.shape)
            SparseAdamW([parameter], lr=0.1).step()
            results.append(parameter.detach())
            monkeypatch.setattr("linearcore.optim._sparse_adamw.sparse_adamw", lambda *_: False)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)


def test_autograd_notices_the_step() -> None:
    parameter = torch.nn.Parameter(drawn(4, 2))
    optimizer = SparseAdamW([parameter], lr=0.1)
    loss = parameter.square().sum()
    parameter.grad = sparse([[1]], drawn(1, 2), (4, 2))
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_what_has_no_gradient_is_left_alone() -> None:
    parameter = torch.nn.Parameter(drawn(6, 2))
    before = parameter.detach().clone()
    optimizer = SparseAdamW([parameter], lr=0.1, weight_decay=0.5)
    parameter.grad = sparse([[2]], drawn(1, 2), (6, 2))
    optimizer.step()
    changed = (parameter.detach() != before).any(-1)
    assert changed.tolist() == [False, False, True, False, False, False]


def test_decay_catches_up_with_rests_whatever_the_gradient_is_next() -> None:
    parameter = torch.nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
    optimizer = SparseAdamW([parameter], lr=0.1, weight_decay=0.5)
    nothing = torch.zeros(1, 2, dtype=torch.float64)
    for row in (0, 0, 0, 1):
        parameter.grad = sparse([[row]], nothing, (3, 2))
        optimizer.step()
    kept = torch.tensor([0.95**3, 0.95**4, 1.0], dtype=torch.float64)
    torch.testing.assert_close(parameter.detach(), kept.unsqueeze(-1).expand(3, 2))
    parameter.grad = torch.zeros(3, 2, dtype=torch.float64)
    optimizer.step()
    torch.testing.assert_close(parameter.detach(), torch.full((3, 2), 0.95**5, dtype=torch.float64))


def test_decay_does_not_reach_back_before_the_first_sparse_gradient() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    optimizer = SparseAdamW([parameter], lr=0.1, weight_decay=0.5)
    for _ in range(3):
        parameter.grad = torch.zeros(2, dtype=torch.float64)
        optimizer.step()
    parameter.grad = sparse([[1]], torch.zeros(1, dtype=torch.float64), (2,))
    optimizer.step()
    torch.testing.assert_close(parameter.detach(), torch.tensor([0.95**3, 0.95**4], dtype=torch.float64))


def test_its_state_can_be_saved() -> None:
    def run(steps: range, parameter: torch.nn.Parameter, optimizer: SparseAdamW) -> None:
        for step in steps:
            parameter.grad = sparse([[step % 3, 0], [1, 0]], drawn(2, seed=step), (3, 2))
            optimizer.step()

    whole = torch.nn.Parameter(drawn(3, 2))
    run(range(6), whole, SparseAdamW([whole], lr=0.1))
    part = torch.nn.Parameter(drawn(3, 2))
    first = SparseAdamW([part], lr=0.1)
    run(range(3), part, first)
    second = SparseAdamW([part], lr=0.1)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    run(range(3, 6), part, second)
    torch.testing.assert_close(part, whole, rtol=0, atol=0)


def test_a_closure_is_evaluated_with_gradients() -> None:
    parameter = torch.nn.Parameter(drawn(3))

    def closure() -> Tensor:
        loss = parameter.square().sum()
        loss.backward()
        return loss

    before = float(parameter.detach().square().sum())
    loss = SparseAdamW([parameter], lr=0.1).step(closure)
    assert float(loss.detach()) == before and float(parameter.detach().square().sum()) < before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, "`lr` must be a positive number, got 0.0; for example 1e-3"),
        ({"eps": -1.0}, "`eps` must be a positive number, got -1.0; for example 1e-8"),
        ({"betas": (0.9, 1.0)}, r"`betas` must be in \[0, 1\), got \(0.9, 1.0\); for example"),
        ({"weight_decay": -0.1}, r"`weight_decay` must be in \[0, 1/lr\), got -0.1; for example 1e-2"),
        ({"lr": 1.0, "weight_decay": 1.0}, r"`weight_decay` must be in \[0, 1/lr\), got 1.0; for example 1e-2"),
    ],
)
def test_messages(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SparseAdamW([torch.nn.Parameter(torch.zeros(1))], **options)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32, torch.float64))
def test_decay_of_a_long_rest_is_not_lost_to_rounding(dtype: torch.dtype) -> None:
    parameter = torch.nn.Parameter(torch.ones(2, 1, dtype=dtype))
    optimizer = SparseAdamW([parameter], lr=1e-2, weight_decay=1e-1)
    for row in [0] * 1000 + [1]:
        parameter.grad = sparse([[row]], torch.zeros(1, 1, dtype=dtype), (2, 1))
        optimizer.step()
    assert float(parameter[1]) == pytest.approx(0.999**1001, rel=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32))
def test_a_loaded_state_counts_steps_exactly(dtype: torch.dtype) -> None:
    parameter = torch.nn.Parameter(torch.ones(2, 1, dtype=dtype))
    optimizer = SparseAdamW([parameter], weight_decay=0.1)
    for row in [0] * 600 + [1]:
        parameter.grad = sparse([[row]], torch.zeros(1, 1, dtype=dtype), (2, 1))
        optimizer.step()
    other = SparseAdamW([parameter], weight_decay=0.1)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for name, kept in optimizer.state[parameter].items():
        loaded = other.state[parameter][name]
        assert type(loaded) is type(kept) and (not isinstance(kept, Tensor) or loaded.dtype == kept.dtype)
        assert torch.equal(torch.as_tensor(loaded), torch.as_tensor(kept)), name
