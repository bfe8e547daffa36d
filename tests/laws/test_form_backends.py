"""How a loss is computed is no part of its meaning: eager and compiled backends against the reference, for every pair.

Laws: the same value and the same gradient for hard and soft targets, margins and missing classes, for any upstream
gradient; gradcheck and gradgradcheck for both; no host synchronisation, shown by running everything on the meta device,
where a tensor has no numbers that anyone could wait for.
"""

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from linearcore.losses import Form, binary_loss, multiclass_loss
from linearcore.surrogates import Surrogate
from tests.cases import A_FEW, PAIRS, a_few_pairs, every_pair, every_surrogate

both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))

GENERATOR = torch.Generator().manual_seed(7)
SCORES = 3 * torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
INDEX = torch.tensor([4, 0, 1, 3, 2, 0])
PROBABILITY = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR).softmax(1)
TARGETS = {"hard": INDEX, "soft": PROBABILITY}
MARGIN = torch.tensor([0.5, 0.0, -0.3, 1.0, 0.2], dtype=torch.float64)
UPSTREAM = torch.tensor([1.0, -2.0, 0.0, 0.5, 3.0, 1e-3], dtype=torch.float64)

every_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())


def both(scores: Tensor, target: Tensor, upstream: Tensor, **options: object) -> list[tuple[Tensor, Tensor]]:
    """(losses, gradient) of the reference, of the eager backend, and of "auto", which is compiled where it can be."""
    results = []
    for backend in ("reference", "eager", "auto"):
        leaf = scores.clone().requires_grad_()
        losses = multiclass_loss(leaf, target, reduction="none", backend=backend, **options)
        results.append((losses.detach(), *torch.autograd.grad(losses, leaf, upstream)))
    return results


def same(results: list[tuple[Tensor, Tensor]]) -> None:
    for reference, *others in zip(*results, strict=True):
        for other in others:
            torch.testing.assert_close(other, reference, rtol=1e-12, atol=1e-13)


@every_pair
@every_target
def test_eager_is_the_reference(phi: Surrogate, form: Form, target: Tensor) -> None:
    same(both(SCORES, target, UPSTREAM, surrogate=phi, form=form))


@settings(max_examples=100)
@given(
    pair=st.sampled_from(sorted(PAIRS)),
    target=st.sampled_from(sorted(TARGETS)),
    smoothing=st.sampled_from((0.0, 0.2)),
    given_tensors=st.sets(st.sampled_from(("class_margin", "weight", "sample_weight"))),
    missing=st.booleans(),
)
def test_eager_is_the_reference_for_any_pair_and_options(
    pair: str, target: str, smoothing: float, given_tensors: set[str], missing: bool
) -> None:
    phi, form = PAIRS[pair]
    tensors = {"class_margin": MARGIN, "weight": MARGIN.exp(), "sample_weight": UPSTREAM.abs()}
    options = {name: tensors[name] for name in given_tensors}
    scores, wanted = SCORES, TARGETS[target]
    if missing and smoothing == 0:  # Smoothing gives every class a share, also one that is masked out.
        scores = SCORES.masked_fill(torch.eye(6, 5).bool(), -math.inf)
        wanted = INDEX if target == "hard" else PROBABILITY.masked_fill(torch.eye(6, 5).bool(), 0.0)
    same(both(scores, wanted, UPSTREAM, surrogate=phi, form=form, label_smoothing=smoothing, **options))


@a_few_pairs
@every_target
@pytest.mark.parametrize("smoothing", (0.0, 0.2))
def test_eager_is_the_reference_with_margins_smoothing_and_missing_classes(
    phi: Surrogate, form: Form, target: Tensor, smoothing: float
) -> None:
    options = {"surrogate": phi, "form": form, "class_margin": MARGIN, "label_smoothing": smoothing}
    same(both(SCORES, target, UPSTREAM, **options))
    if smoothing == 0:
        is_missing = torch.eye(6, 5).bool()
        # A missing label is an error: its loss is inf, and the backends need not agree on a gradient.
        is_missing[torch.arange(6), INDEX] = False
        without, shares = SCORES.masked_fill(is_missing, -math.inf), PROBABILITY.masked_fill(is_missing, 0.0)
        target = INDEX if target is INDEX else shares
        same(both(without, target, UPSTREAM, **options))


@every_pair
def test_upstream_gradients_multiply_row_by_row(phi: Surrogate, form: Form) -> None:
    """reduction="none" gives each row's own gradient times what comes from above, zero and negative included."""
    rows = []
    for scores, label, above in zip(SCORES, INDEX, UPSTREAM, strict=True):
        leaf = scores.clone().requires_grad_()
        rows.append(above * torch.autograd.grad(multiclass_loss(leaf, label, surrogate=phi, form=form), leaf)[0])
    gradient = both(SCORES, INDEX, UPSTREAM, surrogate=phi, form=form)[1][1]
    torch.testing.assert_close(gradient, torch.stack(rows), rtol=1e-12, atol=1e-13)
    assert (gradient[2] == 0).all()


@every_pair
@both_backends
def test_gradcheck_and_gradgradcheck(phi: Surrogate, form: Form, backend: str) -> None:
    scores = SCORES[:2, :3].clone().requires_grad_()

    def losses(leaf: Tensor) -> Tensor:
        target = INDEX[1:3] % 3
        return multiclass_loss(leaf, target, surrogate=phi, form=form, reduction="none", backend=backend)

    assert gradcheck(losses, scores, fast_mode=True)
    assert gradgradcheck(losses, scores, fast_mode=True)


@a_few_pairs
@every_target
def test_the_gradient_is_the_same_when_it_will_be_differentiated(phi: Surrogate, form: Form, target: Tensor) -> None:
    """With `create_graph` the eager backend takes another way, which gradgradcheck compares with itself alone."""
    leaf = SCORES.clone().requires_grad_()
    for losses in (
        multiclass_loss(leaf, target, surrogate=phi, form=form, reduction="none", backend="eager"),
        binary_loss(leaf, PROBABILITY, surrogate=phi, pos_weight=MARGIN, reduction="none", backend="eager"),
    ):
        (once,) = torch.autograd.grad(losses.sum(), leaf, retain_graph=True)
        (again,) = torch.autograd.grad(losses.sum(), leaf, create_graph=True)
        torch.testing.assert_close(again.detach(), once, rtol=1e-12, atol=1e-13)


@a_few_pairs
@both_backends
@every_target
def test_gradcheck_with_every_option(phi: Surrogate, form: Form, backend: str, target: Tensor) -> None:
    scores = (SCORES[:2] / 2).requires_grad_()
    options = {"class_margin": MARGIN, "label_smoothing": 0.1, "weight": MARGIN + 1, "sample_weight": UPSTREAM[:2]}

    def loss(leaf: Tensor) -> Tensor:
        return multiclass_loss(leaf, target[:2], surrogate=phi, form=form, backend=backend, reduction="sum", **options)

    assert gradcheck(loss, scores)
    assert gradgradcheck(loss, scores)


@every_surrogate
@both_backends
def test_binary_gradcheck_and_gradgradcheck(phi: Surrogate, backend: str) -> None:
    scores = (SCORES[:3, :2] / 2).requires_grad_()
    weights = {"pos_weight": UPSTREAM[-2:], "reduction": "none", "surrogate": phi, "backend": backend}
    for target in (SCORES[:3, :2] > 0.5, PROBABILITY[:3, :2]):
        assert gradcheck(lambda leaf, target=target: binary_loss(leaf, target, **weights), scores, fast_mode=True)
        assert gradgradcheck(lambda leaf, target=target: binary_loss(leaf, target, **weights), scores, fast_mode=True)


@every_surrogate
def test_binary_eager_is_the_reference(phi: Surrogate) -> None:
    for target in (SCORES > 0.5, PROBABILITY):
        results = []
        for backend in ("reference", "eager"):
            leaf = SCORES.clone().requires_grad_()
            losses = binary_loss(leaf, target, surrogate=phi, pos_weight=MARGIN.exp(), backend=backend, reduction="none")
            results.append((losses.detach(), *torch.autograd.grad(losses, leaf, SCORES.sin())))
        same(results)


@a_few_pairs
@both_backends
def test_gradients_with_respect_to_targets_weights_and_margins(phi: Surrogate, form: Form, backend: str) -> None:
    """The reference differentiates all inputs, also at a share of exactly 0; the eager one refuses to."""
    others = [PROBABILITY[:2].clone(), MARGIN.exp(), MARGIN.clone(), UPSTREAM[:2].clone()]
    others[0][0, 1] = 0.0

    def loss(target: Tensor, weight: Tensor, margin: Tensor, sample_weight: Tensor) -> Tensor:
        tensors = {"weight": weight, "class_margin": margin, "sample_weight": sample_weight}
        return multiclass_loss(SCORES[:2] / 2, target, surrogate=phi, form=form, backend=backend, reduction="sum", **tensors)

    leaves = [tensor.requires_grad_() for tensor in others]
    if backend == "eager":
        with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs, got 'eager'"):
            loss(*leaves)
    else:
        assert gradcheck(loss, leaves)


META_OPTIONS = {
    f"{target}-{reduction}-{'everything' if everything else 'nothing'}-{backend}": (target, reduction, everything, backend)
    for target, reduction, everything, backend in product(
        ("hard", "soft"), ("mean", "sum", "none"), (False, True), ("reference", "eager")
    )
}


@pytest.mark.parametrize(("target", "reduction", "everything", "backend"), META_OPTIONS.values(), ids=META_OPTIONS.keys())
@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
def test_no_host_synchronisation(form: str, target: str, reduction: str, everything: bool, backend: str) -> None:
    """Reading a number of a meta tensor raises, so a loss that runs here waits for no device."""
    scores = torch.empty(4, 5, 3, device="meta", requires_grad=True)
    shape, dtype = ((4, 3), torch.long) if target == "hard" else ((4, 5, 3), torch.float32)
    options: dict[str, object] = {}
    if everything:
        per_class = torch.empty(5, device="meta")
        options = {"weight": per_class, "class_margin": per_class, "label_smoothing": 0.1}
        options["sample_weight"] = torch.empty(4, 3, device="meta")
    target_tensor = torch.empty(shape, dtype=dtype, device="meta")
    loss = multiclass_loss(scores, target_tensor, form=form, reduction=reduction, backend=backend, **options)
    assert loss.shape == ((4, 3) if reduction == "none" else ())
    loss.sum().backward()
    assert scores.grad is not None and scores.grad.shape == scores.shape
    with pytest.raises((RuntimeError, NotImplementedError)):
        multiclass_loss(scores, target_tensor, form=form, validate=True)


@pytest.mark.parametrize("phi", A_FEW.values(), ids=A_FEW.keys())
@pytest.mark.parametrize("dtype", (torch.bool, torch.long, torch.float32), ids=("bool", "long", "float"))
@both_backends
def test_no_host_synchronisation_in_binary_losses(phi: Surrogate, dtype: torch.dtype, backend: str) -> None:
    scores = torch.empty(4, 5, device="meta", requires_grad=True)
    target = torch.empty(4, 5, dtype=dtype, device="meta")
    weight = torch.empty(5, device="meta")
    for signed in (False, True):
        options = {"surrogate": phi, "pos_weight": weight, "sample_weight": weight, "signed": signed}
        binary_loss(scores, target, backend=backend, **options).backward()
