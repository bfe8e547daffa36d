"""Calls a label-noise law by name."""

import inspect
from collections.abc import Callable
from typing import Any

from linearcore import noise  # A circular import: the names of the package are looked up at call time.
from linearcore._arrays import Labels, Numbers
from linearcore._checks import complaint, one_of
from linearcore.noise._noisy_labels import NoisyLabels

#: A function that returns `NoisyLabels`. Its arguments have the same names as those of `draw`, plus its own options.
Law = Callable[..., NoisyLabels]


def draw(
    law: str | Law,
    labels: Labels,
    rate: float | None = None,
    *,
    num_classes: int,
    seed: int,
    features: Numbers | None = None,
    posterior: Numbers | None = None,
    **options: Any,
) -> NoisyLabels:
    """Applies a label-noise law to clean labels. Use it in code that compares several laws.

    `features` and `posterior` are passed on only if the law has arguments of these names. All other arguments must be
    arguments of the law.

    Args:
        law: a key of `LAWS`, or a function with the same interface.
        labels: (N,) clean labels in 0..n−1.
        rate: noise rate as the law defines it; None for a law without a rate, such as `class_conditional`.
        num_classes: n ≥ 2.
        seed: random seed, a non-negative integer.
        features: (N, …), for laws that depend on the input.
        posterior: (N, n) class probabilities, for laws that use them.
        options: further arguments of the law.

    Raises:
        TypeError: if an option is not an argument of the law.
        ValueError: if the law is unknown, or an argument is missing or out of range.

    Example:
        >>> draw("pair_flip", [0, 1, 2] * 10, 1.0, num_classes=3, seed=0).labels[:3]
        tensor([1, 2, 0])
    """
    if isinstance(law, str):
        one_of("law", law, noise.LAWS, "choose one of these, or pass a function")
        law = noise.LAWS[law]
    name, parameters = law.__name__, inspect.signature(law).parameters
    data = {"labels": labels, "num_classes": num_classes, "features": features, "posterior": posterior}
    arguments = {"seed": seed, **options} | ({} if rate is None else {"rate": rate})
    for argument in arguments:
        if argument not in parameters:
            advice = f"its arguments are {', '.join(parameters)}"
            raise TypeError(complaint(argument, f"be an argument of {name!r}", "an unknown argument", advice))
    arguments |= {argument: value for argument, value in data.items() if argument in parameters and value is not None}
    for argument, parameter in parameters.items():
        if argument not in arguments and parameter.default is parameter.empty:
            raise ValueError(complaint(argument, f"be given for {name!r}", "None", "this law requires it"))
    noisy = law(**arguments)
    if len(noisy.transitions) != num_classes:
        must = f"be {len(noisy.transitions)}, the number of classes of the law"
        raise ValueError(complaint("num_classes", must, num_classes, "pass that number"))
    return noisy
