"""Instances for the property tests in `tests/laws`. To test a new surrogate, add one line here."""

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


PAIRS: dict[str, tuple[Surrogate, Form]] = {
    f"{form_name}-{name}": (surrogate, form)
    for form_name, form in FORMS.items()
    for name, surrogate in SURROGATES.items()
    if allows(form, surrogate)
}

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

FEW_PAIRS: dict[str, tuple[Surrogate, Form]] = {
    f"{form_name}-{name}": (surrogate, form)
    for form_name, form in FORMS.items()
    for name, surrogate in A_FEW.items()
    if allows(form, surrogate)
}
