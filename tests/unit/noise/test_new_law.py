"""A law written outside the library, as one function, works where the laws of the library do."""

import re

import pytest
import torch
from torch import Tensor

from linearcore.noise import LAWS, LabelDraw, NoisyLabels, class_conditional, draw, instance_dependent, symmetric

CLEAN = torch.arange(3000) % 4
FEATURES = torch.randn(3000, 2, generator=torch.Generator().manual_seed(0))


def bright_rows(labels: Tensor, rate: float, *, features: Tensor, num_classes: int, seed: int, to: int = 0) -> NoisyLabels:
    """Labels of rows whose first feature is positive become class `to`, with probability `rate`."""
    draw = LabelDraw.start(labels, num_classes=num_classes, seed=seed, rate=rate)
    noisy = torch.where((features[:, 0] > 0) & (draw.chance < rate), to, draw.clean)
    return draw.finish(noisy, rate=rate, law={"generator": "bright_rows", "to": to})


def test_a_law_of_ones_own_is_drawn_like_any_other() -> None:
    draws = [draw(bright_rows, CLEAN, rate, features=FEATURES, num_classes=4, seed=1, to=2) for rate in (0.2, 0.6)]
    for noisy, rate in zip(draws, (0.2, 0.6), strict=True):
        changed = noisy.labels != CLEAN
        assert (FEATURES[changed, 0] > 0).all() and (noisy.labels[changed] == 2).all()
        could = (FEATURES[:, 0] > 0) & (CLEAN != 2)
        assert abs(float(changed[could].double().mean()) - rate) < 0.05
        assert noisy.rate == rate and noisy.law == {"generator": "bright_rows", "to": 2}
        assert noisy.realised_rate == pytest.approx(float(changed.double().mean()))
    assert torch.equal(draws[1].labels[draws[0].labels != CLEAN], draws[0].labels[draws[0].labels != CLEAN])
    again = bright_rows(CLEAN.reshape(60, 50), 0.2, features=FEATURES, num_classes=4, seed=1, to=2)
    assert again.labels.shape == (60, 50) and again.hash == draws[0].hash


def test_laws_are_called_by_name_with_what_they_need() -> None:
    data = {"features": FEATURES, "posterior": torch.eye(4)[CLEAN] * 0.6 + 0.1, "num_classes": 4, "seed": 3}
    matrix = 0.6 * torch.eye(4, dtype=torch.float64) + 0.1
    for name, law in LAWS.items():
        own = {"transitions": matrix} if law is class_conditional else {}
        noisy = draw(name, CLEAN, None if own else 0.3, **data, **own)
        assert noisy.law["generator"] == name == law.__name__
        assert abs(noisy.realised_rate - 0.3) < 0.05
    assert draw("symmetric", CLEAN, 0.3, **data).hash == symmetric(CLEAN, 0.3, num_classes=4, seed=3).hash
    ours = draw("instance_dependent", CLEAN, 0.3, inputs="centred", **data)
    assert ours.hash == instance_dependent(FEATURES, CLEAN, 0.3, num_classes=4, seed=3, inputs="centred").hash


def test_laws_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        LAWS["bright_rows"] = bright_rows


@pytest.mark.parametrize(
    ("law", "arguments", "error", "words"),
    [
        ("nope", {"rate": 0.2}, ValueError, "`law` must be one of 'boundary', 'class_conditional', "),
        ("symmetric", {}, ValueError, "`rate` must be given for 'symmetric', got None; this law requires it"),
        ("instance_dependent", {"rate": 0.2}, ValueError, "`features` must be given for 'instance_dependent', got None"),
        ("boundary", {"rate": 0.2}, ValueError, "`posterior` must be given for 'boundary', got None"),
        (
            "symmetric",
            {"rate": 0.2, "to": 1},
            TypeError,
            "`to` must be an argument of 'symmetric', got an unknown argument;",
        ),
        ("class_conditional", {"rate": 0.2, "transitions": torch.eye(4)}, TypeError, "`rate` must be an argument of"),
        (
            "class_conditional",
            {"transitions": torch.eye(5)},
            ValueError,
            "`num_classes` must be 5, the number of classes of the law, got 4;",
        ),
        (bright_rows, {"rate": 2.0, "features": FEATURES}, ValueError, "`rate` must be a probability, got 2.0"),
    ],
)
def test_messages(law: object, arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        draw(law, CLEAN, num_classes=4, seed=0, **arguments)
