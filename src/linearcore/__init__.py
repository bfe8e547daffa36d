"""Linear-Core surrogate losses for PyTorch: convex, smooth, and linear for margins near zero."""

from importlib import import_module
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
    linear_multiclass_loss,
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
    "linear_multiclass_loss",
    "multiclass_loss",
    "sampled_multiclass_loss",
]

if TYPE_CHECKING:
    from linearcore import analysis as analysis
    from linearcore import cleaning as cleaning
    from linearcore import noise as noise
    from linearcore import optim as optim
    from linearcore import runtime as runtime
    from linearcore import tagging as tagging

    __version__: str
else:
    _ON_FIRST_ACCESS = ("analysis", "cleaning", "noise", "optim", "runtime", "tagging")

    # Hidden from type checkers: with a module-level __getattr__ they would accept any attribute name.
    def __getattr__(name: str) -> object:
        """Returns `__version__` or a submodule, computed or imported on first access to keep the import fast."""
        if name in _ON_FIRST_ACCESS:
            return import_module(f"{__name__}.{name}")
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from linearcore.runtime import package_version

        return package_version()

    def __dir__() -> list[str]:
        """Lists these submodules, too, for completion in an interpreter."""
        return sorted({*globals(), *_ON_FIRST_ACCESS})
