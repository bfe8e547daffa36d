"""Linear-Core surrogate losses for PyTorch: convex, smooth, and exactly linear around margin zero."""

from linearcore.losses import (
    BinaryLinearCoreLoss,
    Centered,
    Form,
    LinearCoreLoss,
    LogOdds,
    Pairwise,
    binary_loss,
    multiclass_loss,
)
from linearcore.surrogates import (
    ConvolutionalFenchelYoung,
    Exponential,
    Hinge,
    LinearCore,
    Logistic,
    SmoothedHinge,
    SquaredHinge,
    Surrogate,
)

__all__ = [
    "BinaryLinearCoreLoss",
    "Centered",
    "ConvolutionalFenchelYoung",
    "Exponential",
    "Form",
    "Hinge",
    "LinearCore",
    "LinearCoreLoss",
    "LogOdds",
    "Logistic",
    "Pairwise",
    "SmoothedHinge",
    "SquaredHinge",
    "Surrogate",
    "binary_loss",
    "multiclass_loss",
]
