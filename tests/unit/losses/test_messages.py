"""Bad input gets one sentence: the argument in backticks, what must hold, what was got, what to do (DESIGN, "Errors")."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from linearcore import LinearCore, binary_loss, multiclass_loss

SCORES = torch.zeros(3, 4)
TARGET = torch.tensor([0, 1, 3])
SOFT = torch.full((3, 4), 0.25)


def call(loss: Callable[..., Tensor], scores: object, target: object, **options: object) -> Callable[[], Tensor]:
    return lambda: loss(scores, target, **options)


def multi(scores: object = SCORES, target: object = TARGET, **options: object) -> Callable[[], Tensor]:
    return call(multiclass_loss, scores, target, **options)


def yes_no(scores: object = SCORES, target: object = SOFT, **options: object) -> Callable[[], Tensor]:
    return call(binary_loss, scores, target, **options)


def with_entry(tensor: Tensor, value: float) -> Tensor:
    tensor = tensor.clone()
    tensor.view(-1)[0] = value
    return tensor


#: What is done, the error, and the essential words of the message.
CASES: dict[str, tuple[Callable[[], Tensor], type[Exception], str]] = {
    "scores a list": (multi([[0.0]]), TypeError, r"`scores` must be a torch tensor, got list"),
    "scores integer": (multi(SCORES.long()), TypeError, r"`scores` must be floating point, got torch.int64"),
    "scores complex": (
        multi(SCORES.to(torch.complex64)),
        TypeError,
        r"`scores` must be floating point, got torch.complex64",
    ),
    "scores a scalar": (
        multi(torch.tensor(1.0), torch.tensor(0)),
        ValueError,
        r"`scores` must have shape \(C\), \(N, C\) or",
    ),
    "target a list": (multi(target=[0, 1, 3]), TypeError, r"`target` must be a torch tensor, got list"),
    "target too short": (multi(target=TARGET[:2]), ValueError, r"`target` must have shape \(3,\), got \(2,\)"),
    "target of wrong rank": (multi(target=TARGET[:, None]), ValueError, r"`target` must have shape \(3,\), got \(3, 1\)"),
    "target with one column": (multi(target=TARGET[:, None]), ValueError, r"pass `target.squeeze\(1\)`"),
    "one-hot integers": (multi(target=torch.eye(4)[TARGET].long()), TypeError, r"`target` .*`.argmax\(1\)`"),
    "target on another device": (
        multi(target=TARGET.to("meta")),
        ValueError,
        r"`target` must be on the device of `scores`, cpu, got meta; .*`.to\('cpu'\)`",
    ),
    "weight on another device": (
        multi(weight=torch.ones(4, device="meta")),
        ValueError,
        r"`weight` must be on the device of `scores`, cpu, got meta",
    ),
    "sample weight on another device": (
        multi(sample_weight=torch.ones(3, device="meta")),
        ValueError,
        r"`sample_weight` must be on the device of `scores`, cpu, got meta",
    ),
    "target of a sample": (multi(SCORES[0], TARGET[:1]), ValueError, r"`target` must have shape \(\), got \(1,\)"),
    "classes last": (
        multi(torch.zeros(3, 5, 4), torch.zeros(3, 5).long()),
        ValueError,
        r"`target` must have shape \(3, 4\), got \(3, 5\); .*`scores.movedim\(-1, 1\)`",
    ),
    "float indices": (multi(target=TARGET.float()), TypeError, r"`target` must be integer class indices, got torch.float32"),
    "bool indices": (multi(target=TARGET > 0), TypeError, r"`target` must be integer class indices, got torch.bool"),
    "integer probabilities": (
        multi(target=SOFT.long()),
        TypeError,
        r"`target` must be floating point when it has the shape",
    ),
    "label too large": (
        multi(target=TARGET + 1, validate=True),
        ValueError,
        r"`target` .* \[0, 4\).* target\[2\] = 4 \(1 of 3",
    ),
    "label negative": (
        multi(target=TARGET - 1, validate=True),
        ValueError,
        r"`target` must be in \[0, 4\) or equal to `ignore",
    ),
    "probabilities negative": (
        multi(target=with_entry(SOFT, -0.25), validate=True),
        ValueError,
        r"`target` must hold probabilities, which are not negative, got target\[0, 0\] = -0.25 \(1 of 12",
    ),
    "probabilities too large": (
        multi(target=2 * SOFT, validate=True),
        ValueError,
        r"`target` must hold .* sum to 1 .*, got target\[0\] = 2 \(3 of 3",
    ),
    "scores NaN": (
        multi(with_entry(SCORES, math.nan), validate=True),
        ValueError,
        r"`scores` must not be NaN .*, got scores\[0, 0\] = nan \(1 of 12",
    ),
    "unknown form": (
        multi(form="pairs"),
        ValueError,
        r"`form` must be one of 'pairwise', 'centered', 'logodds', got 'pairs'",
    ),
    "form of wrong type": (multi(form=3), TypeError, r"`form` must be a name or a `Form`, got int"),
    "unknown reduction": (multi(reduction="average"), ValueError, r"`reduction` must be one of .*'mean'.*, got 'average'"),
    "unknown backend": (
        multi(backend="fast"),
        ValueError,
        r"`backend` must be one of 'auto', 'reference', 'eager', 'compiled', 'fused', got 'fast'",
    ),
    "smoothing negative": (multi(label_smoothing=-0.1), ValueError, r"`label_smoothing` must be in \[0, 1\], got -0.1"),
    "smoothing above one": (multi(label_smoothing=1.5), ValueError, r"`label_smoothing` must be in \[0, 1\], got 1.5"),
    "smoothing a string": (multi(label_smoothing="0.1"), ValueError, r"`label_smoothing` must be in \[0, 1\], got '0.1'"),
    "smoothing NaN": (multi(label_smoothing=math.nan), ValueError, r"`label_smoothing` must be in \[0, 1\], got nan"),
    "weight of wrong shape": (multi(weight=torch.ones(3)), ValueError, r"`weight` must have shape \(4,\), got \(3,\)"),
    "margin of wrong shape": (
        multi(class_margin=torch.ones(4, 1)),
        ValueError,
        r"`class_margin` must have shape \(4,\), got",
    ),
    "sample weight of wrong shape": (
        multi(sample_weight=torch.ones(4)),
        ValueError,
        r"`sample_weight` must have shape \(3,\), got \(4,\)",
    ),
    "weight negative": (
        multi(weight=-torch.ones(4), validate=True),
        ValueError,
        r"`weight` must not be negative, got weight\[0\] = -1 \(4 of 4",
    ),
    "sample weight negative": (
        multi(sample_weight=-torch.ones(3), validate=True),
        ValueError,
        r"`sample_weight` must not be negative, got sample_weight\[0\] = -1 \(3 of 3",
    ),
    "centered with two sides": (
        multi(form="centered", surrogate=LinearCore(sides=2)),
        ValueError,
        r"`surrogate` must be one-sided for form=\"centered\", got LinearCore\(.*sides=2.*linear bound",
    ),
    "logodds with a rising surrogate": (
        multi(form="logodds", surrogate=LinearCore("quartic")),
        ValueError,
        r"`surrogate` must be non-increasing for form=\"logodds\", got LinearCore\('quartic'.*not be convex",
    ),
    "logodds normalized": (
        multi(normalize=True),
        ValueError,
        r"`normalize` must be None or False for form='logodds', got True",
    ),
    "ignored probabilities": (
        multi(target=SOFT, ignore_index=1),
        ValueError,
        r"`ignore_index` must .* probability targets, got 1",
    ),
    "surrogate a name": (multi(surrogate="hinge"), TypeError, r"`surrogate` must be a `Surrogate`, got str"),
    "surrogate a class": (multi(surrogate=LinearCore), TypeError, r"`surrogate` must be a `Surrogate`, got"),
    "binary scores integer": (yes_no(SCORES.long()), TypeError, r"`scores` must be floating point, got torch.int64"),
    "binary target a list": (yes_no(target=[0]), TypeError, r"`target` must be a torch tensor, got list"),
    "binary target shape": (yes_no(target=SOFT[:, 0]), ValueError, r"`target` must have shape \(3, 4\), got \(3,\)"),
    "binary reduction": (yes_no(reduction="avg"), ValueError, r"`reduction` must be one of .*, got 'avg'"),
    "binary backend": (yes_no(backend="fast"), ValueError, r"`backend` must be one of .*, got 'fast'"),
    "binary surrogate": (yes_no(surrogate=None), TypeError, r"`surrogate` must be a `Surrogate`, got NoneType"),
    "pos weight shape": (
        yes_no(pos_weight=torch.ones(3)),
        ValueError,
        r"`pos_weight` must broadcast to the shape of `scores`, \(3, 4\), got \(3,\)",
    ),
    "pos weight negative": (yes_no(pos_weight=-2.0), ValueError, r"`pos_weight` must be a finite number .*, got -2.0"),
    "pos weight infinite": (yes_no(pos_weight=math.inf), ValueError, r"`pos_weight` must be a finite number .*, got inf"),
    "pos weight a list": (yes_no(pos_weight=[2.0]), TypeError, r"`pos_weight` must be a torch tensor, got list"),
    "pos weight on another device": (
        yes_no(pos_weight=torch.ones(4, device="meta")),
        ValueError,
        r"`pos_weight` must be on the device of `scores`, cpu, got meta",
    ),
    "binary target on another device": (
        yes_no(target=SOFT.to("meta")),
        ValueError,
        r"`target` must be on the device of `scores`, cpu, got meta",
    ),
    "binary sample weight a list": (
        yes_no(sample_weight=[1.0]),
        TypeError,
        r"`sample_weight` must be a torch tensor, got list",
    ),
    "binary sample weight shape": (
        yes_no(sample_weight=torch.ones(2, 4)),
        ValueError,
        r"`sample_weight` must broadcast to the shape of `scores`, \(3, 4\), got \(2, 4\)",
    ),
    "binary target too large": (
        yes_no(target=2 * TARGET, scores=SCORES[:, 0], validate=True),
        ValueError,
        r"be in \{0, 1\}, got",
    ),
    "binary signs unannounced": (
        yes_no(target=with_entry(SOFT, -1.0), validate=True),
        ValueError,
        r"`target` must be in \[0, 1\], got target\[0, 0\] = -1 \(1 of 12.*signed=True",
    ),
    "binary zeros among signs": (
        yes_no(target=torch.zeros(3, 4).int(), signed=True, validate=True),
        ValueError,
        r"`target` must be in \{-1, 1\}, got target\[0, 0\] = 0 \(12 of 12.*`signed=",
    ),
    "binary scores NaN": (
        yes_no(with_entry(SCORES, math.nan), validate=True),
        ValueError,
        r"`scores` must be finite, got scores\[0, 0\] = nan",
    ),
    "binary weight negative": (
        yes_no(sample_weight=-torch.ones(4), validate=True),
        ValueError,
        r"`sample_weight` must not be negative, got",
    ),
}

SHAPE_OF_A_MESSAGE = re.compile(r"^`[a-z_]+` must .+, got .+; .+$", re.DOTALL)


@pytest.mark.parametrize(("act", "error", "words"), CASES.values(), ids=CASES.keys())
def test_message(act: Callable[[], Tensor], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        act()
    assert SHAPE_OF_A_MESSAGE.match(str(caught.value))


@pytest.mark.parametrize("ndim", (1, 3))
def test_messages_hold_for_any_rank(ndim: int) -> None:
    scores = torch.zeros((4,) if ndim == 1 else (2, 4, 3))
    target = torch.zeros(() if ndim == 1 else (2, 3), dtype=torch.long)
    target_entry, score_entry = ("target", r"scores\[1\]") if ndim == 1 else (r"target\[1, 2\]", r"scores\[1, 3, 2\]")
    wrong, not_a_number = target.clone(), scores.clone()
    wrong.view(-1)[-1] = 9
    (not_a_number if ndim == 1 else not_a_number[1, :, 2])[1 if ndim == 1 else 3] = math.nan
    with pytest.raises(ValueError, match=f"`target` must be in .*, got {target_entry} = 9 "):
        multiclass_loss(scores, wrong)
    with pytest.raises(ValueError, match=f"`scores` must not be NaN .*, got {score_entry} = nan "):
        multiclass_loss(not_a_number, target, validate=True)
    with pytest.raises(ValueError, match="`sample_weight` must have shape"):
        multiclass_loss(scores, target, sample_weight=torch.ones(5))
    with pytest.raises(ValueError, match="`weight` must have shape"):
        multiclass_loss(scores, target, weight=torch.ones(3))


def test_without_validate_the_numbers_are_not_looked_at() -> None:
    """NaN scores and odd probabilities pass in silence: looking would wait for the device."""
    assert multiclass_loss(with_entry(SCORES, math.nan), TARGET).isnan()
    assert multiclass_loss(SCORES, 2 * SOFT) == 2 * multiclass_loss(SCORES, SOFT)
