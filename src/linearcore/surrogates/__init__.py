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

__all__ = [
    "BASES",
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
