"""Linear-Core surrogate losses for PyTorch: convex, smooth, and linear for margins near zero."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    __version__: str
else:
    # Hidden from type checkers: with a module-level __getattr__ they would accept any attribute name.
    def __getattr__(name: str) -> str:
        """Returns `__version__`, computed on first access to keep the import fast."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from linearcore.runtime import package_version

        return package_version()
