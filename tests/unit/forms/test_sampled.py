"""Forms over weighted candidates against loops over them."""

import math

import pytest
import torch
from torch import Tensor

from linearcore.forms import Centered, LogOdds, Pairwise
from linearcore.losses import multiclass_loss
from linearcore.surrogates import Hinge, LinearCore, Surrogate
from tests.cases import A_FEW, allows
from tests.oracles import Bound

BOUND: dict[str, Bound] = {
    f"{name}-{form}": Bound(form, phi)
    for name, phi in A_FEW.items()
    for form in (Pairwise(False), Pairwise(), LogOdds())
    if allows(form, phi)
}
every_bound = pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND.keys())
A_FORM_EACH = (Bound(Pairwise(False), LinearCore()), Bound(Pairwise(True), LinearCore()), Bound(LogOdds(), LinearCore()))
every_form = pytest.mark.parametrize("bound", A_FORM_EACH, ids=("sum", "mean", "logodds"))
NUM_CLASSES = 11


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 1.5 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def some_idle(log_weight: Tensor) -> Tensor:
    """Some that count for nothing, among them all of the last row."""
    log_weight = log_weight.clone()
    log_weight[0, 1] = log_weight[1, :2] = log_weight[2, 3] = log_weight[-1] = -math.inf
    return log_weight


def row_loss(bound: Bound, own: Tensor, others: Tensor, log_weight: Tensor) -> Tensor:
    """One row by definition, over those that count; weights by multiplication."""
    phi = bound.surrogate
    terms = [(w.exp(), s) for w, s in zip(log_weight, others, strict=True) if w != -math.inf]
    if not terms:
        return own * 0
    if isinstance(bound.form, LogOdds):
        return phi.value(own - torch.log(sum(w * s.exp() for w, s in terms)))
    total = sum(w * phi.value(own - s) for w, s in terms)
    return total / (NUM_CLASSES - 1) if bound.form.is_mean else total


@every_bound
def test_equals_the_loop(bound: Bound) -> None:
    log_weight = some_idle(drawn(5, 4, seed=2))
    upstream, results = drawn(5, seed=3), []
    for way in ("loop", "bound"):
        own, others = drawn(5).requires_grad_(), drawn(5, 4, seed=1).requires_grad_()
        if way == "loop":
            losses = torch.stack([row_loss(bound, *row) for row in zip(own, others, log_weight, strict=True)])
        else:
            losses = bound.sampled(own, others, log_weight, NUM_CLASSES)
        results.append([losses.detach(), *torch.autograd.grad(losses, (own, others), upstream)])
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    assert results[1][0][-1] == 0 and results[1][1][-1] == 0 and (results[1][2][log_weight == -math.inf] == 0).all()


@every_form
def test_what_counts_for_nothing_may_be_anything(bound: Bound) -> None:
    """Also a candidate that scores more than all others together."""
    log_weight, others = some_idle(drawn(5, 4, seed=2)), drawn(5, 4, seed=1)
    expected = bound.sampled(drawn(5), others, log_weight, NUM_CLASSES)
    others[log_weight == -math.inf] = 1e6
    assert torch.equal(bound.sampled(drawn(5), others, log_weight, NUM_CLASSES), expected)


@every_form
def test_far_scores(bound: Bound) -> None:
    """Neither the exponentials nor the logarithms leave float32."""
    own, others = torch.tensor([300.0, -300.0]), torch.tensor([[-200.0, 250.0, 249.0], [200.0, -250.0, 201.0]])
    log_weight = torch.tensor([[0.0, 3.0, -2.0], [5.0, 0.0, 1.0]])
    own.requires_grad_(), others.requires_grad_()
    found = bound.sampled(own, others, log_weight, NUM_CLASSES)
    exact = bound.sampled(own.double(), others.double(), log_weight.double(), NUM_CLASSES)
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=1e-6)
    gradients = torch.autograd.grad(found.sum(), (own, others))
    assert all(gradient.isfinite().all() for gradient in gradients) and gradients[0].abs().sum() > 0


@every_form
def test_gradcheck(bound: Bound) -> None:
    log_weight = some_idle(drawn(5, 4, seed=2))
    leaves = drawn(5).requires_grad_(), drawn(5, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda *given: bound.sampled(*given, log_weight, NUM_CLASSES), leaves)
    assert torch.autograd.gradgradcheck(lambda *given: bound.sampled(*given, log_weight, NUM_CLASSES), leaves)


ABSENT = {name: bound for name, bound in BOUND.items() if not bound.form.is_mean}


@pytest.mark.parametrize("bound", ABSENT.values(), ids=ABSENT.keys())
def test_a_score_of_minus_infinity_is_a_class_that_is_not_there(bound: Bound) -> None:
    """As in the dense loss: no loss, no gradient, whatever φ is far out; row 2 has no other at all, row 3 not its label."""
    scores = drawn(4, 5)
    scores[0, 3] = scores[1, 1:3] = scores[2, 1:] = scores[3, 0] = scores[3, 2] = -math.inf
    form = Pairwise(normalize=False) if isinstance(bound.form, Pairwise) else LogOdds()
    options = {"surrogate": bound.surrogate, "form": form, "reduction": "none", "backend": "eager"}
    upstream, results = torch.tensor([1.0, -2.0, 0.5]).double(), []
    for way in ("dense", "sampled"):
        leaf = scores[:3].clone().requires_grad_()
        for given in (leaf, scores[3:]):
            if way == "dense":
                losses = multiclass_loss(given, torch.zeros(len(given)).long(), **options)
            else:
                losses = bound.sampled(given[:, 0], given[:, 1:], torch.zeros(len(given), 4).double(), 5)
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
    total, mean = (Bound(Pairwise(way), Hinge()).sampled(own, others, log_weight, num_classes) for way in (False, True))
    torch.testing.assert_close(mean, total / max(1, num_classes - 1), rtol=1e-12, atol=0)


@every_form
def test_no_rows_and_no_candidates(bound: Bound) -> None:
    assert bound.sampled(drawn(0), drawn(0, 4), drawn(0, 4), NUM_CLASSES).shape == (0,)


@every_form
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_the_dtype_of_the_scores_is_kept(bound: Bound, dtype: torch.dtype) -> None:
    given = drawn(5).to(dtype), drawn(5, 4, seed=1).to(dtype)
    assert bound.sampled(*given, torch.zeros(5, 4), NUM_CLASSES).dtype == dtype


@pytest.mark.parametrize("phi", (LinearCore(), Hinge()), ids=str)
def test_centered_is_refused(phi: Surrogate) -> None:
    words = r"^`form` must not need all classes when it is sampled, got 'centered'; .*'pairwise'"
    with pytest.raises(ValueError, match=words):
        Bound(Centered(False), phi).sampled(drawn(5), drawn(5, 4), drawn(5, 4), NUM_CLASSES)
