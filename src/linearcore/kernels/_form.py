"""What the computation of a form is: a plain, differentiable definition and, beside it, a hand-written fast path."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from linearcore.kernels._labels import Labels
from linearcore.surrogates import Surrogate

#: Per-row numbers, each (N,) or (N, 1), that the forward pass hands to the backward pass.
Kept = tuple[Tensor, ...]


@dataclass(frozen=True)
class FormKernel(ABC):
    """ℓ(s, y) for rows of scores s (N, C), in float32 or float64. A score of −inf is a class that is not there.

    `hard` and `soft` define the loss; autograd differentiates them as often as wanted. `hard_forward` and `hard_gradient`
    compute the same for one block of rows with no graph and few temporaries; with `overwrite` the block is theirs to spoil.

    Attributes:
        surrogate: φ.
        normalize: divide the sum over competitors by their number.
    """

    surrogate: Surrogate
    normalize: bool = False

    @abstractmethod
    def hard(self, scores: Tensor, labels: Labels) -> Tensor:
        """(N,): ℓ(s, index)."""

    @abstractmethod
    def soft(self, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        """(N,): Σ_y share_y ℓ(s, y) over the labels y in `chunk`."""

    @abstractmethod
    def soft_is_quadratic(self, labels: Labels) -> bool:
        """Whether `soft` needs C numbers for each of its labels, so that it is worth giving it a few labels at a time."""

    def is_fused(self, scores: Tensor) -> bool:
        """Whether `hard_forward` and `hard_gradient` take `scores` as they are and make no temporaries of their size."""
        return False

    @abstractmethod
    def hard_forward(self, scores: Tensor, labels: Labels, *, overwrite: bool = False) -> tuple[Tensor, Kept]:
        """The rows' losses (N,), and what `hard_gradient` wants to have back."""

    @abstractmethod
    def hard_gradient(
        self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *, overwrite: bool = False
    ) -> Tensor:
        """(N, C): upstream (N, 1) times ∂ℓ/∂s."""
