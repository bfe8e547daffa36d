"""Early-learning regularisation: the paper's formula, a history that is nobody's secret, and a module that keeps it."""

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.losses.baselines import EarlyLearning, cross_entropy, early_learning_loss
from linearcore.runtime import read_store, write_store

GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(6, 4, dtype=torch.float64, generator=GENERATOR)
HISTORY = 0.9 * torch.randn(6, 4, dtype=torch.float64, generator=GENERATOR).softmax(1)
TARGET = torch.tensor([0, 3, 1, 2, 2, 0])
PLACES = torch.tensor([9, 0, 4, 2, 7, 5])


def by_hand(scores: Tensor, target: Tensor, history: Tensor, momentum: float, strength: float) -> tuple[object, object]:
    """Row by row in numpy: t' = β t + (1 − β) p and −log p_y + λ log(1 − ⟨p, t'⟩)."""
    losses, means = [], []
    for s, y, t in zip(scores.numpy(), target.tolist(), history.numpy(), strict=True):
        p = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
        t = momentum * t + (1 - momentum) * p
        losses.append(-math.log(p[y]) + strength * math.log(1 - p @ t))
        means.append(t)
    return torch.tensor(losses, dtype=torch.float64), torch.tensor(np.array(means))


@pytest.mark.parametrize(("momentum", "strength"), [(0.7, 3.0), (0.0, 7.0), (1.0, 2.0), (0.9, 0.0)])
def test_formula(momentum: float, strength: float) -> None:
    loss, history = early_learning_loss(SCORES, TARGET, HISTORY, momentum=momentum, strength=strength, reduction="none")
    expected, means = by_hand(SCORES, TARGET, HISTORY, momentum, strength)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(history, means, rtol=1e-13, atol=1e-14)


def test_defaults_are_the_documented_ones_and_strength_0_is_cross_entropy() -> None:
    assert (
        early_learning_loss(SCORES, TARGET, HISTORY)[0]
        == early_learning_loss(SCORES, TARGET, HISTORY, momentum=0.7, strength=3.0, floor=1e-4)[0]
    )
    assert early_learning_loss(SCORES, TARGET, HISTORY, strength=0.0)[0] == cross_entropy(SCORES, TARGET)


def test_gradient_takes_the_history_for_a_constant() -> None:
    """With respect to the scores, t' fixed."""
    scores, history = SCORES.clone().requires_grad_(), HISTORY.clone().requires_grad_()
    loss, after = early_learning_loss(scores, TARGET, history, reduction="sum")
    assert not after.requires_grad
    (gradient,) = torch.autograd.grad(loss, scores)
    p = SCORES.softmax(1)
    inner = (p * after).sum(1, keepdim=True)
    expected = p - F.one_hot(TARGET, 4) - 3.0 * p * (after - inner) / (1 - inner)
    torch.testing.assert_close(gradient, expected, rtol=1e-11, atol=1e-12)


def test_nothing_is_written_and_nothing_is_kept() -> None:
    before = HISTORY.clone()
    first, after = early_learning_loss(SCORES, TARGET, HISTORY)
    assert torch.equal(HISTORY, before) and not torch.equal(after, before)
    again, same = early_learning_loss(SCORES, TARGET, HISTORY)
    assert first == again and torch.equal(after, same)


def test_certain_network_and_certain_history_meet_the_floor() -> None:
    scores = torch.tensor([[1e4, 0.0, -1e4]], requires_grad=True)
    history = torch.tensor([[1.0, 0.0, 0.0]])
    for floor in (1e-4, 0.1):
        loss, _ = early_learning_loss(scores, torch.tensor([0]), history, floor=floor)
        assert float(loss.detach()) == pytest.approx(3 * math.log(floor))
        assert torch.autograd.grad(loss, scores)[0].isfinite().all()


def test_ignored_samples_keep_their_history() -> None:
    target = TARGET.clone()
    target[[1, 4]] = -100
    _, after = early_learning_loss(SCORES, target, HISTORY)
    _, all_of_them = early_learning_loss(SCORES, TARGET, HISTORY)
    kept = torch.tensor([1, 4])
    assert torch.equal(after[kept], HISTORY[kept])
    rest = torch.tensor([0, 2, 3, 5])
    assert torch.equal(after[rest], all_of_them[rest])


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
def test_history_has_the_shape_of_the_scores_and_its_own_dtype(dtype: torch.dtype) -> None:
    scores = SCORES.reshape(3, 4, 2)  # Classes in the middle.
    history = HISTORY.reshape(3, 4, 2).to(dtype)
    target = TARGET.reshape(3, 2)
    loss, after = early_learning_loss(scores, target, history, reduction="none")
    assert (after.shape, after.dtype) == (scores.shape, dtype)
    for row in range(3):
        for place in range(2):
            own, one = early_learning_loss(scores[row, :, place], target[row, place], history[row, :, place])
            torch.testing.assert_close(loss[row, place], own, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(after[row, :, place], one)


def test_module_remembers_in_training_and_only_reads_in_evaluation() -> None:
    criterion = EarlyLearning(10, 4).double()
    history = torch.zeros(6, 4, dtype=torch.float64)
    for step in range(3):
        expected, history = early_learning_loss((step + 1) * SCORES, TARGET, history)
        assert criterion((step + 1) * SCORES, TARGET, PLACES) == expected
        assert torch.equal(criterion.history[PLACES], history)
    unseen = [place for place in range(10) if place not in PLACES]
    assert (criterion.history[unseen] == 0).all()
    before = criterion.history.clone()
    expected, _ = early_learning_loss(SCORES, TARGET, history, momentum=1.0)
    assert criterion.eval()(SCORES, TARGET, PLACES) == expected
    assert torch.equal(criterion.history, before)
    assert criterion.train()(SCORES, TARGET, PLACES.to(torch.uint8)) == early_learning_loss(SCORES, TARGET, history)[0]


def test_module_passes_every_option_on() -> None:
    options = {
        "momentum": 0.5,
        "strength": 2.0,
        "floor": 0.5,
        "weight": torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64),
        "ignore_index": 3,
        "label_smoothing": 0.1,
        "reduction": "sum",
        "validate": True,
    }
    per_sample = torch.rand(6, dtype=torch.float64, generator=GENERATOR)

    def trained(**options: object) -> Tensor:
        criterion = EarlyLearning(10, 4, **options).double()
        criterion(SCORES, TARGET, PLACES)
        return criterion(SCORES, TARGET, PLACES, per_sample)

    history = early_learning_loss(SCORES, TARGET, torch.zeros_like(SCORES), **options)[1]
    assert trained(**options) == early_learning_loss(SCORES, TARGET, history, sample_weight=per_sample, **options)[0]
    for left_out in set(options) - {"validate"}:
        assert trained(**{name: option for name, option in options.items() if name != left_out}) != trained(**options)


def test_module_is_saved_whole(tmp_path: object) -> None:
    criterion = EarlyLearning(10, 4).double()
    criterion(SCORES, TARGET, PLACES)
    folder = tmp_path / "memory"
    write_store(folder, "early-learning", settings={}, tensors=criterion.state_dict())
    resumed = EarlyLearning(10, 4).double()
    resumed.load_state_dict(read_store(folder, "early-learning").tensors)
    for other in (resumed, copy.deepcopy(criterion)):
        assert torch.equal(other.history, criterion.history)
    assert resumed(SCORES, TARGET, PLACES) == criterion(SCORES, TARGET, PLACES)
    assert torch.equal(resumed.history, criterion.history)


def test_agreement_with_the_past_outweighs_a_wrong_label() -> None:
    """What it is for: a network sure of class 0 and always so is not pulled to a label of 1 that is new."""
    scores = torch.tensor([[3.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    history = scores.detach().softmax(1)
    loss, _ = early_learning_loss(scores, torch.tensor([1]), history)
    assert torch.autograd.grad(loss, scores)[0][0, 0] < 0
    assert torch.autograd.grad(cross_entropy(scores, torch.tensor([1])), scores)[0][0, 0] > 0
