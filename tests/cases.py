"""The instances that every law in `tests/laws` runs over. A new surrogate costs one line here.

`make test` takes each surrogate with one form and each form with the default surrogate; the full cross is marked `slow`.
"""

import itertools
import math
import random
from collections.abc import Iterable, Mapping

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.losses import Centered, Form, LogOdds, Pairwise
from linearcore.surrogates import (
    BASES,
    ConvolutionalFenchelYoung,
    Exponential,
    Half,
    Hinge,
    LinearCore,
    Logistic,
    QuarticBase,
    SmoothedHinge,
    SquaredHinge,
    Surrogate,
    UserBase,
)


def algebraic(z: Tensor) -> Tensor:
    """Returns 1/(1 + |z|) + 2 z₊, a user-defined base with heavy tails: Φ' = (1 + z)⁻² mirrored, Φ'' = 2 (1 + |z|)⁻³."""
    # autograd gives `abs` the slope 0 at zero; this expression has −1, the slope on the left.
    distance = F.relu(z) - z.clamp(max=0)
    return torch.reciprocal(1 + distance) + 2 * F.relu(z)


ALGEBRAIC = UserBase(algebraic, left=Half(1.0, 2.0), right=Half(2.0, 2.0), is_monotone=True, vanishes=True, name="algebraic")

#: (τ, β): the default, one whose knots are not binary fractions, and a wide core with low sharpness.
SETTINGS = ((1.0, 1.0), (0.3, 3.0), (2.5, 0.5))

LC_SURROGATES: dict[str, Surrogate] = {
    f"{base.name}-{sides}-tau{tau}-beta{sharpness}": LinearCore(base, tau, sides, sharpness)
    for base in (*BASES.values(), ALGEBRAIC)
    for sides in (1, 2)
    for tau, sharpness in SETTINGS
} | {"quartic-a0.5-K2": LinearCore(QuarticBase(a=0.5, constant=2.0))}

CLASSICAL: dict[str, Surrogate] = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge-0.5": SmoothedHinge(0.5),
    "smoothed_hinge-0.3": SmoothedHinge(0.3),
    "smoothed_hinge-1.5": SmoothedHinge(1.5),
    "logistic": Logistic(),
    "exponential": Exponential(),
    "convolutional_fenchel_young": ConvolutionalFenchelYoung(),
}

SURROGATES: dict[str, Surrogate] = LC_SURROGATES | CLASSICAL

FORMS: dict[str, Form] = {
    "pairwise": Pairwise(),
    "pairwise-sum": Pairwise(normalize=False),
    "centered": Centered(),
    "centered-sum": Centered(normalize=False),
    "logodds": LogOdds(),
}


def allows(form: Form, surrogate: Surrogate) -> bool:
    """Returns whether the library accepts the pair: `centered` requires one side, `logodds` a non-increasing surrogate."""
    two_sided = surrogate.core is not None and surrogate.core[0] != -torch.inf
    return not (isinstance(form, Centered) and two_sided) and (surrogate.is_monotone or not isinstance(form, LogOdds))


def each(argnames: str | tuple[str, ...], cases: Mapping[str, object], short: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrises a test over `cases`, each named by its key; those that are not in `short` are marked `slow`."""
    is_tuple, short = not isinstance(argnames, str), set(short)
    assert short <= cases.keys(), short - cases.keys()
    return pytest.mark.parametrize(
        argnames,
        [
            pytest.param(*(case if is_tuple else (case,)), id=name, marks=() if name in short else pytest.mark.slow)
            for name, case in cases.items()
        ],
    )


def cross(**axes: Mapping[str, object] | Iterable[object]) -> pytest.MarkDecorator:
    """Parametrises a test over all combinations of the axes; those of them in which the axes do not take turns are `slow`.

    The first axis goes round together with the combinations of the others, shuffled. So `make test` has each value of each
    axis and each combination of the others at least once, but not each value of the first axis with each of another. An axis
    is a mapping from names, or values with short names.
    """
    first, *others = (
        [*axis.items()] if isinstance(axis, Mapping) else [(str(v), v) for v in axis] for axis in axes.values()
    )
    combinations = [*itertools.product(*others)]
    random.Random(0).shuffle(combinations)
    turns = max(len(first), len(combinations))
    short = {(k % len(first), k % len(combinations)) for k in range(turns)}
    cases, names = {}, set()
    for (i, start), (j, rest) in itertools.product(enumerate(first), enumerate(combinations)):
        name = "-".join(label for label, _ in (start, *rest))
        cases[name] = tuple(value for _, value in (start, *rest))
        if (i, j) in short:
            names.add(name)
    assert len(cases) == math.prod(map(len, (first, *others))), "names of values must differ"
    return each(tuple(axes), cases, names)


def pairs_of(surrogates: Mapping[str, Surrogate]) -> dict[str, tuple[Surrogate, Form]]:
    """All pairs that the library allows."""
    return {
        f"{form_name}-{name}": (surrogate, form)
        for form_name, form in FORMS.items()
        for name, surrogate in surrogates.items()
        if allows(form, surrogate)
    }


def short_pairs(pairs: Mapping[str, object], surrogates: Iterable[str], default: str) -> set[str]:
    """The default surrogate with every form, and each of the others with one form, the forms taking turns."""
    chosen = {f"{form}-{default}" for form in FORMS}
    for place, surrogate in enumerate(surrogates):
        allowed = [name for form in FORMS if (name := f"{form}-{surrogate}") in pairs]
        chosen.add(allowed[place % len(allowed)])
    return chosen


#: Every base with one side and with two, each at one setting, and all the others.
SHORT_LC = {"logistic-1-tau1.0-beta1.0", "quartic-a0.5-K2"} | {
    f"{base.name}-{sides}-tau{tau}-beta{sharpness}"
    for base in (*BASES.values(), ALGEBRAIC)
    for sides, (tau, sharpness) in ((1, SETTINGS[1]), (2, SETTINGS[2]))
}
SHORT = [name for name in SURROGATES if name in SHORT_LC or name in CLASSICAL]

PAIRS = pairs_of(SURROGATES)
SHORT_PAIRS = short_pairs(PAIRS, SHORT, "logistic-1-tau1.0-beta1.0")

#: One surrogate of each kind: finite and infinite tail, C2, two-sided, increasing, user-defined, and classical ones.
A_FEW: dict[str, Surrogate] = {
    "truncated_quadratic": LinearCore("truncated_quadratic"),
    "logistic_core": LinearCore(),
    "gamma": LinearCore("gamma", 0.3, 1, 3.0),
    "two_sided": LinearCore("exponential", sides=2),
    "quartic": LinearCore("quartic", 0.5),
    "user": LinearCore(ALGEBRAIC),
    "hinge": Hinge(),
    "logistic": Logistic(),
    "exponential": Exponential(),
}

FEW_PAIRS = pairs_of(A_FEW)

every_surrogate = each("phi", SURROGATES, SHORT)
every_linear_core = each("phi", LC_SURROGATES, SHORT_LC)
every_pair = each(("phi", "form"), PAIRS, SHORT_PAIRS)
a_few_pairs = each(("phi", "form"), FEW_PAIRS, short_pairs(FEW_PAIRS, A_FEW, "logistic_core"))
