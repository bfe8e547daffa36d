"""Linear-Core surrogate losses for PyTorch: convex, smooth, and exactly linear around margin zero."""

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain, NormedScores
from linearcore.losses import (
    BinaryLinearCoreLoss,
    Centered,
    Form,
    LinearCoreLoss,
    LogOdds,
    Pairwise,
    RobustLinearCoreLoss,
    binary_loss,
    multiclass_loss,
    sampled_multiclass_loss,
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
    "ChainCRF",
    "ChainSSVM",
    "ConvolutionalFenchelYoung",
    "Exponential",
    "Form",
    "Hinge",
    "LinearCore",
    "LinearCoreChain",
    "LinearCoreLoss",
    "LogOdds",
    "Logistic",
    "NormedScores",
    "Pairwise",
    "RobustLinearCoreLoss",
    "SmoothedHinge",
    "SquaredHinge",
    "Surrogate",
    "binary_loss",
    "multiclass_loss",
    "sampled_multiclass_loss",
]
