"""Forms over weighted candidates against loops over them, and look-ups with sparse gradients against dense ones."""

import math

import pytest
import torch
from torch import Tensor

from linearcore.kernels import CenteredKernel, LogOddsKernel, PairwiseKernel, entries, sampled_rows
from linearcore.kernels._form import FormKernel
from linearcore.losses import LogOdds, Pairwise, multiclass_loss
from linearcore.surrogates import Hinge, LinearCore, Surrogate
from tests.cases import A_FEW, allows

KERNELS: dict[str, FormKernel] = {
    f"{name}-{kernel.__name__}-{normalize}": kernel(phi, normalize)
    for name, phi in A_FEW.items()
    for kernel, form, normalize in (
        (PairwiseKernel, Pairwise(), False),
        (PairwiseKernel, Pairwise(), True),
        (LogOddsKernel, LogOdds(), False),
    )
    if allows(form, phi)
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
A_FORM_EACH = (PairwiseKernel(LinearCore()), PairwiseKernel(LinearCore(), True), LogOddsKernel(LinearCore()))
every_form = pytest.mark.parametrize("kernel", A_FORM_EACH, ids=("sum", "mean", "logodds"))
NUM_CLASSES = 11


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 1.5 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_idle(log_weight: Tensor) -> Tensor:
    """Some that count for nothing, among them all of the last row."""
    log_weight = log_weight.clone()
    log_weight[0, 1] = log_weight[1, :2] = log_weight[2, 3] = log_weight[-1] = -math.inf
    return log_weight


def row_loss(kernel: FormKernel, own: Tensor, others: Tensor, log_weight: Tensor) -> Tensor:
    """One row by definition, over those that count; weights by multiplication."""
    phi = kernel.surrogate
    terms = [(w.exp(), s) for w, s in zip(log_weight, others, strict=True) if w != -math.inf]
    if not terms:
        return own * 0
    if isinstance(kernel, LogOddsKernel):
        return phi.value(own - torch.log(sum(w * s.exp() for w, s in terms)))
    total = sum(w * phi.value(own - s) for w, s in terms)
    return total / (NUM_CLASSES - 1) if kernel.normalize else total


@every_kernel
def test_equals_the_loop(kernel: FormKernel) -> None:
    log_weight = some_idle(drawn(5, 4, seed=2))
    upstream, results = drawn(5, seed=3), []
    for way in ("loop", "kernel"):
        own, others = drawn(5).requires_grad_(), drawn(5, 4, seed=1).requires_grad_()
        if way == "loop":
            losses = torch.stack([row_loss(kernel, *row) for row in zip(own, others, log_weight, strict=True)])
        else:
            losses = sampled_rows(kernel, own, others, log_weight, NUM_CLASSES)
        results.append([losses.detach(), *torch.autograd.grad(losses, (own, others), upstream)])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    assert results[1][0][-1] == 0 and results[1][1][-1] == 0 and (results[1][2][log_weight == -math.inf] == 0).all()


@every_form
def test_what_counts_for_nothing_may_be_anything(kernel: FormKernel) -> None:
    """Also a candidate that scores more than all others together."""
    log_weight, others = some_idle(drawn(5, 4, seed=2)), drawn(5, 4, seed=1)
    expected = sampled_rows(kernel, drawn(5), others, log_weight, NUM_CLASSES)
    others[log_weight == -math.inf] = 1e6
    assert torch.equal(sampled_rows(kernel, drawn(5), others, log_weight, NUM_CLASSES), expected)


@every_form
def test_far_scores(kernel: FormKernel) -> None:
    """Neither the exponentials nor the logarithms leave float32."""
    own, others = torch.tensor([300.0, -300.0]), torch.tensor([[-200.0, 250.0, 249.0], [200.0, -250.0, 201.0]])
    log_weight = torch.tensor([[0.0, 3.0, -2.0], [5.0, 0.0, 1.0]])
    own.requires_grad_(), others.requires_grad_()
    found = sampled_rows(kernel, own, others, log_weight, NUM_CLASSES)
    exact = sampled_rows(kernel, own.double(), others.double(), log_weight.double(), NUM_CLASSES)
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=1e-6)
    gradients = torch.autograd.grad(found.sum(), (own, others))
    assert all(gradient.isfinite().all() for gradient in gradients) and gradients[0].abs().sum() > 0


@every_form
def test_gradcheck(kernel: FormKernel) -> None:
    log_weight = some_idle(drawn(5, 4, seed=2))
    leaves = drawn(5).requires_grad_(), drawn(5, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda *given: sampled_rows(kernel, *given, log_weight, NUM_CLASSES), leaves)
    assert torch.autograd.gradgradcheck(lambda *given: sampled_rows(kernel, *given, log_weight, NUM_CLASSES), leaves)


ABSENT = {name: kernel for name, kernel in KERNELS.items() if not name.endswith("True")}


@pytest.mark.parametrize("kernel", ABSENT.values(), ids=ABSENT.keys())
def test_a_score_of_minus_infinity_is_a_class_that_is_not_there(kernel: FormKernel) -> None:
    """As in the dense loss: no loss, no gradient, whatever φ is far out; row 2 has no other at all, row 3 not its label."""
    scores = drawn(4, 5)
    scores[0, 3] = scores[1, 1:3] = scores[2, 1:] = scores[3, 0] = scores[3, 2] = -math.inf
    form = Pairwise(normalize=False) if isinstance(kernel, PairwiseKernel) else LogOdds()
    options = {"surrogate": kernel.surrogate, "form": form, "reduction": "none", "backend": "blocked"}
    upstream, results = torch.tensor([1.0, -2.0, 0.5]).double(), []
    for way in ("dense", "sampled"):
        leaf = scores[:3].clone().requires_grad_()
        for given in (leaf, scores[3:]):
            if way == "dense":
                losses = multiclass_loss(given, torch.zeros(len(given)).long(), **options)
            else:
                losses = sampled_rows(kernel, given[:, 0], given[:, 1:], torch.zeros(len(given), 4).double(), 5)
            results.append(losses.detach())
            if given is leaf:
                results += torch.autograd.grad(losses, leaf, upstream)
    expected, found = results[:3], results[3:]
    assert expected[2].item() == math.inf
    for right, ours in zip(expected, found, strict=True):
        torch.testing.assert_close(ours, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_classes", (1, 2, 40))
def test_the_mean_is_over_all_others_and_not_over_the_candidates(num_classes: int) -> None:
    own, others, log_weight = drawn(5), drawn(5, 4, seed=1), drawn(5, 4, seed=2)
    total, mean = (sampled_rows(PairwiseKernel(Hinge(), way), own, others, log_weight, num_classes) for way in (False, True))
    torch.testing.assert_close(mean, total / max(1, num_classes - 1), rtol=1e-12, atol=0)


@every_form
def test_no_rows_and_no_candidates(kernel: FormKernel) -> None:
    assert sampled_rows(kernel, drawn(0), drawn(0, 4), drawn(0, 4), NUM_CLASSES).shape == (0,)


@every_form
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_the_dtype_of_the_scores_is_kept(kernel: FormKernel, dtype: torch.dtype) -> None:
    given = drawn(5).to(dtype), drawn(5, 4, seed=1).to(dtype)
    assert sampled_rows(kernel, *given, torch.zeros(5, 4), NUM_CLASSES).dtype == dtype


@pytest.mark.parametrize("phi", (LinearCore(), Hinge()), ids=str)
def test_centered_is_refused(phi: Surrogate) -> None:
    words = r"^`form` must not need the mean over all classes when it is sampled, got 'centered'; take 'pairwise' or"
    with pytest.raises(ValueError, match=words):
        sampled_rows(CenteredKernel(phi), drawn(5), drawn(5, 4), drawn(5, 4), NUM_CLASSES)


# Look-ups.

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
