"""What a form is: a definition that autograd can differentiate and, where there is one, a fast path beside it."""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms._labels import Labels
from linearcore.forms._margins import MarginSystem
from linearcore.forms._rows import Kept, row_losses
from linearcore.kernels import local_scores
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate


class Form(ABC):
    """A way to make margins from scores (N, C) and a label, and from their φ the loss of a row.

    A new form is one subclass in one file and one line in `FORMS`. It must have a `name` and `hard`; everything else has a
    default. What it cannot do it refuses: surrogates in `check`, means in `normalized`, sampled competitors in `sampled`.

    Scores are float32 or float64. Classes with score −inf are masked out. Tensors among its attributes may be trained; the
    loss is then computed by its definition.
    """

    name: ClassVar[str]
    #: Whether `hard_forward` and `hard_gradient` exist. Without them blocks of rows are differentiated by autograd.
    has_fast_path: ClassVar[bool] = False
    #: Whether these two take a module of fused kernels.
    can_fuse: ClassVar[bool] = False
    #: Whether the 0-1 regret is bounded linearly by that of the sum over competitors, for one-sided linear-core φ.
    has_linear_bound: ClassVar[bool] = False

    def check(self, surrogate: Surrogate) -> None:  # noqa: B027  # Most forms take every surrogate.
        """Raises ValueError for surrogates with which the form loses what it promises. The analysis does not ask."""

    def normalized(self, normalize: bool) -> "Form":
        """This form as a mean over competitors (True) or a sum; raises where that makes no sense."""
        if normalize:
            must = f"be None or False for form={self.name!r}"
            raise ValueError(complaint("normalize", must, normalize, "it has one margin a sample and nothing to average"))
        return self

    @property
    def is_mean(self) -> bool:
        """Whether the loss is a mean over competitors."""
        return False

    @abstractmethod
    def hard(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        """(N,): ℓ(s, index), differentiable as often as wanted. This is the definition."""

    def soft(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        """(N,): Σ_y share_y ℓ(s, y) over the labels y in `chunk`, differentiable as often as wanted."""
        share = labels.share(scores)
        counts = labels.counts(share, scores != -torch.inf)
        total = torch.zeros_like(share[..., 0])
        for label in range(*chunk.indices(scores.shape[-1])):
            one = Labels(torch.full(scores.shape[:-1], label, device=scores.device), margin=labels.margin)
            out = ~counts[..., label]
            # Cleared before `hard` as well as after, or its gradient at ±inf would reach the scores as NaN.
            losses = self.hard(surrogate, scores.masked_fill(out.unsqueeze(-1), 0.0), one).masked_fill(out, 0.0)
            total = total + share[..., label] * losses
        return total

    def soft_is_quadratic(self, labels: Labels) -> bool:
        """Whether `soft` needs C numbers for each of its labels, so that it is worth giving it a few labels at a time."""
        return True

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, Kept]:
        """The losses (N,) of a block of rows without a graph, and what `hard_gradient` wants to have back.

        `fused` is a module of fused kernels, or None. With `overwrite` the block of scores may be overwritten.
        """
        raise NotImplementedError

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        """(N, C): upstream (N, 1) times ∂ℓ/∂s."""
        raise NotImplementedError

    def sampled(
        self, surrogate: Surrogate, own: Tensor, others: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """(N,): the loss with Σ_{v≠y} f(s_v) replaced by Σ_k weight_k f(s_k).

        Args:
            surrogate: φ.
            own: (N,) scores of the labels.
            others: (N, K) scores of the candidates, float32 or float64.
            log_weight: (N, K) logarithms of their weights; −inf for one that counts for nothing.
            num_classes: n; a mean divides by n − 1.

        Raises:
            ValueError: if the form needs all classes.
        """
        advice = "take 'pairwise' or 'logodds', or look at all classes"
        raise ValueError(complaint("form", "not need all classes when it is sampled", repr(self.name), advice))

    def local_losses(
        self, surrogate: Surrogate, emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str
    ) -> Tensor:
        """(L, B): the loss at every site of a chain over all single-site changes; where masked it means nothing.

        Arguments as in `kernels.local_scores`, with a resolved `backend`. Time O(L·B·|Y|).
        """
        scores = local_scores(emissions, chain, tags, sites, backend)
        rows = scores.reshape(-1, scores.shape[-1])
        return row_losses(self, surrogate, rows, Labels(tags.reshape(-1)), backend).view(tags.shape)

    def lead(self, scores: Tensor, index: Tensor) -> Tensor:
        """(…): how far the class at `index` (…) is ahead, for scores (…, C): here the lead over the runner-up."""
        own = index.unsqueeze(-1)
        return scores.gather(-1, own).squeeze(-1) - scores.scatter(-1, own, -torch.inf).amax(-1)

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> MarginSystem | None:
        """The sum over competitors as a sum of φ over margins, for the consistency lab; None if it is none.

        Args:
            own: (G,) outputs that are labels.
            candidates: (G, C) the outputs that each is compared with, itself among them.
            basis: (M, D) of the scores h of all M outputs; see `MarginSystem`.
        """
        return None

    def consistency(self, surrogate: Surrogate) -> str | None:
        """Why the loss is argmax-consistent with a differentiable φ that has no endless core, or None if it is not known."""
        return None
