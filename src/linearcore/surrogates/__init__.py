"""Surrogates: scalar loss functions of a margin, with derivatives and declared properties."""

from linearcore.surrogates._base import KernelIdentity, Surrogate
from linearcore.surrogates._classical import (
    ConvolutionalFenchelYoung,
    Exponential,
    Hinge,
    Logistic,
    SmoothedHinge,
    SquaredHinge,
)
from linearcore.surrogates._expression import parse_expression
from linearcore.surrogates._linear_core import LinearCore
from linearcore.surrogates._user import UserSurrogate
from linearcore.surrogates.bases import (
    BASES,
    Base,
    ExponentialBase,
    GammaBase,
    Half,
    LogisticBase,
    QuarticBase,
    TruncatedQuadraticBase,
    UserBase,
)

#: Default instances of the classical surrogates by name.
CLASSICAL: dict[str, Surrogate] = {
    "hinge": Hinge(),
    "squared-hinge": SquaredHinge(),
    "smoothed-hinge": SmoothedHinge(),
    "logistic": Logistic(),
    "exponential": Exponential(),
    "convolutional-fenchel-young": ConvolutionalFenchelYoung(),
}

__all__ = [
    "BASES",
    "CLASSICAL",
    "Base",
    "ConvolutionalFenchelYoung",
    "Exponential",
    "ExponentialBase",
    "GammaBase",
    "Half",
    "Hinge",
    "KernelIdentity",
    "LinearCore",
    "Logistic",
    "LogisticBase",
    "QuarticBase",
    "SmoothedHinge",
    "SquaredHinge",
    "Surrogate",
    "TruncatedQuadraticBase",
    "UserBase",
    "UserSurrogate",
    "parse_expression",
]
