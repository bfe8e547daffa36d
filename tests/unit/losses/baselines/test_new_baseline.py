"""A baseline written outside the library, as one decorated function, is a full loss: nothing else has to know it."""

import copy
import inspect
import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap

from linearcore.cleaning import out_of_fold_scores, suspects
from linearcore.losses.baselines import BASELINES, Baseline, BaselineLoss, LabelledRows, Range, baseline


@baseline("focal", is_symmetric=False, is_convex=False, is_bounded=False, gamma=Range(0, 10, "for example 2.0"))
def focal(rows: LabelledRows, *, gamma: float = 2.0) -> Tensor:
    """−(1 − p_y)^γ log p_y."""
    log_p = rows.gather_labels(rows.log_probabilities)
    return -((1 - log_p.exp()) ** gamma) * log_p


SCORES = 2 * torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 3, -100, 1, 4, 2])
SOFT = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).softmax(1)
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)


def by_hand(gamma: float) -> Tensor:
    """(6, 5): the loss of every label."""
    p = SCORES.softmax(1)
    return -((1 - p) ** gamma) * p.log()


def test_it_has_cross_entropys_rules() -> None:
    kept = TARGET != -100
    expected = by_hand(2.0)[kept].gather(1, TARGET[kept][:, None]).squeeze(1)
    torch.testing.assert_close(focal(SCORES, TARGET), expected.mean())
    torch.testing.assert_close(focal(SCORES, TARGET, reduction="none")[kept], expected)
    of_target = WEIGHT[TARGET[kept]]
    torch.testing.assert_close(focal(SCORES, TARGET, weight=WEIGHT), (of_target * expected).sum() / of_target.sum())
    mixture = 0.9 * SOFT + 0.1 / 5
    torch.testing.assert_close(focal(SCORES, SOFT, label_smoothing=0.1), (mixture * by_hand(2.0)).sum(1).mean())
    torch.testing.assert_close(focal(SCORES, TARGET, gamma=0), F.cross_entropy(SCORES, TARGET))
    assert focal(SCORES.bfloat16(), TARGET).dtype == torch.bfloat16
    assert focal(SCORES.T[None], TARGET.clamp(min=0)[None]).shape == ()


def test_masked_classes_and_transforms() -> None:
    scores = SCORES.clone()
    scores[:, 2] = -math.inf
    scores.requires_grad_()
    target = torch.tensor([0, 3, 1, 1, 4, 0])
    for labels in (target, F.one_hot(target, 5).double()):
        (gradient,) = torch.autograd.grad(focal(scores, labels), scores)
        assert gradient.isfinite().all() and (gradient[:, 2] == 0).all()
    assert torch.autograd.gradcheck(lambda s, t: focal(s, t, gamma=1.5), (SCORES.requires_grad_(), SOFT.requires_grad_()))
    torch.testing.assert_close(vmap(grad(focal))(SCORES, target), vmap(grad(BaselineLoss(focal)))(SCORES, target))
    compiled = torch.compile(focal, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(SCORES, TARGET, gamma=1.0), focal(SCORES, TARGET, gamma=1.0))


def test_module_takes_it_and_options_are_checked() -> None:
    module = BaselineLoss(focal, WEIGHT, gamma=1.0, label_smoothing=0.1)
    assert module(SCORES, TARGET) == focal(SCORES, TARGET, gamma=1.0, weight=WEIGHT, label_smoothing=0.1)
    assert repr(module) == "BaselineLoss('focal', gamma=1.0, label_smoothing=0.1)"
    with pytest.raises(ValueError, match=r"`gamma` must be a number in \[0, 10\], got 11; for example 2.0"):
        BaselineLoss(focal, gamma=11)
    with pytest.raises(TypeError, match=r"`alpha` must be an option of focal, got .*gamma, weight,"):
        focal(SCORES, TARGET, alpha=1.0)
    with pytest.raises(TypeError, match="`class_margin` must be an option of focal"):
        focal(SCORES, TARGET, class_margin=WEIGHT)
    with pytest.raises(TypeError, match="`sample_weight` must be passed with the scores"):
        BaselineLoss(focal, sample_weight=torch.ones(6))


def test_finding_wrong_labels_takes_it() -> None:
    clean = torch.arange(90) % 3
    features = 5 * F.one_hot(clean, 3) + torch.randn(90, 3, generator=torch.Generator().manual_seed(0))
    given = clean.clone()
    given[[4, 17, 60]] = (given[[4, 17, 60]] + 1) % 3
    found = out_of_fold_scores(features, given, num_classes=3, loss=focal, epochs=10)
    assert set(suspects(found.scores, given).order[:3].tolist()) == {4, 17, 60}


def test_it_reads_like_a_function() -> None:
    assert isinstance(focal, Baseline) and focal.name == "focal" == focal.__name__
    assert focal.__doc__ == "−(1 − p_y)^γ log p_y." and focal.options == {"gamma": 2.0}
    assert list(inspect.signature(focal).parameters)[:4] == ["scores", "target", "gamma", "weight"]
    assert repr(focal).startswith("<baseline focal(scores: ")
    assert "focal" not in BASELINES


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_of_the_library_are_pickled_by_name_and_say_what_their_options_may_be(name: str) -> None:
    loss = BASELINES[name]
    assert pickle.loads(pickle.dumps(loss)) is loss is copy.deepcopy(loss)
    assert loss.__doc__ and "ℓ(s, y) = " in loss.__doc__
    assert set(loss.ranges) == {option for option, default in loss.options.items() if not isinstance(default, bool)}
    assert all(loss.ranges[option].check(option, loss.options[option]) == loss.options[option] for option in loss.ranges)
