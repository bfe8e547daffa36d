"""`NormedScores`: what it computes, in every precision, and what docs/proofs.md proves of it."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from linearcore import LinearCore, NormedScores, multiclass_loss
from linearcore.heads._normed_scores import NormedStack
from linearcore.losses.baselines import unhinged
from linearcore_paper import vision
from linearcore_paper.vision.networks import NETWORKS


@pytest.fixture(autouse=True)
def first_weights_are_the_same_every_time() -> None:
    torch.manual_seed(0)


#: So wide that the loss is a straight line for whatever is put into it here.
STRAIGHT = LinearCore(tau=1e3)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_definition(scores: Tensor) -> Tensor:
    centred = scores - scores.mean(0)
    return centred / (centred.square().mean(0) + 1e-5).sqrt()


# ---- the layer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_scores_are_the_definition_in_every_precision(dtype):
    """Half precisions round the scores that come in, and nothing else."""
    own, close = (torch.float64, 1e-12) if dtype == torch.float64 else (torch.float32, 2e-5)
    scores = (drawn(64, 4) * torch.linspace(0.1, 3.0, 64, dtype=torch.float64)[:, None] + 2.0).to(dtype)
    found = NormedScores(4).to(own)(scores)
    assert found.dtype == own
    torch.testing.assert_close(found.double(), by_definition(scores.double()), atol=close, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_layer_of_half_precision_works(dtype):
    layer, scores = NormedScores(4).to(dtype), drawn(64, 4).to(dtype)
    found = layer(scores)
    assert found.dtype == dtype and layer.eval()(scores).dtype == dtype
    torch.testing.assert_close(found.double(), by_definition(scores.double()), atol=0.05, rtol=0)


def test_running_means_are_those_of_batch_norm():
    layer, scores = NormedScores(3).double(), drawn(8, 3) + 5
    layer(scores)
    torch.testing.assert_close(layer.norm.running_mean, 0.1 * scores.mean(0))
    torch.testing.assert_close(layer.norm.running_var, 0.9 + 0.1 * scores.var(0))


def test_many_networks_side_by_side_are_each_as_alone():
    together, alone = NormedStack(3, 4), [NormedScores(4) for _ in range(3)]
    for seed in range(5):
        scores = drawn(3, 8, 4, seed=seed).float()
        expected = torch.stack([layer(own) for layer, own in zip(alone, scores, strict=True)])
        torch.testing.assert_close(together(scores), expected)
    scores = drawn(3, 8, 4, seed=9).float()
    for place, layer in enumerate(alone):
        torch.testing.assert_close(together.evaluate(place, scores[place]), layer.eval()(scores[place]))
    expected = torch.stack([layer(own) for layer, own in zip(alone, scores, strict=True)])
    # One row is normed by what is known.
    torch.testing.assert_close(together.train()(scores[:, :1]), expected[:, :1])
    torch.testing.assert_close(together.eval()(scores), expected)


def test_length_of_scores_says_nothing():
    scores, layer = drawn(64, 4), NormedScores(4).double()
    torch.testing.assert_close(layer(1024 * scores), layer(scores), atol=1e-4, rtol=0)
    shifted = scores + 5 * drawn(4, seed=1)  # A class that has more everywhere has no more.
    torch.testing.assert_close(layer(shifted), layer(scores))


def test_in_evaluation_a_score_does_not_depend_on_the_others():
    network = nn.Sequential(nn.Linear(3, 4), NormedScores(4))
    for seed in range(100):
        network(drawn(64, 3, seed=seed).float())
    inputs = drawn(512, 3, seed=1000).float()
    in_training = network(inputs)
    network.eval()
    torch.testing.assert_close(network(inputs)[:1], network(inputs[:1]))
    torch.testing.assert_close(network(inputs), in_training, atol=0.3, rtol=0)


def test_derivatives_are_right_twice_and_compiled():
    scores, layer = drawn(5, 3).requires_grad_(), NormedScores(3).double()
    assert torch.autograd.gradcheck(layer, scores) and torch.autograd.gradgradcheck(layer, scores)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    weights = drawn(5, 3, seed=1)
    expected, found = (torch.autograd.grad((weights * how(scores)).sum(), scores)[0] for how in (layer, compiled))
    torch.testing.assert_close(found, expected)


def test_many_at_once_in_evaluation():
    layer, batches = NormedScores(3).double().eval(), drawn(4, 5, 3)
    buffers = dict(layer.named_buffers())

    def first(scores: Tensor) -> Tensor:
        return functional_call(layer, buffers, (scores,))[:, 0].sum()

    expected = torch.stack([grad(first)(batch) for batch in batches])
    torch.testing.assert_close(vmap(grad(first))(batches), expected)


def test_it_can_be_converted_to_a_norm_that_devices_share():
    layer = NormedScores(4)
    layer(drawn(8, 4).float())
    scores = drawn(3, 4, seed=1).float()
    alone = layer.eval()(scores)
    shared = nn.SyncBatchNorm.convert_sync_batchnorm(layer)
    assert isinstance(shared.norm, nn.SyncBatchNorm)
    torch.testing.assert_close(shared(scores), alone)


def test_what_does_not_fit_is_refused():
    layer = NormedScores(4)
    for shape in ((4,), (8, 3), (8, 4, 2)):
        with pytest.raises(ValueError, match=r"`scores` must have shape \(N, 4\), got "):
            layer(torch.zeros(shape))
    with pytest.raises(ValueError, match="`scores` must have two rows or more in training, got 1; pass drop_last=True"):
        layer(torch.zeros(1, 4))
    assert NormedScores(4).eval()(torch.zeros(1, 4)).shape == (1, 4)
    with pytest.raises(TypeError, match="`scores` must be floating point, got"):
        layer(torch.zeros(8, 4, dtype=torch.int64))
    for wrong in (1, 0, -1, True, "4"):
        with pytest.raises(ValueError, match="`num_classes` must be an integer of at least 2"):
            NormedScores(wrong)
    assert NormedScores(2)(drawn(4, 2).float()).shape == (4, 2)
    assert layer.eval()(torch.zeros(0, 4)).shape == (0, 4)


def test_nothing_is_learned_in_the_norm():
    for name in ("small", "resnet18"):
        plain, normed = (NETWORKS[key](4, 1, 2) for key in (name, f"{name}-normed"))
        assert [key for key, _ in normed.named_parameters()] == [f"0.{key}" for key, _ in plain.named_parameters()]
        assert normed[1].norm.num_features == 4


def test_unhinged_loss_ends_where_it_diverges_on_raw_scores():
    torch.manual_seed(0)
    labels = torch.arange(4).repeat(32)
    pixels = (40 * labels[:, None, None, None] + torch.randint(0, 60, (128, 1, 8, 8))).to(torch.uint8)
    data = vision.Images(pixels, labels, ("a", "b", "c", "d"))
    how = {"width": 4, "epochs": 20, "batch": 16, "lr": 0.3, "loss_scale": 10.0}
    with pytest.raises(FloatingPointError, match="not finite"):
        vision.train(data, unhinged, vision.Recipe("small", **how), test=data)
    found = vision.train(data, unhinged, vision.Recipe("small-normed", **how), test=data)
    assert found.history[-1]["test_accuracy"] > 80


# ---- what is proven ------------------------------------------------------------------------------------------------------


def risk(normed: Tensor, probability: Tensor) -> Tensor:
    """The mean over all inputs, which are as frequent as they stand in the rows, in the core."""
    return multiclass_loss(normed, probability, form="pairwise", surrogate=STRAIGHT)


def with_favourites(probability: Tensor, eta: float, law: Tensor) -> Tensor:
    return (1 - eta) * probability + eta * law


def least(probability: Tensor, seed: int = 0) -> Tensor:
    """z where the risk is least, over all scores."""
    layer = NormedScores(probability.shape[1]).double()
    scores = drawn(*probability.shape, seed=seed).requires_grad_()
    steps = torch.optim.LBFGS([scores], lr=0.5, max_iter=2000, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        steps.zero_grad()
        value = risk(layer(scores), probability)
        value.backward()
        return value

    steps.step(closure)
    return layer(scores).detach()


@pytest.mark.parametrize("eta", [0.3, 0.6, 0.95])
def test_labels_with_favourites_multiply_the_risk_of_all_scores_by_one_number(eta):
    layer, probability = NormedScores(5).double(), 2 * drawn(40, 5, seed=1)
    probability, law = probability.softmax(1), torch.tensor([0.7, 0.3, 0.0, 0.0, 0.0], dtype=torch.float64)
    start = float(STRAIGHT.value(torch.zeros((), dtype=torch.float64)))
    for seed in range(20):
        normed = layer(drawn(40, 5, seed=seed))
        clean, noisy = risk(normed, probability), risk(normed, with_favourites(probability, eta, law))
        torch.testing.assert_close(noisy, (1 - eta) * clean + eta * start, rtol=1e-12, atol=0)
        # The covariance with the labels, and nothing else.
        covariance = (normed * (probability - probability.mean(0))).sum(1).mean()
        torch.testing.assert_close(clean, start - 5 / 4 * covariance, rtol=1e-12, atol=0)


def test_certain_labels_are_answered_whatever_the_favourites_and_however_rare_a_class():
    labels = torch.tensor([0] * 12 + [1] * 6 + [2] * 3 + [3])
    share = torch.bincount(labels) / len(labels)
    one_hot = nn.functional.one_hot(labels, 4).double()
    probability = with_favourites(one_hot, 0.8, torch.tensor([0.0, 0.9, 0.1, 0.0], dtype=torch.float64))
    assert (probability.argmax(1) == 1).all()  # What a loss that is right about the noisy labels answers.
    found = least(probability)
    assert torch.equal(found.argmax(1), labels)
    expected = (one_hot - share) / (share * (1 - share)).sqrt()
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=0)  # 10⁻⁵ is added to each variance.


def test_scores_are_normed_probabilities_at_the_least_risk():
    probability = (2 * drawn(30, 4, seed=3)).softmax(1)
    expected = (probability - probability.mean(0)) / probability.std(0, correction=0)
    torch.testing.assert_close(least(probability), expected, atol=2e-3, rtol=0)


def test_uncertain_labels_of_a_frequent_class_may_be_answered_wrongly():
    """The price: it asks what an input has more of than others, which is not what is likeliest."""
    rare, frequent = [0.6, 0.4, 0.0], [0.9, 0.05, 0.05]
    probability = torch.tensor([rare] * 5 + [frequent] * 5, dtype=torch.float64)
    for seed in range(3):
        assert least(probability, seed)[:5].argmax(1).tolist() == [1] * 5


def test_equally_frequent_classes_may_be_answered_wrongly_as_well():
    probability = torch.tensor([[0.5, 0.45, 0.05], [0.5, 0.22, 0.28], [0.0, 0.33, 0.67]], dtype=torch.float64)
    torch.testing.assert_close(probability.mean(0), torch.full((3,), 1 / 3, dtype=torch.float64))
    assert least(probability)[0].argmax() == 1


def test_noise_by_class_may_do_harm():
    """Of two classes 45 % become the next; the third is rare. The likeliest label is right throughout."""
    labels = torch.tensor([0] * 10 + [1] * 10 + [2])
    flips = torch.tensor([[0.55, 0.45, 0.0], [0.0, 0.55, 0.45], [0.0, 0.0, 1.0]], dtype=torch.float64)
    probability = flips[labels]
    assert torch.equal(probability.argmax(1), labels)
    assert least(probability)[10:20].argmax(1).tolist() == [2] * 10


def test_rows_that_do_not_count_and_weights_are_not_covered():
    """The layer norms all rows alike; a mean over some of them, or by weights, is another one."""
    probability, law = drawn(40, 5, seed=1).softmax(1), torch.eye(5, dtype=torch.float64)[0]
    normed, start = NormedScores(5).double()(drawn(40, 5)), float(STRAIGHT.value(torch.zeros((), dtype=torch.float64)))
    weights = drawn(40, seed=2).abs()
    clean, noisy = (
        multiclass_loss(normed, p, form="pairwise", surrogate=STRAIGHT, sample_weight=weights)
        for p in (probability, with_favourites(probability, 0.5, law))
    )
    assert abs(noisy - (0.5 * clean + 0.5 * start)) > 1e-3


@pytest.mark.parametrize("rare", [1, 8])
def test_core_of_width_five_is_wide_enough_for_classes_of_more_than_a_twenty_fifth(rare):
    """Ten classes: nine of 20 inputs, and a rare one. Where it is too rare, a larger τ does it."""
    labels = torch.arange(9).repeat_interleave(20).tolist() + [9] * rare
    one_hot = nn.functional.one_hot(torch.tensor(labels), 10).double()
    share = one_hot.mean(0)
    normed = (one_hot - share) / (share * (1 - share)).sqrt()
    margins = normed[-1, 9] - normed[-1, :9]
    assert (margins.max() < 5) == (share[9] > 0.043)


def test_a_wide_core_is_the_unhinged_loss_plus_a_constant():
    scores = NormedScores(10).double()(drawn(64, 10)).requires_grad_()
    labels, wide = torch.arange(64) % 10, LinearCore(tau=8.0)
    ours = multiclass_loss(scores, labels, form="pairwise", surrogate=wide)
    theirs = unhinged(scores, labels)
    torch.testing.assert_close(ours - theirs, wide.value(torch.zeros_like(ours)) - 1)
    torch.testing.assert_close(*(torch.autograd.grad(loss, scores)[0] for loss in (ours, theirs)))
