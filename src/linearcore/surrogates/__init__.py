"""Surrogates: scalar functions of a margin, with their derivatives and declared facts."""

from linearcore.surrogates._base import Surrogate
from linearcore.surrogates._classical import (
    ConvolutionalFenchelYoung,
    Exponential,
    Hinge,
    Logistic,
    SmoothedHinge,
    SquaredHinge,
)
from linearcore.surrogates._linear_core import LinearCore
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

#: Surrogates without a linear core, by name, each as its default instance.
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
    "LinearCore",
    "Logistic",
    "LogisticBase",
    "QuarticBase",
    "SmoothedHinge",
    "SquaredHinge",
    "Surrogate",
    "TruncatedQuadraticBase",
    "UserBase",
]
