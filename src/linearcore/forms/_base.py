"""Base class of forms: a reference implementation for autograd and, optionally, a custom backward pass."""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import ClassVar, Literal

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms._labels import Labels
from linearcore.forms._margins import MarginSystem
from linearcore.forms._rows import SavedTensors, row_losses
from linearcore.kernels import FormCode, LossCode, local_scores
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate


class Form(ABC):
    """Maps scores (N, C) and labels to margins, and the values φ(margin) to one loss per row.

    To add a form, write one subclass in its own file and one line in `FORMS`. It must define `name` and `hard_losses`;
    everything else has a default. Unsupported cases raise: surrogates in `check`, means in `normalized`, sampled competitors
    in `sampled_losses`.

    Scores are float32 or float64. Classes with score −inf are masked out. Tensor attributes of a form may be trainable; the
    reference implementation is then used.
    """

    name: ClassVar[str]
    #: Whether `hard_forward` and `hard_gradient` are implemented. Otherwise autograd differentiates blocks of rows.
    has_custom_backward: ClassVar[bool] = False
    #: Whether these two methods support fused kernels for surrogates without a `kernel_identity`.
    can_fuse: ClassVar[bool] = False
    #: The form in the compiled kernels, or None.
    code: ClassVar[FormCode | None] = None
    #: If the loss of a hard label is the sum (the mean if `is_mean`) of φ(reference − s_v − Δ_y) over the competitors v:
    #: whether the reference is the score of the label or the mean score. Scores can then be computed in chunks of classes.
    class_reference: ClassVar[Literal["label", "mean"] | None] = None
    #: Whether the kernels for sampled competitors compute what `sampled_losses` does.
    has_sampled_kernels: ClassVar[bool] = False
    #: Whether 0-1 regret ≤ constant · regret of the sum over competitors, for one-sided linear-core φ.
    has_linear_bound: ClassVar[bool] = False

    def check(self, surrogate: Surrogate) -> None:  # noqa: B027  # Most forms accept every surrogate.
        """Raises ValueError for surrogates that break the guarantees of the form. `linearcore.analysis` skips this check."""

    def normalized(self, normalize: bool) -> "Form":
        """Returns this form as a mean over competitors (True) or as a sum (False); raises if that is not defined."""
        if normalize:
            must = f"be None or False for form={self.name!r}"
            raise ValueError(complaint("normalize", must, normalize, "this form has one margin per sample and no mean"))
        return self

    @property
    def is_mean(self) -> bool:
        """Whether the loss is a mean over competitors."""
        return False

    def loss_code(self, surrogate: Surrogate) -> LossCode | None:
        """Returns the loss for the compiled kernels; None if they do not implement it."""
        identity = surrogate.kernel_identity
        return None if self.code is None or identity is None else LossCode(self.code, self.is_mean, identity)

    def sampled_code(self, surrogate: Surrogate) -> LossCode | None:
        """Returns the loss for the kernels of sampled competitors; None if they do not implement it."""
        return self.loss_code(surrogate) if self.has_sampled_kernels else None

    @abstractmethod
    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        """Returns ℓ(s, index), (N,). This is the reference implementation; it supports higher derivatives."""

    def soft_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        """Returns Σ_y w_y ℓ(s, y), (N,), over the classes y in `chunk`, with w = `labels.target_weights(scores)`."""
        weights = labels.target_weights(scores)
        is_counted = labels.is_counted(weights, scores != -torch.inf)
        total = torch.zeros_like(weights[..., 0])
        for label in range(*chunk.indices(scores.shape[-1])):
            hard = Labels(torch.full(scores.shape[:-1], label, device=scores.device), margin=labels.margin)
            ignored = ~is_counted[..., label]
            # Masked before and after, because the gradient at ±inf would be NaN.
            masked_scores = scores.masked_fill(ignored.unsqueeze(-1), 0.0)
            losses = self.hard_losses(surrogate, masked_scores, hard).masked_fill(ignored, 0.0)
            total = total + weights[..., label] * losses
        return total

    def soft_is_quadratic(self, labels: Labels) -> bool:
        """Whether `soft_losses` takes O(C²) memory per row, so it should be called with chunks of classes."""
        return True

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, SavedTensors]:
        """Returns the losses (N,) of a block of rows without a graph, and the tensors that `hard_gradient` needs.

        `fused` is a module of fused kernels, or None. If `overwrite`, the scores may be overwritten.
        """
        raise NotImplementedError

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, saved: SavedTensors, grad_output: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        """Returns grad_output · ∂ℓ/∂s, (N, C), for grad_output (N, 1)."""
        raise NotImplementedError

    def sampled_losses(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """Returns the loss (N,) with Σ_{v≠y} f(s_v) replaced by Σ_k weight_k f(s_k).

        Args:
            surrogate: φ.
            label_scores: (N,) scores of the labels.
            scores: (N, K) scores of the sampled candidates, float32 or float64.
            log_weight: (N, K) log importance weights; −inf for candidates that are ignored.
            num_classes: n; a mean divides by n − 1.

        Raises:
            ValueError: if the form needs all classes.
        """
        advice = "use 'pairwise' or 'logodds', or a loss over all classes"
        raise ValueError(complaint("form", "not need all classes when it is sampled", repr(self.name), advice))

    def sampled_influences(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """Returns (N, K), what each candidate contributes to `sampled_losses` to first order, for estimates of variance.

        Raises:
            ValueError: if the form has no such estimate.
        """
        advice = "use 'pairwise' or 'logodds'"
        raise ValueError(complaint("form", "have an estimate of the sampling variance", repr(self.name), advice))

    def local_losses(
        self, surrogate: Surrogate, emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str
    ) -> Tensor:
        """Returns the loss (L, B) at each position of a chain, over all changes of its tag; undefined if masked.

        Arguments as in `kernels.local_scores`, with a resolved `backend`. Time O(L·B·|Y|).
        """
        scores = local_scores(emissions, chain, tags, sites, backend)
        rows = scores.reshape(-1, scores.shape[-1])
        return row_losses(self, surrogate, rows, Labels(tags.reshape(-1)), backend).view(tags.shape)

    def decision_margin(self, scores: Tensor, index: Tensor) -> Tensor:
        """Returns the margin (…) of the class `index` (…) over its competitors for scores (…, C).

        The default is the difference to the largest other score.
        """
        index = index.unsqueeze(-1)
        return scores.gather(-1, index).squeeze(-1) - scores.scatter(-1, index, -torch.inf).amax(-1)

    def posterior(self, surrogate: Surrogate, scores: Tensor) -> Tensor:
        """Returns the class probabilities (N, C) at which the expected loss is minimal at `scores` (N, C).

        Raises:
            ValueError: if the form has no such function.
        """
        advice = "use form='logodds', or calibrate the scores on held-out data"
        raise ValueError(complaint("form", "estimate probabilities", repr(self.name), advice))

    def margins(self, labels: Tensor, candidates: Tensor, basis: Tensor) -> MarginSystem | None:
        """Returns the margins of the sum over competitors, for `linearcore.analysis`; None if not available.

        Args:
            labels: (G,) indices of outputs.
            candidates: (G, C) indices of the outputs that each label is compared with, including the label.
            basis: (M, D) matrix with scores h = basis · θ of all M outputs; see `MarginSystem`.
        """
        return None

    def consistency(self, surrogate: Surrogate) -> str | None:
        """Returns the reason why the loss is argmax-consistent, or None if that is not known.

        Assumes a differentiable φ that is not linear for all u > 0.
        """
        return None
