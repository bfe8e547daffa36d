"""What a target means, for every surrogate × form: `docs/notation.md` and torch.nn.CrossEntropyLoss's own rules.

Laws: a probability target is the mixture of index targets, label smoothing one such mixture; integer sample weights are
repetition; class weights and margins; a class with score −inf is a class taken out; and with the logistic surrogate
`logodds` *is* cross-entropy, whatever else is asked for.
"""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.losses import Form, LogOdds, Pairwise, multiclass_loss
from linearcore.surrogates import Logistic, Surrogate
from tests.cases import a_few_pairs, every_pair
from tests.oracles import row_losses

both_backends = pytest.mark.parametrize("backend", ("reference", "eager"))

SCORES = 2 * torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TARGET = torch.tensor([2, 0, 3, 1, 2])
PROBABILITY = torch.rand(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).softmax(1)
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 3.0], dtype=torch.float64)
MARGIN = torch.tensor([0.0, 0.7, -0.2, 1.5], dtype=torch.float64)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-12, equal_nan=True)


def loss_of_every_label(phi: Surrogate, form: Form, **options: object) -> Tensor:
    """(5, 4): the hard loss of each row of SCORES for each label."""
    columns = [
        multiclass_loss(SCORES, torch.full((5,), y), surrogate=phi, form=form, reduction="none", **options) for y in range(4)
    ]
    return torch.stack(columns, 1)


@every_pair
def test_probability_target_is_a_mixture_of_index_targets(phi: Surrogate, form: Form) -> None:
    mixed = multiclass_loss(SCORES, PROBABILITY, surrogate=phi, form=form, reduction="none")
    close(mixed, (PROBABILITY * loss_of_every_label(phi, form)).sum(1))


@a_few_pairs
def test_probability_mixture_with_weights_and_margins(phi: Surrogate, form: Form) -> None:
    options = {"surrogate": phi, "form": form, "class_margin": MARGIN}
    mixed = multiclass_loss(SCORES, PROBABILITY, weight=WEIGHT, reduction="none", **options)
    close(mixed, (WEIGHT * PROBABILITY * loss_of_every_label(phi, form, class_margin=MARGIN)).sum(1))


@every_pair
def test_one_hot_is_the_index(phi: Surrogate, form: Form) -> None:
    """Also far out, where the losses of the labels that are not meant overflow."""
    scores = SCORES * torch.tensor([1.0, 1.0, 50.0, 1e3, 1e30], dtype=torch.float64)[:, None]
    results = []
    for target in (TARGET, F.one_hot(TARGET, 4).double()):
        leaf = scores.clone().requires_grad_()
        value = multiclass_loss(leaf, target, surrogate=phi, form=form, reduction="none")
        results.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    (hard, hard_gradient), (soft, soft_gradient) = results
    close(soft, hard)
    # Gradients that do overflow are sums of infinities of both signs, and equal nothing.
    finite = hard_gradient.isfinite().all(1) & hard.isfinite()
    assert finite[:3].all()
    close(soft_gradient[finite], hard_gradient[finite])


@every_pair
@pytest.mark.parametrize("smoothing", (0.1, 1.0))
def test_label_smoothing_is_a_mixture(phi: Surrogate, form: Form, smoothing: float) -> None:
    smoothed = multiclass_loss(SCORES, TARGET, surrogate=phi, form=form, reduction="none", label_smoothing=smoothing)
    every = loss_of_every_label(phi, form)
    own = every.gather(1, TARGET[:, None]).squeeze(1)
    close(smoothed, (1 - smoothing) * own + smoothing * every.mean(1))
    mixture = (1 - smoothing) * F.one_hot(TARGET, 4).double() + smoothing / 4
    close(smoothed, multiclass_loss(SCORES, mixture, surrogate=phi, form=form, reduction="none"))


@every_pair
@pytest.mark.parametrize("reduction", ("mean", "sum"))
def test_integer_sample_weights_are_repetition(phi: Surrogate, form: Form, reduction: str) -> None:
    times = torch.tensor([2, 0, 1, 3, 1])
    options = {"surrogate": phi, "form": form, "weight": WEIGHT, "reduction": reduction}
    repeated = multiclass_loss(SCORES.repeat_interleave(times, 0), TARGET.repeat_interleave(times), **options)
    close(multiclass_loss(SCORES, TARGET, sample_weight=times.double(), **options), repeated)
    soft = multiclass_loss(SCORES.repeat_interleave(times, 0), PROBABILITY.repeat_interleave(times, 0), **options)
    close(multiclass_loss(SCORES, PROBABILITY, sample_weight=times.double(), **options), soft)


@a_few_pairs
def test_class_weights_follow_torch(phi: Surrogate, form: Form) -> None:
    """none: w_y ℓ. mean: divided by the weights of the targets, for probability targets by the number of samples."""
    options = {"surrogate": phi, "form": form}
    plain = multiclass_loss(SCORES, TARGET, reduction="none", **options)
    weighted = WEIGHT[TARGET] * plain
    close(multiclass_loss(SCORES, TARGET, weight=WEIGHT, reduction="none", **options), weighted)
    close(multiclass_loss(SCORES, TARGET, weight=WEIGHT, reduction="sum", **options), weighted.sum())
    close(multiclass_loss(SCORES, TARGET, weight=WEIGHT, **options), weighted.sum() / WEIGHT[TARGET].sum())
    smoothed = multiclass_loss(SCORES, TARGET, weight=WEIGHT, label_smoothing=0.3, reduction="sum", **options)
    close(multiclass_loss(SCORES, TARGET, weight=WEIGHT, label_smoothing=0.3, **options), smoothed / WEIGHT[TARGET].sum())
    soft = multiclass_loss(SCORES, PROBABILITY, weight=WEIGHT, reduction="none", **options)
    close(multiclass_loss(SCORES, PROBABILITY, weight=WEIGHT, **options), soft.mean())


@a_few_pairs
@both_backends
def test_class_margin_is_taken_off_every_margin_of_its_label(phi: Surrogate, form: Form, backend: str) -> None:
    options = {"surrogate": phi, "form": form, "reduction": "none", "backend": backend}
    asked = multiclass_loss(SCORES, TARGET, class_margin=MARGIN, **options)
    expected = torch.stack([row_losses(phi, form, row, MARGIN) for row in SCORES])
    close(asked, expected.gather(1, TARGET[:, None]).squeeze(1))
    if isinstance(form, LogOdds | Pairwise):  # The label's own score enters every margin, so it may carry Δ as well.
        lowered = SCORES - F.one_hot(TARGET, 4) * MARGIN
        close(asked, multiclass_loss(lowered, TARGET, **options))
    if phi.is_monotone:
        assert (multiclass_loss(SCORES, TARGET, class_margin=MARGIN.abs(), **options) >= asked).all()


def removed(backend: str, phi: Surrogate, form: Form, target: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    """Loss and gradient of rows whose class 1 is not there, the gradient without that class."""
    scores = SCORES.clone()
    scores[:, 1] = -math.inf
    scores.requires_grad_()
    value = multiclass_loss(scores, target, surrogate=phi, form=form, reduction="none", backend=backend, **options)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    assert (gradient[:, 1] == 0).all()
    return value.detach(), gradient[:, (0, 2, 3)]


@every_pair
@both_backends
def test_minus_infinity_is_a_class_taken_out(phi: Surrogate, form: Form, backend: str) -> None:
    fewer = SCORES[:, (0, 2, 3)].clone().requires_grad_()
    target, without = torch.tensor([2, 0, 3, 3, 2]), torch.tensor([1, 0, 2, 2, 1])
    value, gradient = removed(backend, phi, form, target)
    expected = multiclass_loss(fewer, without, surrogate=phi, form=form, reduction="none")
    close(value, expected.detach())
    close(gradient, torch.autograd.grad(expected.sum(), fewer)[0])

    probability = PROBABILITY[:, (0, 2, 3)] / PROBABILITY[:, (0, 2, 3)].sum(1, keepdim=True)
    spread = torch.zeros(5, 4, dtype=torch.float64)
    spread[:, (0, 2, 3)] = probability
    value, gradient = removed(backend, phi, form, spread)
    expected = multiclass_loss(fewer, probability, surrogate=phi, form=form, reduction="none")
    close(value, expected.detach())
    close(gradient, torch.autograd.grad(expected.sum(), fewer)[0])


@a_few_pairs
@both_backends
def test_minus_infinity_with_margins_and_weights(phi: Surrogate, form: Form, backend: str) -> None:
    kept = (0, 2, 3)
    spread = PROBABILITY * torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    value, gradient = removed(backend, phi, form, spread, weight=WEIGHT, class_margin=MARGIN)
    fewer = SCORES[:, kept].clone().requires_grad_()
    options = {"weight": WEIGHT[[*kept]], "class_margin": MARGIN[[*kept]], "reduction": "none"}
    expected = multiclass_loss(fewer, spread[:, kept], surrogate=phi, form=form, **options)
    close(value, expected.detach())
    close(gradient, torch.autograd.grad(expected.sum(), fewer)[0])


@pytest.mark.parametrize("form", ("pairwise", "logodds"))
@both_backends
def test_a_label_that_is_not_there_costs_infinitely_much(form: str, backend: str) -> None:
    # With one competitor and with two: the losses of two may overflow by themselves.
    for scores in (torch.tensor([[-math.inf, 1.0]]), torch.tensor([[-math.inf, 1.0, 2.0]])):
        for target in (torch.tensor([0]), torch.tensor([[0.5, 0.5, 0.0]])[:, : scores.shape[1]]):
            assert float(multiclass_loss(scores, target, form=form, backend=backend)) == math.inf


CE_OPTIONS = {
    f"{reduction}-weight{bool(weight)}-eps{smoothing}-ignore{ignored}": {
        "reduction": reduction,
        "weight": WEIGHT if weight else None,
        "label_smoothing": smoothing,
        "ignore_index": ignored,
    }
    for reduction, weight, smoothing, ignored in product(("mean", "sum", "none"), (0, 1), (0.0, 0.2), (-100, 0, 2, -1))
}


def same_as_cross_entropy(scores: Tensor, target: Tensor, backend: str, **options: object) -> None:
    results = []
    for loss in (F.cross_entropy, multiclass_loss):
        leaf = scores.clone().requires_grad_()
        ours = {"surrogate": Logistic(), "form": "logodds", "backend": backend} if loss is multiclass_loss else {}
        value = loss(leaf, target, **options, **ours)
        upstream = torch.linspace(0.5, 2, value.numel(), dtype=torch.float64).reshape(value.shape)
        results.append((value.detach(), *torch.autograd.grad(value, leaf, upstream)))
    for theirs, ours in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        close(ours, theirs)


@pytest.mark.parametrize("options", CE_OPTIONS.values(), ids=CE_OPTIONS.keys())
@both_backends
def test_logodds_with_logistic_is_cross_entropy(options: dict[str, object], backend: str) -> None:
    generator = torch.Generator().manual_seed(4)
    for shape in ((7,), (3, 2), (2, 3, 2)):
        scores = 3 * torch.randn((shape[0], 4, *shape[1:]), dtype=torch.float64, generator=generator)
        target = torch.randint(4, shape, generator=generator)
        target.view(-1)[0] = options["ignore_index"]  # type: ignore[index]
        same_as_cross_entropy(scores, target, backend, **options)
    same_as_cross_entropy(scores[0, :, 0, 0], torch.tensor(1), backend, **options)
    if options["ignore_index"] == -100:
        same_as_cross_entropy(scores, scores.softmax(1), backend, **options)
        same_as_cross_entropy(scores[0, :, 0, 0], scores[1, :, 0, 0].softmax(0), backend, **options)
