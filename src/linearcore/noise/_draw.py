"""Wrong labels by a law that is given by name."""

import inspect
from collections.abc import Callable
from typing import Any

from linearcore import noise  # The index, which imports this file; its names are looked up later.
from linearcore._arrays import Labels, Numbers
from linearcore._checks import complaint, one_of
from linearcore.noise._noisy_labels import NoisyLabels

#: A function that returns `NoisyLabels`; its arguments have the names of those of `draw`, besides its own options.
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
    """Wrong labels by any law: one call for code that compares laws.

    A law gets those of `features` and `posterior` that it has arguments for; the others are not used. Everything else that
    is given must be an argument of the law.

    Args:
        law: a key of `LAWS`, or a function like those.
        labels: (N,) clean labels in 0..n−1.
        rate: as the law defines it; None for a law without a rate, such as `class_conditional`.
        num_classes: n ≥ 2.
        seed: a non-negative integer that names the draw.
        features: (N, …), for laws that depend on the input.
        posterior: (N, n) class probabilities, for laws that depend on them.
        options: the law's own options.

    Raises:
        TypeError: if an option is not one of the law's.
        ValueError: if the law is unknown, or an argument is missing, not used, or out of range.

    Example:
        >>> draw("pair_flip", [0, 1, 2] * 10, 1.0, num_classes=3, seed=0).labels[:3]
        tensor([1, 2, 0])
    """
    if isinstance(law, str):
        one_of("law", law, noise.LAWS, "choose one of these, or pass a function")
        law = noise.LAWS[law]
    name, takes = law.__name__, inspect.signature(law).parameters
    data = {"labels": labels, "num_classes": num_classes, "features": features, "posterior": posterior}
    given = {"seed": seed, **options} | ({} if rate is None else {"rate": rate})
    for option in given:
        if option not in takes:
            advice = f"it takes {', '.join(takes)}"
            raise TypeError(complaint(option, f"be an argument of {name!r}", "one that is not", advice))
    given |= {argument: value for argument, value in data.items() if argument in takes and value is not None}
    for argument, parameter in takes.items():
        if argument not in given and parameter.default is parameter.empty:
            raise ValueError(complaint(argument, f"be given for {name!r}", "None", "this law needs it"))
    found = law(**given)
    if len(found.transitions) != num_classes:
        must = f"be {len(found.transitions)}, as the law has it"
        raise ValueError(complaint("num_classes", must, num_classes, "count the classes"))
    return found
