"""`BaselineLoss` is thin, and bad input gets one sentence: the argument, what must hold, what was got, what to do."""

import copy
import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from linearcore.losses.baselines import (
    BASELINES,
    BaselineLoss,
    EarlyLearning,
    active_passive_cross_entropy,
    asymmetric_generalized_cross_entropy,
    early_learning_loss,
    generalized_cross_entropy,
    reverse_cross_entropy,
    symmetric_cross_entropy,
)

SCORES = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([0, 3, 1, -1, 2, 1])
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64)
PER_SAMPLE = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5, 3.0], dtype=torch.float64)
SETTINGS = {"ignore_index": -1, "label_smoothing": 0.1, "reduction": "sum"}
#: For every option of any baseline a value that is not its default.
OTHER = {"q": 0.3, "truncation": 0.2, "a": 2.0, "alpha": 0.4, "beta": 0.2, "log_zero": -4.0}


@pytest.mark.parametrize("name", BASELINES)
def test_module_is_the_function(name: str) -> None:
    own = {option: OTHER.get(option, not default) for option, default in BASELINES[name].options.items()}
    expected = BASELINES[name](SCORES, TARGET, weight=WEIGHT, sample_weight=PER_SAMPLE, **SETTINGS, **own)
    assert BaselineLoss(name, WEIGHT, **SETTINGS, **own)(SCORES, TARGET, PER_SAMPLE) == expected
    for left_out in own:  # An option is never ignored.
        fewer = {option: value for option, value in own.items() if option != left_out}
        assert BaselineLoss(name, WEIGHT, **SETTINGS, **fewer)(SCORES, TARGET, PER_SAMPLE) != expected
    target = TARGET.clamp(min=0)
    assert BaselineLoss(name)(SCORES, target) == BASELINES[name](SCORES, target)


def test_module_has_the_habits_of_modules() -> None:
    module = BaselineLoss("generalized_cross_entropy", WEIGHT, q=0.5)
    assert "weight" in module.state_dict() and not list(module.parameters())
    assert module.float().weight.dtype == torch.float32
    assert repr(module) == "BaselineLoss('generalized_cross_entropy', q=0.5, truncation=0.0)"
    assert copy.deepcopy(module)(SCORES, TARGET.clamp(min=0)) == module(SCORES, TARGET.clamp(min=0))
    network = nn.Linear(4, 3)
    BaselineLoss("mean_absolute_error")(network(torch.ones(2, 4)), torch.tensor([0, 2])).backward()
    assert network.weight.grad.isfinite().all()


def call(function: Callable[..., object], *arguments: object, **options: object) -> Callable[[], object]:
    return lambda: function(*arguments, **options)


def on_data(function: Callable[..., object], **options: object) -> Callable[[], object]:
    return call(function, SCORES, TARGET.clamp(min=0), **options)


memory = EarlyLearning(10, 4)
PLACES = torch.arange(6)
#: What is done, the error, and the essential words of the message.
MESSAGES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "q above 1": (on_data(generalized_cross_entropy, q=1.5), ValueError, "`q` must be a number in [0, 1], got 1.5"),
    "q nan": (on_data(generalized_cross_entropy, q=float("nan")), ValueError, "`q` must be a number in [0, 1], got nan"),
    "q a word": (on_data(generalized_cross_entropy, q="0.7"), ValueError, "`q` must be a number in [0, 1], got '0.7'"),
    "truncation 1": (on_data(generalized_cross_entropy, truncation=1), ValueError, "`truncation` must be a number in [0,"),
    "q not positive": (on_data(asymmetric_generalized_cross_entropy, q=0), ValueError, "`q` must be a number in (0, inf)"),
    "a negative": (on_data(asymmetric_generalized_cross_entropy, a=-1), ValueError, "`a` must be a number in [0, inf)"),
    "a infinite": (on_data(asymmetric_generalized_cross_entropy, a=torch.inf), ValueError, "`a` must be a number in"),
    "A positive": (on_data(reverse_cross_entropy, log_zero=4.0), ValueError, "`log_zero` must be a number in (-inf, 0]"),
    "A of SCE": (on_data(symmetric_cross_entropy, log_zero=4.0), ValueError, "`log_zero` must be a number in (-inf, 0]"),
    "alpha": (on_data(symmetric_cross_entropy, alpha=-1), ValueError, "`alpha` must be a number in [0, inf), got -1"),
    "beta": (on_data(active_passive_cross_entropy, beta=-1), ValueError, "`beta` must be a number in [0, inf), got -1"),
    "A of NCE+RCE": (on_data(active_passive_cross_entropy, log_zero=1), ValueError, "`log_zero` must be a number in"),
    "no such baseline": (call(BaselineLoss, "focal"), ValueError, "`baseline` must be one of 'active_passive"),
    "no such option": (
        call(BaselineLoss, "mean_absolute_error", q=0.7),
        TypeError,
        "`q` must be an option of MAE, got an unknown option; MAE accepts weight, sample_weight,",
    ),
    "bad option": (call(BaselineLoss, "generalized_cross_entropy", q=2), ValueError, "`q` must be a number in [0, 1]"),
    "bad reduction": (call(BaselineLoss, "unhinged", reduction="avg"), ValueError, "`reduction` must be one of"),
    "weight a list": (call(BaselineLoss, "unhinged", [1.0]), TypeError, "`weight` must be a torch tensor, got list"),
    "history too short": (
        on_data(early_learning_loss, history=torch.zeros(5, 4)),
        ValueError,
        "`history` must have shape (6, 4), got (5, 4)",
    ),
    "history integer": (
        on_data(early_learning_loss, history=torch.zeros(6, 4).long()),
        TypeError,
        "`history` must be floating point, got torch.int64",
    ),
    "floor": (call(EarlyLearning, 10, 4, floor=0.0), ValueError, "`floor` must be a number in (0, 1), got 0.0"),
    "momentum": (call(EarlyLearning, 10, 4, momentum=1.5), ValueError, "`momentum` must be a number in [0, 1], got 1.5"),
    "strength": (call(EarlyLearning, 10, 4, strength=-1), ValueError, "`strength` must be a number in [0, inf), got -1"),
    "no samples": (call(EarlyLearning, 0, 4), ValueError, "`num_samples` must be a positive integer, got 0"),
    "no classes": (call(EarlyLearning, 9, 4.0), ValueError, "`num_classes` must be a positive integer, got 4.0"),
    "memory's weight": (call(EarlyLearning, 9, 4, weight=WEIGHT[:3]), ValueError, "`weight` must have shape (4,), got (3,)"),
    "memory's list": (call(EarlyLearning, 9, 4, weight=[1.0]), TypeError, "`weight` must be a torch tensor, got list"),
    "memory's rows": (
        call(memory, SCORES[None], TARGET[None], PLACES),
        ValueError,
        "`scores` must have shape (N, C), got (1, 6, 4); use `early_learning_loss`",
    ),
    "index too short": (call(memory, SCORES, TARGET, PLACES[1:]), ValueError, "`index` must have shape (6,), got (5,)"),
    "index a mask": (call(memory, SCORES, TARGET, PLACES > 0), TypeError, "`index` must be integers, got torch.bool"),
    "index outside": (
        call(EarlyLearning(5, 4, validate=True), SCORES, TARGET, PLACES),
        ValueError,
        "`index` must be in [0, 5), got index[",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("act", "error", "words"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(act: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)) as caught:
        act()
    assert re.fullmatch(r"`\w+` must .+, got .+; .+", str(caught.value))


@pytest.mark.parametrize("name", BASELINES)
def test_shared_arguments_are_checked(name: str) -> None:
    target = TARGET.clamp(min=0)
    bad = {
        "reduction": {"reduction": "avg"},
        "label_smoothing": {"label_smoothing": 2.0},
        "weight": {"weight": WEIGHT[1:]},
        "sample_weight": {"sample_weight": WEIGHT},
    }
    for argument, options in bad.items():
        with pytest.raises(ValueError, match=f"`{argument}` must"):
            BASELINES[name](SCORES, target, **options)
    with pytest.raises(ValueError, match=re.escape("`target` must be in [0, 4) or equal to `ignore_index`")):
        BASELINES[name](SCORES, TARGET + 1, validate=True)
    with pytest.raises(TypeError, match="`scores` must be floating point"):
        BASELINES[name](SCORES.long(), target)
