"""The modules are thin: the same numbers as the functions, the habits of nn.Modules, errors at construction."""

import copy

import pytest
import torch
from torch import nn

from linearcore import (
    BinaryLinearCoreLoss,
    Hinge,
    LinearCore,
    LinearCoreLoss,
    Pairwise,
    RobustLinearCoreLoss,
    binary_loss,
    multiclass_loss,
)
from linearcore.losses.baselines import BaselineLoss, EarlyLearning

SCORES = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 3, 1, -1, 2, 1])
PER_CLASS = torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64)
PER_SAMPLE = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5, 3.0], dtype=torch.float64)

#: Every argument, each with a value that is not its default and changes the result.
MULTICLASS = {
    "weight": PER_CLASS,
    "surrogate": LinearCore("gamma", 0.5),
    "form": "pairwise",
    "normalize": False,
    "class_margin": PER_CLASS,
    "ignore_index": -1,
    "label_smoothing": 0.1,
    "reduction": "sum",
    "backend": "reference",
}


def test_linear_core_loss_is_multiclass_loss() -> None:
    module = LinearCoreLoss(**MULTICLASS)
    expected = multiclass_loss(SCORES, TARGET, sample_weight=PER_SAMPLE, **MULTICLASS)
    assert module(SCORES, TARGET, PER_SAMPLE) == expected
    assert module(SCORES, TARGET, sample_weight=PER_SAMPLE) == expected


@pytest.mark.parametrize("left_out", [name for name in MULTICLASS if name != "backend"])
def test_every_argument_is_passed_on(left_out: str) -> None:
    """Leaving one out changes the loss, in the module just as in the function: an option is never ignored."""
    fewer = {name: option for name, option in MULTICLASS.items() if name != left_out}
    target = TARGET.clamp(min=0) if left_out == "ignore_index" else TARGET
    if left_out == "ignore_index":
        changed = {"ignore_index": 1}
        assert LinearCoreLoss(**fewer, **changed)(SCORES, target) != LinearCoreLoss(**fewer)(SCORES, target)
    else:
        assert LinearCoreLoss(**fewer)(SCORES, target) != LinearCoreLoss(**MULTICLASS)(SCORES, target)
    assert LinearCoreLoss(**fewer)(SCORES, target) == multiclass_loss(SCORES, target, **fewer)


def test_defaults_are_those_of_the_function() -> None:
    target = TARGET.clamp(min=0)
    assert LinearCoreLoss()(SCORES, target) == multiclass_loss(SCORES, target)
    assert BinaryLinearCoreLoss()(SCORES, SCORES > 0) == binary_loss(SCORES, SCORES > 0)


def test_replaces_cross_entropy_loss_in_place() -> None:
    """The first positional argument is `weight`, as in torch."""
    ours, theirs = LinearCoreLoss(PER_CLASS), nn.CrossEntropyLoss(PER_CLASS)
    assert ours.weight is theirs.weight is PER_CLASS
    assert (ours.ignore_index, ours.label_smoothing, ours.reduction) == (-100, 0.0, "mean")
    assert set(ours.state_dict()) == set(theirs.state_dict()) == {"weight"}
    assert set(nn.CrossEntropyLoss().state_dict()) == set(LinearCoreLoss().state_dict()) == set()


def test_binary_module_passes_everything_on() -> None:
    options = {"pos_weight": PER_CLASS, "surrogate": Hinge(), "signed": True, "reduction": "none", "backend": "reference"}
    target = SCORES.sin().abs()  # Valid with and without `signed`.
    ours = BinaryLinearCoreLoss(**options)(SCORES, target, PER_SAMPLE[:, None])
    assert torch.equal(ours, binary_loss(SCORES, target, sample_weight=PER_SAMPLE[:, None], **options))
    for left_out in ("pos_weight", "surrogate", "signed", "reduction"):
        fewer = {name: option for name, option in options.items() if name != left_out}
        assert not torch.equal(BinaryLinearCoreLoss(**fewer)(SCORES, target, PER_SAMPLE[:, None]), ours)
    with pytest.raises(ValueError, match="`scores` must be finite"):
        BinaryLinearCoreLoss(validate=True)(torch.tensor([torch.nan]), torch.tensor([1]))
    with pytest.raises(ValueError, match="`scores` must not be NaN"):
        LinearCoreLoss(validate=True)(torch.tensor([torch.nan, 0.0]), torch.tensor(1))


@pytest.mark.parametrize("loss", (LinearCoreLoss(), RobustLinearCoreLoss(), BaselineLoss("unhinged")), ids=repr)
def test_the_keywords_of_torch(loss: nn.Module) -> None:
    target = TARGET.clamp(min=0)
    assert loss(input=SCORES, target=target) == loss(SCORES, target=target) == loss(scores=SCORES, target=target)
    for twice in (((), {"scores": SCORES}), ((SCORES,), {})):
        with pytest.raises(TypeError, match="multiple values"):
            loss(*twice[0], input=SCORES, target=target, **twice[1])


def test_the_keywords_of_torch_in_the_other_modules() -> None:
    assert BinaryLinearCoreLoss()(input=SCORES, target=SCORES.sigmoid()) == binary_loss(SCORES, SCORES.sigmoid())
    target, index = TARGET.clamp(min=0), torch.arange(6)
    named = EarlyLearning(6, 4)(input=SCORES, target=target, index=index)
    assert named == EarlyLearning(6, 4)(SCORES, target, index)


@pytest.mark.parametrize("pos_weight", (2.0, 2, torch.tensor(2.0)), ids=repr)
def test_a_positive_weight_may_be_a_number(pos_weight: float) -> None:
    target = (SCORES > 0.3).double()
    expected = binary_loss(SCORES, target, pos_weight=torch.full((4,), 2.0))
    assert binary_loss(SCORES, target, pos_weight=pos_weight) == expected
    module = BinaryLinearCoreLoss(pos_weight)
    assert module(SCORES, target) == expected and module.state_dict()["pos_weight"] == 2
    # As in torch, a scalar on the CPU serves scores on every device.
    assert module(SCORES.to("meta"), target.to("meta")).device.type == "meta"


def test_repr_has_the_options_that_were_changed() -> None:
    assert repr(LinearCoreLoss()).endswith("reduction='mean')")
    for loss in (
        LinearCoreLoss(ignore_index=0, label_smoothing=0.1),
        RobustLinearCoreLoss(ignore_index=0, label_smoothing=0.1),
    ):
        assert "ignore_index=0" in repr(loss) and "label_smoothing=0.1" in repr(loss)


def test_weights_move_with_the_module() -> None:
    """As buffers: they follow `.to`, whether device or dtype, and are saved."""
    module = LinearCoreLoss(PER_CLASS, class_margin=PER_CLASS)
    assert set(module.state_dict()) == {"weight", "class_margin"}
    assert not list(module.parameters())
    module.to(torch.float32)
    assert module.weight.dtype == module.class_margin.dtype == torch.float32
    assert module(SCORES.float(), TARGET.clamp(min=0)).dtype == torch.float32
    module.to("meta")
    scores = torch.empty(6, 4, device="meta", requires_grad=True)
    assert module(scores, torch.empty(6, dtype=torch.long, device="meta")).device.type == "meta"
    binary = BinaryLinearCoreLoss(PER_CLASS).to("meta")
    assert binary(scores, torch.empty(6, 4, device="meta")).device.type == "meta"
    assert set(binary.state_dict()) == {"pos_weight"}


def test_modules_can_be_copied_saved_and_shown() -> None:
    module = LinearCoreLoss(PER_CLASS, form=Pairwise(normalize=False), reduction="sum")
    target = TARGET.clamp(min=0)
    twin = copy.deepcopy(module)
    assert twin(SCORES, target) == module(SCORES, target)
    other = LinearCoreLoss(torch.ones_like(PER_CLASS), form=Pairwise(normalize=False), reduction="sum")
    other.load_state_dict(module.state_dict())
    assert other(SCORES, target) == module(SCORES, target)
    assert (
        "Pairwise(normalize=False)" in repr(module) and "LinearCore('logistic'" in repr(module) and "'sum'" in repr(module)
    )
    assert "signed=True" in repr(BinaryLinearCoreLoss(signed=True))


def test_bad_options_are_refused_at_construction() -> None:
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        LinearCoreLoss(reduction="average")
    with pytest.raises(ValueError, match="`form` must be one of"):
        LinearCoreLoss(form="pairs")
    with pytest.raises(ValueError, match="`surrogate` must be one-sided"):
        LinearCoreLoss(form="centered", surrogate=LinearCore(sides=2))
    with pytest.raises(ValueError, match="`normalize` must be None or False"):
        LinearCoreLoss(normalize=True)
    with pytest.raises(TypeError, match="`surrogate` must be a `Surrogate`"):
        BinaryLinearCoreLoss(surrogate="hinge")
    with pytest.raises(ValueError, match="`reduction` must be one of"):
        BinaryLinearCoreLoss(reduction="average")
